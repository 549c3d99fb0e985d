//go:build unix

package hub_test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
)

// relayState is what a relay does with its connections.
type relayState int

const (
	forwarding relayState = iota
	lost                  // nothing passes and nothing is closed, as when packets are lost
	reset                 // they are reset, and so are new ones
)

// relay connects a node to PostgreSQL, until it is told to fail. After a loss it
// forwards what it has received before and meanwhile, as a network does that retransmits.
type relay struct {
	url    string
	socket string // of the server
	l      net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	state   relayState
	closed  bool
	conns   map[*net.TCPConn]bool // with nodes
}

// newRelay starts a relay to the database at an address of [storetest.Postgres].
func newRelay(t testing.TB, database string) *relay {
	t.Helper()
	u := must(url.Parse(database))(t)
	query := u.Query()
	r := &relay{socket: filepath.Join(query.Get("host"), ".s.PGSQL.5432"), l: must(net.Listen("tcp", "127.0.0.1:0"))(t), conns: map[*net.TCPConn]bool{}}
	r.changed = sync.NewCond(&r.mu)
	query.Del("host")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = r.l.Addr().String(), query.Encode()
	r.url = u.String()
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		r.l.Close()
		r.mu.Lock()
		r.closed = true
		r.resetAll()
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

// set changes the state.
func (r *relay) set(state relayState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
	if state == reset {
		r.resetAll()
	}
	r.changed.Broadcast()
}

// resetAll resets all connections. The caller must hold r.mu.
func (r *relay) resetAll() {
	for conn := range r.conns {
		conn.SetLinger(0)
		conn.Close()
	}
	r.changed.Broadcast()
}

func (r *relay) accept() {
	for {
		conn, err := r.l.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.conns[conn.(*net.TCPConn)] = true
		if r.state == reset || r.closed {
			r.resetAll()
		}
		r.mu.Unlock()
		r.wg.Go(func() { r.serve(conn.(*net.TCPConn)) })
	}
}

// serve connects a node's connection to the server.
func (r *relay) serve(node *net.TCPConn) {
	defer func() {
		node.Close()
		r.mu.Lock()
		delete(r.conns, node)
		r.mu.Unlock()
	}()
	server, err := net.Dial("unix", r.socket)
	if err != nil {
		return
	}
	defer server.Close()
	var back sync.WaitGroup
	back.Go(func() {
		r.copy(node, server)
		node.Close()
	})
	r.copy(server, node)
	server.Close()
	back.Wait()
}

// copy forwards data in one direction, until either end is closed.
func (r *relay) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !r.waitForwarding() {
			return
		}
		_, failed := to.Write(buffer[:n])
		if errors.Join(err, failed) != nil {
			return
		}
	}
}

// waitForwarding waits while packets are lost. It returns false when the relay ends.
func (r *relay) waitForwarding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.state == lost && !r.closed {
		r.changed.Wait()
	}
	return !r.closed
}
