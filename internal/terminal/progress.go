package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress shows a slow operation on one line of a terminal. A nil *Progress
// shows nothing. It is safe for concurrent use.
type Progress struct {
	to     io.Writer
	width  func() int // width of the terminal; 0 if unknown
	mu     sync.Mutex
	amount string // text of the last report
}

// NewProgress returns a Progress that writes to a terminal.
func NewProgress(to io.Writer, width func() int) *Progress { return &Progress{to: to, width: width} }

// Report shows a progress text such as "reading: 3 of 10" instead of the
// operation's name.
func (p *Progress) Report(amount string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.amount = amount
}

// Begin shows an operation after a short delay until done is called.
func (p *Progress) Begin(what string) (done func()) {
	if p == nil {
		return func() {}
	}
	p.Report("")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		p.show(what, stop)
	}()
	return sync.OnceFunc(func() { close(stop); <-stopped })
}

func (p *Progress) show(what string, stop <-chan struct{}) {
	start, shown := time.Now(), 0
	for wait := 400 * time.Millisecond; ; wait = 200 * time.Millisecond {
		select {
		case <-stop:
			if shown > 0 {
				fmt.Fprintf(p.to, "\r%s\r", strings.Repeat(" ", shown))
			}
			return
		case <-time.After(wait):
		}
		text := p.line(what, time.Since(start))
		fmt.Fprintf(p.to, "\r%s%s", text, strings.Repeat(" ", max(shown-Width(text), 0)))
		shown = Width(text)
	}
}

// line returns the progress line. It is shorter than the terminal width, so
// that it can be erased.
func (p *Progress) line(what string, since time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.amount != "" {
		what = p.amount
	}
	limit := 80
	if w := p.width(); w > 1 {
		limit = w
	}
	return Clip(fmt.Sprintf("%s … %ds", what, int(since.Seconds())), limit-1)
}
