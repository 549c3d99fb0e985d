//go:build linux

package launcher

import (
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// readBody reads the body of a message after its header. It returns the message
// kind.
func (s *Sandbox) readBody(header []byte, v any) (uint32, error) {
	kind, size, err := stage.ParseHeader(header)
	if err != nil {
		return 0, err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(s.conn, b); err != nil {
		return 0, err
	}
	return kind, json.Unmarshal(b, v)
}

// dispatch handles the messages of the stage until it exits.
func (s *Sandbox) dispatch() {
	defer s.failAll()
	header := make([]byte, len(stage.FrameBytes(0, 0)))
	for {
		if _, err := io.ReadFull(s.conn, header); err != nil {
			return
		}
		kind, size, err := stage.ParseHeader(header)
		if err != nil {
			return
		}
		b := make([]byte, size)
		if _, err := io.ReadFull(s.conn, b); err != nil {
			return
		}
		switch kind {
		case stage.KindStarted:
			var m stage.Started
			if json.Unmarshal(b, &m) == nil {
				s.deliver(m.ID, answer{started: m})
			}
		case stage.KindCollected:
			var m stage.Collected
			if json.Unmarshal(b, &m) == nil {
				s.deliver(m.ID, answer{collected: m})
			}
		case stage.KindExited:
			var m stage.Exited
			if json.Unmarshal(b, &m) == nil {
				s.finishCommand(&m)
			}
		}
	}
}

// addRequest registers a request for the caller to send, and returns its ID and
// the channel for its response.
func (s *Sandbox) addRequest() (int, chan answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	c := make(chan answer, 1)
	s.waiting[s.next] = c
	return s.next, c
}

func (s *Sandbox) deliver(id int, a answer) {
	s.mu.Lock()
	c := s.waiting[id]
	delete(s.waiting, id)
	s.mu.Unlock()
	if c != nil {
		c <- a
	}
}

// failAll fails all pending requests and commands after the stage has exited.
func (s *Sandbox) failAll() {
	<-s.ended
	s.mu.Lock()
	waiting, procs := s.waiting, s.procs
	s.waiting, s.procs = map[int]chan answer{}, map[int]*process{}
	s.mu.Unlock()
	for _, c := range waiting {
		c <- answer{err: errGone}
	}
	for _, p := range procs {
		p.fail()
	}
}

var errGone = sandbox.ErrEnded

// headBuffer stores the start of a stage's standard error. A stage writes to
// standard error only when it crashes, with the reason first.
type headBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (h *headBuffer) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	const most = 4 << 10
	h.b = append(h.b, b[:min(len(b), most-len(h.b))]...)
	return len(b), nil
}

// firstLine returns the first non-empty line.
func (h *headBuffer) firstLine() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for line := range strings.Lines(string(h.b)) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return "no output"
}
