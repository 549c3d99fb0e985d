package account

import (
	"encoding/json"
	"time"

	"github.com/loadout-dev/loadout/internal/seal"
)

// Hold takes a turn of the passwords until it is given back.
func (p *Passwords) Hold() (release func()) {
	p.turns <- struct{}{}
	return func() { <-p.turns }
}

// Waiting is how many wait for a turn.
func (p *Passwords) Waiting() int { return len(p.queue) }

// Keys is how many keys are remembered.
func (l *Limiter) Keys() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys)
}

// Forget has a provider that could not be reached be looked for at once.
func Forget(o *OIDC) {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	o.failed = nil
}

// Aged is the value of the cookie of a sign-in as if it had begun so long ago.
func Aged(s *seal.Sealer, value string, by time.Duration) (string, error) {
	p, err := opened(s, value)
	if err != nil {
		return "", err
	}
	p.Ends = p.Ends.Add(-by)
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	return s.Seal(data, pendingLabel)
}

// StateOf is the state of the sign-in in a cookie.
func StateOf(s *seal.Sealer, value string) (string, error) {
	p, err := opened(s, value)
	return p.State, err
}

func opened(s *seal.Sealer, value string) (p pending, err error) {
	data, err := s.Open(value, pendingLabel)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	return p, err
}
