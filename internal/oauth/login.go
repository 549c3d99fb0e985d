package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// DefaultTimeout is the default time within which the user must sign in.
const DefaultTimeout = 5 * time.Minute

// ErrTimeout reports that the user did not sign in within the time limit.
var ErrTimeout = errors.New("sign-in timed out")

// A Login configures a sign-in with a callback URL on this machine. If Redirect
// is "", the callback URL has a free port.
type Login struct {
	Target

	// Show is called once with the URL of the sign-in page.
	Show func(page string)
	// Paste, if set, is a source of lines with callback URLs that the user has
	// copied from a browser.
	Paste io.Reader
	// Print is called with the reason why a pasted line was rejected.
	Print   func(string)
	Timeout time.Duration // 0 means [DefaultTimeout]
}

// Login signs the user in to a server, replacing an earlier sign-in. It returns
// the errors of [Store.Begin] and [Store.Finish], or [ErrTimeout].
func (s *Store) Login(ctx context.Context, l *Login) (*Info, error) {
	wait := l.Timeout
	if wait == 0 {
		wait = DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("%w (limit %v)", ErrTimeout, wait))
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
	answer, err := back.wait(ctx, a.State, l.Paste, l.Print)
	if err != nil {
		return nil, flowError(ctx, err)
	}
	return s.Finish(ctx, a, answer)
}
