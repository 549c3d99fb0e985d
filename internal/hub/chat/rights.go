package chat

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Errors for a turn whose user has lost permissions before or during the turn.
var (
	errUserRefused   = errors.New("user is no longer permitted to use conversations")
	errUserNarrowed  = errors.New("user has fewer permissions than when the turn started; send the message again to use the current permissions")
	errTokenNarrowed = errors.New("API token used for the message has fewer scopes than before; send the message again to use the current scopes")
	errTokenEnded    = errors.New("API token used for the message was revoked or has expired; send the message again with another token")
)

// watchRights cancels a turn if its user or token loses permissions that they
// had when the turn started. It returns when ctx is done.
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
			continue // open has not checked the rights yet
		}
		if err := w.checkRights(ctx, j, *then); err != nil {
			cancel(&stoppedError{Failed, err.Error(), "The turn was ended: " + err.Error() + "."})
			return
		}
	}
}

// checkRights returns an error if the turn must end because the principal has
// lost permissions since the turn started. It returns nil if the current
// permissions cannot be read.
func (w *worker) checkRights(ctx context.Context, j *job, initial account.Principal) error {
	now, err := w.principal(ctx, j)
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy):
		return nil
	case errors.Is(err, errTokenEnded), errors.Is(err, errTokenNarrowed):
		return err
	case err != nil:
		return errUserRefused
	case initial.Scopes&^now.Scopes != 0: // only a token limits scopes
		return errTokenNarrowed
	case initial.Admin && !now.Admin:
		return errUserNarrowed
	}
	for group, role := range initial.Groups {
		if now.Groups[group] < role {
			return errUserNarrowed
		}
	}
	return nil
}
