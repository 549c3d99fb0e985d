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

// Limits of the screen size. Each cell takes memory, and a terminal may report billions of
// them.
const (
	maxWidth  = 1000
	maxHeight = 500
)

// clampSize limits the size in a window size message.
func clampSize(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		return tea.WindowSizeMsg{Width: min(size.Width, maxWidth), Height: min(size.Height, maxHeight)}
	}
	return msg
}

// observedTerminal is a terminal that reports the first write of the renderer. Nothing can be
// printed above the screen before that.
type observedTerminal struct {
	*os.File
	onDraw func() // called once; must not block
	once   sync.Once
}

// Write writes to the terminal. The renderer enables bracketed paste in its first write.
func (w *observedTerminal) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		w.once.Do(w.onDraw)
	}
	return n, err
}

// programOption makes the program write here. A terminal beyond the limits is not asked for its
// size.
func (w *observedTerminal) programOption() tea.ProgramOption {
	if width, height, err := term.GetSize(int(w.Fd())); err == nil && (width > maxWidth || height > maxHeight) {
		return func(p *tea.Program) {
			tea.WithOutput(struct{ io.Writer }{w})(p)
			tea.WithWindowSize(min(width, maxWidth), min(height, maxHeight))(p)
		}
	}
	return tea.WithOutput(w)
}
