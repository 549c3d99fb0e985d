package terminal

import (
	"io"
	"sync"
)

// Notices is what the program around a conversation writes for the person: to another
// writer, and while the conversation has the terminal, through it. It is safe for
// concurrent use.
type Notices struct {
	out io.Writer

	mu   sync.Mutex
	over chan string // nil while nobody has the terminal
}

// NewNotices returns notices that go to out where nothing else shows them.
func NewNotices(out io.Writer) *Notices { return &Notices{out: out} }

// Write never waits for the screen: where it is far behind, a notice is lost.
func (n *Notices) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over == nil {
		return n.out.Write(p)
	}
	select {
	case n.over <- string(p):
	default:
	}
	return len(p), nil
}

// to has show called with each notice, one after the other, until the result is called,
// which waits.
func (n *Notices) to(show func(string)) (stop func()) {
	over := make(chan string, 100)
	n.mu.Lock()
	n.over = over
	n.mu.Unlock()
	var showing sync.WaitGroup
	showing.Go(func() {
		for text := range over {
			show(text)
		}
	})
	return func() {
		n.mu.Lock()
		n.over = nil
		n.mu.Unlock()
		close(over)
		showing.Wait()
	}
}
