package upstream

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// slowProcess is a process that reads only if told to.
type slowProcess struct {
	read chan struct{} // closed when the process reads

	mu    sync.Mutex
	reads bool
	lines []string
}

func (p *slowProcess) Read([]byte) (int, error) { return 0, io.EOF }
func (p *slowProcess) Close() error             { return nil }
func (p *slowProcess) Stderr() string           { return "" }

func (p *slowProcess) add(b []byte) {
	id := "cancel"
	if m, err := jsonrpc.DecodeMessage(b); err == nil && m.(*jsonrpc.Request).IsCall() {
		id = m.(*jsonrpc.Request).ID.Raw().(string)
	}
	p.lines = append(p.lines, id)
}

func (p *slowProcess) Write(b []byte) (int, error) {
	<-p.read
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(b)
	return len(b), nil
}

func (p *slowProcess) TryWrite(b []byte) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reads {
		p.add(b)
	}
	return p.reads, nil
}

func (p *slowProcess) setReads() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads = true
}

// Lines stay in order although some are written by their callers: a cancellation does
// not precede its request. A caller does not wait after its context is done.
func TestStdioWritesStayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowProcess{read: make(chan struct{})}
		c := &stdioConn{proc: p, in: make(chan incomingLine), out: make(chan *outgoingLine), done: make(chan struct{})}
		go c.write()
		defer c.Close()
		call := func(id string) *jsonrpc.Request {
			rid, err := jsonrpc.MakeID(id)
			if err != nil {
				t.Fatal(err)
			}
			return &jsonrpc.Request{ID: rid, Method: "tools/call"}
		}
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 3)
		write := func(ctx context.Context, m jsonrpc.Message) {
			go func() { results <- c.Write(ctx, m) }()
			synctest.Wait()
		}
		write(ctx, call("first"))
		write(ctx, call("unsent"))
		cancel()
		for range 2 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
		}
		p.setReads() // there is room again, but the first line is still being written
		write(t.Context(), &jsonrpc.Request{Method: "notifications/cancelled"})
		close(p.read)
		if err := <-results; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := c.Write(t.Context(), call("last")); err != nil {
			t.Error(err)
		}
		if got := strings.Join(p.lines, " "); got != "first cancel last" {
			t.Errorf("the process got %q", got)
		}
		if c.queued != 0 {
			t.Errorf("%d lines are queued, want 0", c.queued)
		}
		if err := c.Write(ctx, call("never")); !errors.Is(err, errUnsent) {
			t.Errorf("with a context that is done: %v", err)
		}
	})
}
