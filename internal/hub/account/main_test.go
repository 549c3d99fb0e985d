package account_test

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tokens keeps tokens in memory.
type tokens struct {
	mu   sync.Mutex
	rows []account.Token
	uses int
	err  error // of every question
}

func (s *tokens) AddToken(_ context.Context, t account.Token) (account.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.ID = strconv.Itoa(len(s.rows))
	s.rows = append(s.rows, t)
	return t, s.err
}

func (s *tokens) GetToken(_ context.Context, prefix string) (account.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.rows, func(t account.Token) bool { return t.Prefix == prefix })
	if s.err != nil || i < 0 {
		return account.Token{}, cmpErr(s.err, account.ErrNotFound)
	}
	return s.rows[i], nil
}

func (s *tokens) TouchToken(_ context.Context, id string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	for i := range s.rows {
		if s.rows[i].ID == id {
			s.rows[i].LastUsed = at
		}
	}
	return s.err
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// logins keeps sign-ins in memory.
type logins struct {
	mu    sync.Mutex
	rows  []account.Login
	notes int
	err   error // of every question
}

func (s *logins) find(hash []byte) int {
	return slices.IndexFunc(s.rows, func(l account.Login) bool { return bytes.Equal(l.Hash, hash) })
}

func (s *logins) AddLogin(_ context.Context, l account.Login) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, l)
	return s.err
}

func (s *logins) GetLogin(_ context.Context, hash []byte) (account.Login, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(hash)
	if s.err != nil || i < 0 {
		return account.Login{}, cmpErr(s.err, account.ErrNotFound)
	}
	return s.rows[i], nil
}

func (s *logins) TouchLogin(_ context.Context, hash []byte, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes++
	if i := s.find(hash); i >= 0 {
		s.rows[i].LastSeen = at
	}
	return s.err
}

func (s *logins) ReplaceLogin(_ context.Context, old, hash []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(old)
	if i < 0 {
		return account.ErrNotFound
	}
	s.rows[i].Hash = hash
	return s.err
}

func (s *logins) RemoveLogin(_ context.Context, hash []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(hash); i >= 0 {
		s.rows = slices.Delete(s.rows, i, i+1)
	}
	return s.err
}
