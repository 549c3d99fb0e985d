package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/loadout-dev/loadout/internal/remote"
)

// meter shows the progress of a slow operation on a line of the terminal. A nil
// meter shows nothing. Its methods are safe for concurrent use.
type meter struct {
	*app
	mu     sync.Mutex
	amount string // from the last report
}

// newMeter returns nil if standard error is not a terminal.
func (a *app) newMeter() *meter {
	if a.quiet || !isTerminal(a.stderr) {
		return nil
	}
	return &meter{app: a}
}

// report records the progress.
func (m *meter) report(p remote.Progress) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.amount = formatProgress(p)
}

// begin shows the line after a delay, until done is called.
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
		text := m.formatLine(what, time.Since(began))
		fmt.Fprintf(m.stderr, "\r%s%s", text, strings.Repeat(" ", max(shown-textWidth(text), 0)))
		shown = textWidth(text)
	}
}

// formatLine returns the line, truncated to the width of the terminal so that
// it can be erased.
func (m *meter) formatLine(what string, since time.Duration) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprintf("%s … %ds", what, int(since.Seconds()))
	if m.amount != "" {
		text = fmt.Sprintf("%s … %ds", m.amount, int(since.Seconds()))
	}
	if f, ok := asFile(m.stderr); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
			return clip(text, w-1)
		}
	}
	return clip(text, 79)
}

func formatProgress(p remote.Progress) string {
	amount := func(n int64) string {
		if p.Bytes {
			return formatSize(n)
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
