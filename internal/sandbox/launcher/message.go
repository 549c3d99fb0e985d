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

// body reads what follows a header.
func (s *Sandbox) body(header []byte, v any) (uint32, error) {
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

// receive hands out what the stage says until it ends.
func (s *Sandbox) receive() {
	defer s.lost()
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
				s.answer(m.ID, answer{started: m})
			}
		case stage.KindCollected:
			var m stage.Collected
			if json.Unmarshal(b, &m) == nil {
				s.answer(m.ID, answer{collected: m})
			}
		case stage.KindExited:
			var m stage.Exited
			if json.Unmarshal(b, &m) == nil {
				s.exited(&m)
			}
		}
	}
}

// ask registers a request; the caller sends it.
func (s *Sandbox) ask() (int, chan answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	c := make(chan answer, 1)
	s.waiting[s.next] = c
	return s.next, c
}

func (s *Sandbox) answer(id int, a answer) {
	s.mu.Lock()
	c := s.waiting[id]
	delete(s.waiting, id)
	s.mu.Unlock()
	if c != nil {
		c <- a
	}
}

// lost ends everything that waits, as the stage has gone.
func (s *Sandbox) lost() {
	<-s.ended
	s.mu.Lock()
	waiting, procs := s.waiting, s.procs
	s.waiting, s.procs = map[int]chan answer{}, map[int]*process{}
	s.mu.Unlock()
	for _, c := range waiting {
		c <- answer{err: errGone}
	}
	for _, p := range procs {
		p.lost()
	}
}

var errGone = sandbox.ErrEnded

// head keeps the beginning of what a stage writes to its standard error, which is
// nothing unless it crashes, and then says first why.
type head struct {
	mu sync.Mutex
	b  []byte
}

func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	const most = 4 << 10
	h.b = append(h.b, b[:min(len(b), most-len(h.b))]...)
	return len(b), nil
}

// line is the first line of what was written that says something.
func (h *head) line() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for line := range strings.Lines(string(h.b)) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return "it said nothing"
}
