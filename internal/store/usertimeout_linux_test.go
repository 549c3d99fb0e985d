package store

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestUserTimeoutOfSockets(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	listen := func(network, address string) syscall.Conn {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.(syscall.Conn)
	}
	for _, tt := range []struct {
		name string
		conn syscall.Conn
		want int // milliseconds, or -1 for an error
	}{
		{"TCP", listen("tcp", "127.0.0.1:0"), 7000},
		{"Unix", listen("unix", filepath.Join(dir, "socket")), 0},
		{"file", file, -1},
	} {
		raw, err := tt.conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			err := setUserTimeout(fd, 7*time.Second)
			if (err != nil) != (tt.want < 0) {
				t.Errorf("%s: %v", tt.name, err)
			}
			got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
			if err == nil && tt.want > 0 && got != tt.want { // some systems have no such option
				t.Errorf("%s: %d ms, want %d", tt.name, got, tt.want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}
