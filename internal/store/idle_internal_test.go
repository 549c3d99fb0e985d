package store

import (
	"io"
	"net"
	"runtime"
	"testing"
)

func TestIdleCheckRunsDuringDriverRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there connections are not looked at")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	reading, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := here.Read(make([]byte, 1))
		close(reading)
		if err == nil {
			_, err = io.Copy(io.Discard, here)
		}
		ended <- err
	}()
	if _, err := there.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-reading
	for range 1000 { // most of them while the next read waits
		if !isIdle(here) {
			t.Fatal("an open connection counts as closed")
		}
		runtime.Gosched()
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if isIdle(here) {
		t.Error("a closed connection counts as open")
	}
}
