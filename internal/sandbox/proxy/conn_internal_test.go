package proxy

import (
	"net"
	"testing"
	"time"
)

// A copy in one direction ends when the other side is gone.
func TestConnectionReportsErrors(t *testing.T) {
	near, far := net.Pipe()
	far.Close()
	c := &conn{Conn: near, idle: time.Minute}
	if n, err := c.Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("a write to a closed connection wrote %d bytes, %v", n, err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a read from a closed connection got %d bytes, %v", n, err)
	}
}
