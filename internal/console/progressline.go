package console

import (
	"io"
	"sync"
)

// ProgressLine is a progress line that disappears before other output. It is
// safe for concurrent use.
type ProgressLine struct {
	Console *Console
	mu      sync.Mutex
	done    func() // ends the shown progress; nil if none
}

// Show shows an operation instead of the one before.
func (p *ProgressLine) Show(what string) {
	p.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = p.Console.ShowProgress(what)
}

// End ends the shown progress.
func (p *ProgressLine) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil {
		p.done()
		p.done = nil
	}
}

// WrapWriter returns a writer that ends the shown progress before it writes.
func (p *ProgressLine) WrapWriter(w io.Writer) io.Writer { return progressWriter{w, p} }

// progressWriter ends the shown progress before it writes.
type progressWriter struct {
	io.Writer
	line *ProgressLine
}

func (w progressWriter) Write(b []byte) (int, error) {
	w.line.End()
	return w.Writer.Write(b)
}
