package chat

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Reasons for which a turn fails when its user loses rights. A turn fails with the same
// text whether the loss is found when it starts or while it runs.
var (
	errUserRefused   = errors.New("the user may no longer hold conversations")
	errUserNarrowed  = errors.New("the user has fewer rights than when the turn started; send the message again to use the current rights")
	errTokenNarrowed = errors.New("the API token of this message has fewer scopes than before; send the message again to use the current scopes")
	errTokenEnded    = errors.New("the API token of this message was revoked or has expired; send the message again with another token")
)

// watchRights ends the turn of j when its user or its token loses rights that it had when
// the turn started. It returns when ctx ends.
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
			continue // open checks the rights first
		}
		if err := w.checkRights(ctx, j, *then); err != nil {
			cancel(&stoppedError{Failed, err.Error(), "The turn was ended: " + err.Error() + "."})
			return
		}
	}
}

// checkRights returns why a turn that started with the rights of then has to end, or nil.
// It returns nil if the current rights cannot be read.
func (w *worker) checkRights(ctx context.Context, j *job, then account.Principal) error {
	now, err := w.principal(ctx, j)
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy):
		return nil
	case errors.Is(err, errTokenEnded), errors.Is(err, errTokenNarrowed):
		return err
	case err != nil:
		return errUserRefused
	case then.Scopes&^now.Scopes != 0: // only a token limits scopes
		return errTokenNarrowed
	case then.Admin && !now.Admin:
		return errUserNarrowed
	}
	for group, role := range then.Groups {
		if now.Groups[group] < role {
			return errUserNarrowed
		}
	}
	return nil
}
