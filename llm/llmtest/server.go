package llmtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/llm"
)

// Turn is what a server does with one request.
type Turn struct {
	// From makes the turn of the request that it answers, in place of all below, as
	// where a call needs what a result said. Nil is none.
	From func(body []byte) Turn

	Thinking  string   // what the model thinks first
	Signature string   // of the thoughts, where the vendor signs them
	Text      []string // pieces of the answer
	Calls     []llm.Call
	Usage     llm.Usage
	// Stop is why it ends; "" is [llm.StopTools] where there are calls, else [llm.StopEnd].
	Stop llm.Stop

	// Cut ends the connection after all this, without the end of the answer.
	Cut bool
	// Hang leaves the connection open instead, until the client goes.
	Hang bool

	// Status refuses the request, where it is not 0, and After is the header Retry-After.
	Status  int
	After   string
	Message string
}

func (turn *Turn) stop() llm.Stop {
	switch {
	case turn.Stop != "":
		return turn.Stop
	case len(turn.Calls) > 0:
		return llm.StopTools
	}
	return llm.StopEnd
}

// Server answers as a script says, a turn a request, and keeps what it was sent. It
// listens on the loopback interface. A request after the last turn is answered as
// the last one.
type Server struct {
	URL string

	t      testing.TB
	vendor *Vendor
	hangs  chan struct{} // told when a turn that hangs has sent all it has
	gone   chan struct{} // told when a client went from one

	mu     sync.Mutex
	script []Turn
	bodies [][]byte
}

// NewServer starts a server, which the end of the test stops.
func NewServer(t testing.TB, v *Vendor, script ...Turn) *Server {
	s := &Server{t: t, vendor: v, script: script, hangs: make(chan struct{}, 16), gone: make(chan struct{}, 16)}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.URL = web.URL
	return s
}

// Then adds turns to the script.
func (s *Server) Then(script ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, script...)
}

// Bodies are the bodies of the requests so far.
func (s *Server) Bodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// Prompts are the prompts of the requests so far, as [Vendor.Prompt] reads them.
func (s *Server) Prompts() [][]any {
	var out [][]any
	for _, body := range s.Bodies() {
		p, err := s.vendor.Prompt(body)
		if err != nil {
			s.t.Fatalf("a request cannot be read: %v\n%s", err, body)
		}
		out = append(out, p)
	}
	return out
}

// take keeps a request, and returns its turn and its body.
func (s *Server) take(r *http.Request) (*Turn, []byte) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("reading a request: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, body)
	return &s.script[min(len(s.bodies), len(s.script))-1], body
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	turn, body := s.take(r)
	if turn.From != nil {
		turn = new(turn.From(body))
	}
	if turn.Status != 0 {
		if turn.After != "" {
			w.Header().Set("Retry-After", turn.After)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(turn.Status)
		io.WriteString(w, s.vendor.Refuse(turn))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	begin, end := s.vendor.Answer(turn, turn.stop())
	io.WriteString(w, begin)
	if err := http.NewResponseController(w).Flush(); err != nil {
		s.t.Errorf("flush: %v", err)
	}
	switch {
	case turn.Hang:
		s.hangs <- struct{}{}
		<-r.Context().Done()
		s.gone <- struct{}{}
	case turn.Cut:
		panic(http.ErrAbortHandler)
	default:
		io.WriteString(w, end)
	}
}

// SSE is one event of a stream, with a name where it has one.
func SSE(name, data string) string {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return fmt.Sprintf("%sdata: %s\n\n", name, data)
}
