package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/loadout-dev/loadout/remote"
)

// meter is a line on a terminal that says what goes on elsewhere, for how long, and
// how far it is. It is there only while that takes long. One of nil says nothing. Its
// methods are safe for concurrent use.
type meter struct {
	*app
	mu     sync.Mutex
	amount string // of what was told last
}

// meter is nil where nobody looks on.
func (a *app) meter() *meter {
	if a.quiet || !isTerminal(a.stderr) {
		return nil
	}
	return &meter{app: a}
}

// report notes how far it is.
func (m *meter) report(p remote.Progress) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.amount = meterText(p)
}

// begin shows the line after a while, until the function it returns is called.
func (m *meter) begin(what string) (done func()) {
	if m == nil {
		return func() {}
	}
	m.report(remote.Progress{})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		m.show(what, stop)
	}()
	return sync.OnceFunc(func() { close(stop); <-stopped })
}

func (m *meter) show(what string, stop <-chan struct{}) {
	began, shown := time.Now(), 0
	for wait := 400 * time.Millisecond; ; wait = 200 * time.Millisecond {
		select {
		case <-stop:
			if shown > 0 {
				fmt.Fprintf(m.stderr, "\r%s\r", strings.Repeat(" ", shown))
			}
			return
		case <-time.After(wait):
		}
		text := m.line(what, time.Since(began))
		fmt.Fprintf(m.stderr, "\r%s%s", text, strings.Repeat(" ", max(shown-columns(text), 0)))
		shown = columns(text)
	}
}

// line is cut to the width of the terminal: what is longer could not be wiped.
func (m *meter) line(what string, since time.Duration) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprintf("%s … %ds", what, int(since.Seconds()))
	if m.amount != "" {
		text = fmt.Sprintf("%s … %ds", m.amount, int(since.Seconds()))
	}
	if f, ok := file(m.stderr); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
			return clip(text, w-1)
		}
	}
	return clip(text, 79)
}

func meterText(p remote.Progress) string {
	amount := func(n int64) string {
		if p.Bytes {
			return sized(n)
		}
		return fmt.Sprint(n)
	}
	switch {
	case p.What == "":
		return ""
	case p.Total == 0:
		return fmt.Sprintf("%s: %s", p.What, amount(p.Done))
	}
	return fmt.Sprintf("%s: %s of %s, %d %%", p.What, amount(p.Done), amount(p.Total), 100*p.Done/p.Total)
}
