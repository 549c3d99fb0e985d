package chat

import (
	"errors"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestConflictingUpdateStartsOver(t *testing.T) {
	e := &Engine{db: storetest.Open(t, storetest.SQLite(t))}
	failure := errors.New("failure")
	for _, tt := range []struct {
		name   string
		result func(try int) error
		want   error
		tries  int
	}{
		{"two conflicts", func(try int) error {
			if try < 3 {
				return store.ErrConflict
			}
			return nil
		}, nil, 3},
		{"endless conflicts", func(int) error { return store.ErrConflict }, store.ErrConflict, maxCommitAttempts},
		{"another error", func(int) error { return failure }, failure, 1},
	} {
		tries := 0
		err := e.update(t.Context(), "none", func(*conversationTx) error {
			tries++
			return tt.result(tries)
		})
		if !errors.Is(err, tt.want) || tries != tt.tries {
			t.Errorf("%s: %v after %d tries, want %v after %d", tt.name, err, tries, tt.want, tt.tries)
		}
	}
}
