package chat

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Why turns end whose person may do less than when they began.
const (
	refusedReason = "the person may hold no conversation any more"
	lessReason    = "the person may do less than when it began; say it again for what is allowed now"
	narrowReason  = "the API token by which it came may do less than when it began; say it again for what is allowed now"
)

// errTokenEnded is why a turn ends, or does not begin, whose way in is closed.
var errTokenEnded = errors.New("the API token by which it came was withdrawn, or has expired; say it again with another one")

// watchRights ends a turn whose person may do less than when it began: who was disabled,
// or left a group, goes on with nothing that was under way, and neither does who came by
// a token that is good no longer.
func (w *worker) watchRights(ctx context.Context, j *job, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(min(w.e.opts.Poll, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		then := j.actor.Load()
		if then == nil {
			continue // it asks itself first
		}
		if reason := w.lessThan(ctx, j, *then); reason != "" {
			cancel(&stoppedError{Failed, reason, "The turn was ended: " + reason + "."})
			return
		}
	}
}

// lessThan says why a turn is not to go on, "" where it may. Where what is allowed cannot
// be known it goes on.
func (w *worker) lessThan(ctx context.Context, j *job, then account.Principal) (reason string) {
	now, err := w.principal(ctx, j)
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy):
		return ""
	case errors.Is(err, errTokenEnded):
		return errTokenEnded.Error()
	case now.User != "" && then.Scopes&^now.Scopes != 0: // which tokens alone bound
		return narrowReason
	case err != nil:
		return refusedReason
	case then.Admin && !now.Admin:
		return lessReason
	}
	for group, role := range then.Groups {
		if now.Groups[group] < role {
			return lessReason
		}
	}
	return ""
}
