package console

import (
	"io"
	"sync"
)

// ProgressLine shows progress on a line that is removed before other output. It
// is safe for concurrent use.
type ProgressLine struct {
	Console *Console
	mu      sync.Mutex
	done    func() // ends the shown progress; nil if none is shown
}

// Show displays progress for an operation, in place of any previous one.
func (p *ProgressLine) Show(what string) {
	p.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = p.Console.ShowProgress(what)
}

// End removes the progress line, if one is shown.
func (p *ProgressLine) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil {
		p.done()
		p.done = nil
	}
}

// WrapWriter returns a writer to w that removes the progress line before each
// write.
func (p *ProgressLine) WrapWriter(w io.Writer) io.Writer { return progressWriter{w, p} }

// progressWriter removes the progress line before each write.
type progressWriter struct {
	io.Writer
	line *ProgressLine
}

func (w progressWriter) Write(b []byte) (int, error) {
	w.line.End()
	return w.Writer.Write(b)
}
