package terminal

import (
	"bytes"
	"io"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// Limits of the screen size. Each cell takes memory, and a terminal may report
// an arbitrary size.
const (
	maxWidth  = 1000
	maxHeight = 500
)

// clampSize limits the screen size reported in msg.
func clampSize(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		return tea.WindowSizeMsg{Width: min(size.Width, maxWidth), Height: min(size.Height, maxHeight)}
	}
	return msg
}

// observedTerminal wraps a terminal and reports the renderer's first write.
// Before that write, nothing can be printed above the screen.
type observedTerminal struct {
	*os.File
	onDraw func() // called after the first write; must not block
	once   sync.Once
}

// Write writes to the terminal. In its first write, the renderer enables
// bracketed paste mode.
func (w *observedTerminal) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		w.once.Do(w.onDraw)
	}
	return n, err
}

// programOption returns the option that makes the program write to w.
func (w *observedTerminal) programOption() tea.ProgramOption {
	if width, height, err := term.GetSize(int(w.Fd())); err == nil && (width > maxWidth || height > maxHeight) {
		return func(p *tea.Program) {
			tea.WithOutput(struct{ io.Writer }{w})(p)
			tea.WithWindowSize(min(width, maxWidth), min(height, maxHeight))(p)
		}
	}
	return tea.WithOutput(w)
}
