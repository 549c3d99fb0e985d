package terminal

import (
	"io"
	"sync"
)

// Notices is a writer for notices to the user. A conversation that uses the
// terminal shows them. Otherwise they go to another writer. Notices is safe for
// concurrent use.
type Notices struct {
	out io.Writer

	mu     sync.Mutex
	output chan string // nil while no conversation uses the terminal
}

// NewNotices returns a Notices that writes to out while no conversation uses
// the terminal.
func NewNotices(out io.Writer) *Notices { return &Notices{out: out} }

// Write writes a notice. It never waits for the screen. If too many notices are
// pending, it drops the notice.
func (n *Notices) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.output == nil {
		return n.out.Write(p)
	}
	select {
	case n.output <- string(p):
	default:
	}
	return len(p), nil
}

// subscribe calls show for each notice, one at a time, until stop is called.
// stop waits for the last call to finish.
func (n *Notices) subscribe(show func(string)) (stop func()) {
	over := make(chan string, 100)
	n.mu.Lock()
	n.output = over
	n.mu.Unlock()
	var showing sync.WaitGroup
	showing.Go(func() {
		for text := range over {
			show(text)
		}
	})
	return func() {
		n.mu.Lock()
		n.output = nil
		n.mu.Unlock()
		close(over)
		showing.Wait()
	}
}
