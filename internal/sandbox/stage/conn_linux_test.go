package stage

import (
	"io"
	"os"
	"syscall"
	"testing"
)

func TestSend(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, peer := conn{fds[0]}, conn{fds[1]}
	defer syscall.Close(c.fd)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := c.send(7, "hello", int(w.Fd())); err != nil {
		t.Fatal(err)
	}
	w.Close()
	kind, size, got, err := peer.readHeader()
	if err != nil || kind != 7 || size != len(`"hello"`) || len(got) != 1 {
		t.Fatalf("kind %d, size %d, descriptors %v: %v", kind, size, got, err)
	}
	sent := os.NewFile(uintptr(got[0]), "pipe")
	if _, err := sent.WriteString("through the descriptor"); err != nil {
		t.Error(err)
	}
	sent.Close()
	if text, err := io.ReadAll(r); string(text) != "through the descriptor" || err != nil {
		t.Errorf("received %q, %v", text, err)
	}

	// The stage ends when it can send nothing more.
	syscall.Close(peer.fd)
	if err := c.send(7, "hello"); err != syscall.EPIPE {
		t.Errorf("send to a closed socket: %v", err)
	}
	if _, _, _, err := c.readHeader(); err == nil {
		t.Error("read a header from a closed socket")
	}
}
