package terminal

import (
	"io"
	"sync"
)

// Notices is a writer for notices to the user. While a conversation owns the terminal it
// shows them there, otherwise they go to another writer. It is safe for concurrent use.
type Notices struct {
	out io.Writer

	mu     sync.Mutex
	output chan string // nil while no conversation owns the terminal
}

// NewNotices returns notices that go to out by default.
func NewNotices(out io.Writer) *Notices { return &Notices{out: out} }

// Write never waits for the screen: it drops notices when the screen is far behind.
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

// subscribe calls show with each notice, sequentially, until stop is called. stop waits for the
// last call.
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
