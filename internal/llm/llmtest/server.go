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

// Turn is the server's response to a request.
type Turn struct {
	// From, if set, returns the turn for a request, and the fields below are
	// ignored. It is needed, for example, if a call uses part of a result.
	From func(body []byte) Turn

	Thinking  string   // thinking before the text
	Signature string   // signature of the thinking, if the vendor signs it
	Text      []string // pieces of the text
	Calls     []llm.Call
	Usage     llm.Usage
	// Stop is the stop reason. The default is [llm.StopTools] if there are
	// calls, and [llm.StopEnd] otherwise.
	Stop llm.Stop

	// Cut closes the connection before the response is complete.
	Cut bool
	// Hang keeps the connection open until the client closes it.
	Hang bool

	// Status is the HTTP status of an error response, or 0 for no error. After
	// is the Retry-After header.
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

// Server is an HTTP server on the loopback interface. It responds to each
// request with the next turn of a script, or with the last turn if there are no
// more, and records the requests.
type Server struct {
	URL string

	t      testing.TB
	vendor *Vendor
	hangs  chan struct{} // receives a value when a hanging turn has sent its content
	done   chan struct{} // receives a value when a client has closed a hanging turn

	mu     sync.Mutex
	script []Turn
	bodies [][]byte
}

// NewServer starts a server that responds with script. The server is stopped
// when the test ends.
func NewServer(t testing.TB, v *Vendor, script ...Turn) *Server {
	s := &Server{t: t, vendor: v, script: script, hangs: make(chan struct{}, 16), done: make(chan struct{}, 16)}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.URL = web.URL
	return s
}

// Then appends turns to the script.
func (s *Server) Then(script ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, script...)
}

// Bodies returns the bodies of all requests so far.
func (s *Server) Bodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// Prompts returns the prompts of all requests so far, extracted by
// [Vendor.Prompt].
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

// recordRequest records a request. It returns the turn to respond with and the
// request body.
func (s *Server) recordRequest(r *http.Request) (*Turn, []byte) {
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
	turn, body := s.recordRequest(r)
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
		s.done <- struct{}{}
	case turn.Cut:
		panic(http.ErrAbortHandler)
	default:
		io.WriteString(w, end)
	}
}

// SSE formats a server-sent event. The name may be "".
func SSE(name, data string) string {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return fmt.Sprintf("%sdata: %s\n\n", name, data)
}
