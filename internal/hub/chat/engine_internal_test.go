package chat

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Of consecutive failures of a background task, only the first is logged.
func TestFirstOfConsecutiveFailuresIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := &Engine{opts: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		e.ctx, e.stop = context.WithCancelCause(t.Context())
		failure := errors.New("unavailable")
		results := []error{failure, failure, nil, failure, failure}
		var logged []int // lines in the log before each round
		e.runEvery(time.Second, func(context.Context) error {
			round := len(logged)
			logged = append(logged, strings.Count(log.String(), "\n"))
			if round == len(results) {
				e.stop(nil)
				return nil
			}
			return results[round]
		})
		if want := []int{0, 1, 1, 1, 2, 2}; !slices.Equal(logged, want) {
			t.Errorf("lines logged before each round: %v, want %v\n%s", logged, want, log.String())
		}
	})
}
