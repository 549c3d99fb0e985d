package proxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection to a script or to a host. It is closed when no data
// passes in either direction for the idle timeout. An explicit deadline takes
// precedence until cleared. Reading a request header sets such a deadline, so
// that a slow script cannot keep a connection open.
type conn struct {
	net.Conn
	server  *Server
	idle    time.Duration
	metered bool   // whether its bytes count towards Options.MaxBytes
	release func() // releases its slot in the listener

	passed atomic.Int64
	closed sync.Once

	mu        sync.Mutex // guards the fields below and orders deadlines
	heldRead  bool
	heldWrite bool
	recording bool
	head      []byte
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		if c.recording {
			// net/http has the same limit.
			c.head = append(c.head, p[:min(n, 2*maxHeader-len(c.head))]...)
		}
		c.mu.Unlock()
		if over := c.recordBytes(n); over != nil {
			return 0, over
		}
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.resetIdle()
	n, err := c.Conn.Write(p)
	if over := c.recordBytes(n); over != nil && err == nil {
		err = over
	}
	return n, err
}

// recordBytes counts n transferred bytes. It returns an error if the limit is
// exceeded.
func (c *conn) recordBytes(n int) error {
	c.passed.Add(int64(n))
	c.resetIdle()
	if c.metered && !c.server.spendQuota(int64(n)) {
		c.Close()
		return errQuota
	}
	return nil
}

// resetIdle restarts the idle timeout.
func (c *conn) resetIdle() {
	t := time.Now().Add(c.idle)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.heldRead {
		c.Conn.SetReadDeadline(t)
	}
	if !c.heldWrite {
		c.Conn.SetWriteDeadline(t)
	}
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heldRead = !t.IsZero(); !c.heldRead {
		t = time.Now().Add(c.idle)
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heldWrite = !t.IsZero(); !c.heldWrite {
		t = time.Now().Add(c.idle)
	}
	return c.Conn.SetWriteDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// CloseWrite closes the write side of the connection.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}

func (c *conn) Close() error {
	err := net.ErrClosed
	c.closed.Do(func() {
		err = c.Conn.Close()
		if c.release != nil {
			c.release()
		}
		c.server.untrack(c)
	})
	return err
}

// takeHead returns the data recorded so far and stops recording.
func (c *conn) takeHead() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	head := c.head
	c.head, c.recording = nil, false
	return head
}

// listener limits the number of open connections. Further connections wait in
// the system's accept queue.
type listener struct {
	net.Listener
	server *Server
}

func (l *listener) Accept() (net.Conn, error) {
	s := l.server
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		return nil, net.ErrClosed
	}
	free := func() { <-s.slots }
	raw, err := l.Listener.Accept()
	if err != nil {
		free()
		return nil, err
	}
	c := &conn{Conn: raw, server: s, idle: s.idle, release: free, recording: true}
	if !s.track(c) {
		raw.Close()
		free()
		return nil, net.ErrClosed
	}
	return c, nil
}

// singleListener is a listener that accepts an existing connection. Its second
// Accept waits until that connection is closed and then returns an error.
type singleListener struct {
	*innerConn
	once sync.Once
}

func (l *singleListener) Accept() (net.Conn, error) {
	var first net.Conn
	l.once.Do(func() { first = l.innerConn })
	if first != nil {
		return first, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *singleListener) Addr() net.Addr { return l.LocalAddr() }

// innerConn is a connection inside a CONNECT tunnel. It serves requests to a
// single target.
type innerConn struct {
	net.Conn
	target target
	done   chan struct{}
	end    sync.Once
}

func (c *innerConn) Close() error {
	err := c.Conn.Close()
	c.end.Do(func() { close(c.done) })
	return err
}

// replayConn is a connection that first returns data that was already read.
type replayConn struct {
	*conn
	r io.Reader
}

func (c *replayConn) Read(p []byte) (int, error) { return c.r.Read(p) }
