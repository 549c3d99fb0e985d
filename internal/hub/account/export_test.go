package account

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loadout-dev/loadout/internal/encryption"
)

// Hold takes a turn of the passwords until it is given back.
func (p *Passwords) Hold() (release func()) {
	release, err := p.slots.Acquire(context.Background(), "test")
	if err != nil {
		panic(err)
	}
	return release
}

// Waiting is how many wait for a turn.
func (p *Passwords) Waiting() int {
	_, waiting := p.slots.Stats()
	return waiting
}

// Keys is how many keys are remembered.
func (l *Limiter) Keys() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys)
}

// Forget has a provider that could not be reached be looked for at once.
func Forget(o *OIDC) {
	o.discovering <- struct{}{}
	defer func() { <-o.discovering }()
	o.failed = nil
}

// Aged is the value of the cookie of a sign-in as if it had begun so long ago.
func Aged(s *encryption.Cipher, value string, by time.Duration) (string, error) {
	p, err := opened(s, value)
	if err != nil {
		return "", err
	}
	p.Ends = p.Ends.Add(-by)
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	return s.Encrypt(data, pendingLabel)
}

// StateOf is the state of the sign-in in a cookie.
func StateOf(s *encryption.Cipher, value string) (string, error) {
	p, err := opened(s, value)
	return p.State, err
}

func opened(s *encryption.Cipher, value string) (p pendingSignIn, err error) {
	data, err := s.Decrypt(value, pendingLabel)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	return p, err
}
