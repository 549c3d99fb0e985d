package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// memory is a server in this process, reached by a transport of the type
// "memory", so that tests of time need none.
type memory struct {
	mu     sync.Mutex
	down   error // result of a connection attempt
	dials  []time.Time
	mute   atomic.Bool // discards writes
	broken []func()    // ends of the connections
	by     map[string]int
}

func (m *memory) set(down error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// tried returns the number of connection attempts.
func (m *memory) tried() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.dials)
}

// cut breaks all connections.
func (m *memory) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.broken {
		f()
	}
	m.broken = nil
}

func (m *memory) transport(_ *upstream.Config, u string) (mcp.Transport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials = append(m.dials, time.Now())
	if m.down != nil {
		return nil, m.down
	}
	client, server := mcp.NewInMemoryTransports()
	s := newServer("memory")
	mcp.AddTool(s, &mcp.Tool{Name: "where"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		m.mu.Lock()
		m.by[u]++
		m.mu.Unlock()
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: u}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "asks"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if r, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Action + fmt.Sprint(r.Content["name"]) + req.Params.RequestState}}}, nil, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "name?"}}, RequestState: "!"}, nil, nil
	})
	ss, err := s.Connect(context.Background(), server, nil)
	if err != nil {
		return nil, err
	}
	m.broken = append(m.broken, func() { ss.Close() })
	return &muting{client, m}, nil
}

// muting is a transport that discards writes while its server is mute.
type muting struct {
	mcp.Transport
	m *memory
}

type mutingConn struct {
	mcp.Connection
	m *memory
}

func (t *muting) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	return &mutingConn{c, t.m}, err
}

func (c *mutingConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if c.m.mute.Load() {
		return nil
	}
	return c.Connection.Write(ctx, msg)
}

func memoryPool(o *upstream.PoolOptions) (*memory, *upstream.Pool) {
	m := &memory{by: map[string]int{}}
	if o == nil {
		o = &upstream.PoolOptions{}
	}
	o.Dialer = &upstream.Dialer{Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){"memory": m.transport}}
	return m, upstream.NewPool(o)
}

func memoryConfig(name string) *upstream.Config {
	return &upstream.Config{Name: name, Type: "memory", URLs: []string{"memory://" + name}}
}

func state(t *testing.T, s *upstream.Server, want upstream.State) {
	t.Helper()
	synctest.Wait()
	if st := s.Status(); st.State != want {
		t.Fatalf("state = %s (%s), want %s", st.State, st.Error, want)
	}
}

func TestPermissionIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		m.set(&upstream.NotAllowedError{Reason: "nobody trusts it"})
		s := p.Server(memoryConfig("one"), "")
		for range 6 {
			if err := s.Connect(t.Context()); err == nil || !errors.As(err, new(*upstream.NotAllowedError)) {
				t.Fatalf("without permission: %v", err)
			}
		}
		state(t, s, upstream.Dead)
		tried := len(m.dials)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(m.dials); tried != 6 || got != tried {
			t.Errorf("tried %d times, then %d", tried, got)
		}
		m.set(nil)
		works(t, s)
		state(t, s, upstream.Ready)
	})
}

// unreadable is the error of an OAuth handler whose storage is out of reach.
type unreadable struct{ error }

func (unreadable) Local() {}

// Failures to read our own sign-ins do not count as failures of the server: it is
// tried again with the next use, and in the background less and less often.
func TestLocalErrorIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		s := p.Server(memoryConfig("one"), "")
		m.set(unreadable{errors.New("database cannot be reached; try again")})
		for range 6 {
			err := s.Connect(t.Context())
			if _, ok := errors.AsType[upstream.LocalError](err); !ok {
				t.Fatalf("error %v, want a LocalError", err)
			}
			contains(t, "error", err.Error(), `server "one"`, "database cannot be reached; try again")
		}
		state(t, s, upstream.Init) // the server has not failed
		tried := m.tried()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if more := m.tried() - tried; tried != 6 || more < 3 || more > 12 {
			t.Errorf("tried %d times, then %d times in 5 minutes, want 6, then 3 to 12", tried, more)
		}
		m.set(nil)
		works(t, s)

		// They do not reset the circuit breaker of a server that has failed either.
		time.Sleep(time.Minute)
		m.set(errors.New("out of order"))
		m.cut()
		synctest.Wait()
		for range 6 {
			s.Connect(t.Context())
		}
		m.set(unreadable{errors.New("database cannot be reached; try again")})
		time.Sleep(2 * time.Minute)
		tried = m.tried()
		if err := s.Connect(t.Context()); err == nil || m.tried() != tried {
			t.Errorf("tried a failed server %d times for a call", m.tried()-tried)
		} else {
			contains(t, "error", err.Error(), "out of order")
		}
	})
}

func TestL5States(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		cfg := memoryConfig("one")
		cfg.AtStart = true
		s := p.Server(cfg, "")
		state(t, s, upstream.Init)
		works(t, s)

		// A lost connection is replaced immediately, without a call.
		time.Sleep(time.Minute)
		m.cut()
		synctest.Wait()
		state(t, s, upstream.Ready)

		// It is lost for longer.
		time.Sleep(time.Minute)
		m.set(errors.New("out to lunch"))
		m.cut()
		state(t, s, upstream.Degraded)
		if l := s.LastListing(); l == nil || len(l.Tools) == 0 {
			t.Error("the last known tools are gone")
		}
		time.Sleep(time.Hour)
		state(t, s, upstream.Dead)
		contains(t, "error", s.Status().Error, `server "one"`, "out to lunch")
		start := time.Now()
		if err := s.Connect(t.Context()); err == nil || time.Since(start) > 0 {
			t.Errorf("behind the breaker: %v after %v", err, time.Since(start))
		}

		// Attempts never end, and are a minute apart at the most.
		m.mu.Lock()
		dials := m.dials
		m.mu.Unlock()
		if len(dials) < 60 {
			t.Errorf("%d attempts in an hour", len(dials))
		}
		for i := 3; i < len(dials); i++ {
			if gap := dials[i].Sub(dials[i-1]); gap > time.Minute {
				t.Errorf("attempt %d came after %v", i, gap)
			}
		}
		m.set(nil)
		time.Sleep(time.Minute)
		state(t, s, upstream.Ready)
		works(t, s)
	})
}

func TestL5Health(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		s := p.Server(memoryConfig("one"), "")
		var states []upstream.State
		defer p.Subscribe(func(s *upstream.Server) {
			if st := s.Status().State; len(states) == 0 || states[len(states)-1] != st {
				states = append(states, st)
			}
		})()
		works(t, s)
		m.mute.Store(true)
		time.Sleep(65 * time.Second) // one check has failed; the second is on its way
		state(t, s, upstream.Ready)
		m.set(errors.New("gone"))
		time.Sleep(10 * time.Second)
		state(t, s, upstream.Degraded)
		contains(t, "error", s.Status().Error, "gone")
		m.mute.Store(false)
		m.set(nil)
		time.Sleep(10 * time.Second)
		state(t, s, upstream.Ready)
		works(t, s)
		if got := fmt.Sprint(states); got != "[READY DEGRADED READY]" {
			t.Errorf("subscribers saw %s", got)
		}
	})
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		s := p.Server(memoryConfig("one"), "")
		works(t, s)
		time.Sleep(9 * time.Minute)
		state(t, s, upstream.Ready)
		time.Sleep(2 * time.Minute)
		state(t, s, upstream.Init)
		if s.LastListing() == nil {
			t.Error("an idle server has lost its listing")
		}
		works(t, s)
		if len(m.dials) != 2 {
			t.Errorf("%d connections, want 2", len(m.dials))
		}
		s.Release()
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if n := len(p.Servers()); n != 0 {
			t.Errorf("%d servers in the pool that nobody holds", n)
		}
	})
}

func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		cfg := memoryConfig("one")
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if err := p.Server(cfg, "me").Connect(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if len(m.dials) != 1 {
			t.Errorf("%d connections, want 1", len(m.dials))
		}
		if err := p.Server(cfg, "another").Connect(t.Context()); err != nil || len(m.dials) != 2 {
			t.Errorf("another identity: %v, %d connections, want 2", err, len(m.dials))
		}
	})
}

func TestPoolLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := memoryPool(&upstream.PoolOptions{MaxConns: 2})
		defer p.Close()
		a, b, c := p.Server(memoryConfig("a"), ""), p.Server(memoryConfig("b"), ""), p.Server(memoryConfig("c"), "")
		works(t, a)
		time.Sleep(time.Second)
		works(t, b)
		time.Sleep(time.Second)
		works(t, c)
		state(t, a, upstream.Init)
		state(t, b, upstream.Ready)
	})
}

func TestInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		cfg := memoryConfig("two")
		cfg.URLs = []string{"memory://1", "memory://2"}
		s := p.Server(cfg, "")
		works(t, s)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { s.Call(ctx, &mcp.CallToolParams{Name: "hang"}, nil) })
		synctest.Wait()
		busy := ""
		for range 4 {
			at, err := call(t, s, "where", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if busy == "" {
				busy = at
			}
			if at != busy {
				t.Errorf("a call went to the instance with more calls on their way")
			}
		}
		cancel()
		group.Wait()
		m.cut()
		works(t, s)
	})
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := memoryPool(nil)
		defer p.Close()
		cfg := memoryConfig("one")
		cfg.Concurrency = 1
		s := p.Server(cfg, "")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Call(ctx, &mcp.CallToolParams{Name: "hang"}, nil)
		}()
		synctest.Wait()
		_, err := call(t, s, "echo", map[string]any{"text": "x"}, &upstream.CallOptions{Timeout: time.Second})
		if err == nil || errors.As(err, new(*upstream.OutcomeUnknownError)) {
			t.Errorf("error = %v, want one of a call that was not sent", err)
		}
		cancel()
		<-done
		works(t, s)
	})
}

func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := memoryPool(nil)
		defer p.Close()
		s := p.Server(memoryConfig("one"), "")
		res, err := s.Call(t.Context(), &mcp.CallToolParams{Name: "asks"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !res.NeedsInput() || res.RequestState != "!" {
			t.Errorf("result = %+v, want one that needs input", res)
		}
		got, err := call(t, s, "asks", nil, &upstream.CallOptions{Elicit: func(_ context.Context, e *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": e.Message}}, nil
		}})
		if err != nil || got != "acceptone asks: name?!" {
			t.Errorf("answered: %q, %v", got, err)
		}
	})
}

// shelf is a cache in memory.
type shelf struct{ sync.Map }

func (c *shelf) Load(digest string) (*upstream.Listing, error) {
	l, _ := c.Map.Load(digest)
	if l == nil {
		return nil, nil
	}
	return l.(*upstream.Listing), nil
}

func (c *shelf) Store(digest string, l *upstream.Listing) error {
	c.Map.Store(digest, l)
	return nil
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &shelf{}
		_, p := memoryPool(&upstream.PoolOptions{Cache: c})
		works(t, p.Server(memoryConfig("one"), ""))
		p.Close()
		m, p := memoryPool(&upstream.PoolOptions{Cache: c})
		defer p.Close()
		s := p.Server(memoryConfig("one"), "")
		if l := s.LastListing(); l == nil || len(l.Tools) == 0 {
			t.Error("no listing of the process before")
		}
		if len(m.dials) != 0 {
			t.Error("connected to know")
		}
		p.Close()
		if err := s.Connect(t.Context()); err == nil {
			t.Error("connected after Close")
		}
	})
}

// Closing a server ends an attempt that is on its way at once, and counts it as no
// failure; who wants the server after that has a new one.
func TestCloseCancelsConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		m.mute.Store(true)
		s := p.Server(memoryConfig("one"), "")
		first := make(chan error, 1)
		go func() { first <- s.Connect(t.Context()) }()
		synctest.Wait() // it waits for an answer to the handshake
		start := time.Now()
		s.Close()
		second := make(chan error, 1)
		go func() {
			m.mute.Store(false)
			second <- s.Connect(t.Context())
		}()
		if err := <-first; time.Since(start) > time.Second {
			t.Errorf("the attempt ended after %v: %v", time.Since(start), err)
		}
		if err := <-second; err != nil {
			t.Errorf("after that: %v", err)
		}
		state(t, s, upstream.Ready)
		s.Close()
		state(t, s, upstream.Init)
		if err := s.Connect(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDialledConnectionsCountTowardLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := memoryPool(nil)
		defer p.Close()
		s := p.Server(memoryConfig("one"), "")
		conn, err := p.Dial(t.Context(), memoryConfig("one"), nil)
		if err != nil {
			t.Fatal(err)
		}
		state(t, s, upstream.Ready)
		conn.Close()
		state(t, s, upstream.Init)
		m.set(errors.New("out to lunch"))
		if _, err := p.Dial(t.Context(), memoryConfig("one"), nil); err == nil {
			t.Fatal("it was reached")
		}
		state(t, s, upstream.Degraded)
		m.set(nil)
		if conn, err = p.Dial(t.Context(), memoryConfig("one"), nil); err != nil {
			t.Fatal(err)
		}
		state(t, s, upstream.Ready)
		p.Close() // does not wait for the other user
		conn.Close()
	})
}
