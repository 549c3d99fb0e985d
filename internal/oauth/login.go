package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// DefaultWait is how long a person has to sign in.
const DefaultWait = 5 * time.Minute

// ErrLate says that nobody signed in within the time there is.
var ErrLate = errors.New("nobody signed in")

// A Login is one sign-in, by a person who is there, with a browser that comes back to
// this machine: Redirect is where, and "" is a free port.
type Login struct {
	Target

	// Show is called once with the page that the person has to open.
	Show func(page string)
	// Paste, where set, gives lines that the person may type: the address that
	// their browser ended at.
	Paste io.Reader
	// Say tells the person what is wrong with such a line.
	Say  func(string)
	Wait time.Duration // 0 is [DefaultWait]
}

// Login lets a person sign in to a server, and keeps what comes of it in place of
// an earlier sign-in. The error is as that of [Store.Begin] and [Store.Finish], and
// [ErrLate] where nobody came back in time.
func (s *Store) Login(ctx context.Context, l *Login) (*Granted, error) {
	wait := l.Wait
	if wait == 0 {
		wait = DefaultWait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("%w within %v", ErrLate, wait))
	defer cancel()
	back, err := listen(l.Redirect)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	t := l.Target
	t.Redirect = back.url
	a, err := s.Begin(ctx, &t)
	if err != nil {
		return nil, err
	}
	l.Show(a.Page)
	answer, err := back.wait(ctx, a.State, l.Paste, l.Say)
	if err != nil {
		return nil, ended(ctx, err)
	}
	return s.Finish(ctx, a, answer)
}
