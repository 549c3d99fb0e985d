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

// Bounds of a screen: each of its cells is kept, and a terminal may say that it has
// four thousand millions of them.
const (
	maxWidth  = 1000
	maxHeight = 500
)

// bounded is a message to the program, with a size that is within the bounds.
func bounded(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		return tea.WindowSizeMsg{Width: min(size.Width, maxWidth), Height: min(size.Height, maxHeight)}
	}
	return msg
}

// watched is a terminal of which it is known when something was drawn on it: before
// that, nothing can be put above what is drawn.
type watched struct {
	*os.File
	drawn func() // called once; must not wait
	once  sync.Once
}

// Write writes to the terminal. The first drawing has it say when something is pasted.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		w.once.Do(w.drawn)
	}
	return n, err
}

// option has a program write here. A terminal beyond the bounds is not asked for its
// size.
func (w *watched) option() tea.ProgramOption {
	if width, height, err := term.GetSize(int(w.Fd())); err == nil && (width > maxWidth || height > maxHeight) {
		return func(p *tea.Program) {
			tea.WithOutput(struct{ io.Writer }{w})(p)
			tea.WithWindowSize(min(width, maxWidth), min(height, maxHeight))(p)
		}
	}
	return tea.WithOutput(w)
}
