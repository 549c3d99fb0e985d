package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Limits of conversations that try an agent.
const (
	MaxTrials = 5              // per user; another one replaces the oldest
	TrialTime = 24 * time.Hour // since the last turn
)

// CreateTrial is like [Engine.Create], for an agent whose documents are not saved.
// Such a conversation is temporary: List and Search omit it, and it is deleted if the
// user starts [MaxTrials] others, or after [TrialTime]. The caller must check that the
// principal may save the documents; [Options.Setup] checks it again for each turn.
func (e *Engine) CreateTrial(ctx context.Context, p account.Principal, agent, title string, documents []byte) (Conversation, error) {
	trials, err := e.db.TrialAgents.List(ctx, string(p.User))
	if err != nil {
		return Conversation{}, fmt.Errorf("create conversation: %w", err)
	}
	// First, because the new one counts in the quota.
	if err := e.removeTrials(ctx, trials[min(len(trials), MaxTrials-1):]); err != nil {
		return Conversation{}, err
	}
	return e.create(ctx, p, agent, title, nil, documents)
}

// PruneTrials deletes the conversations that tried an agent and have had no turn for
// [TrialTime].
func (e *Engine) PruneTrials(ctx context.Context) error {
	trials, err := e.db.TrialAgents.ListUnchanged(ctx, time.Now().Add(-TrialTime))
	if err != nil {
		return err
	}
	return e.removeTrials(ctx, trials)
}

func (e *Engine) removeTrials(ctx context.Context, trials []store.Session) error {
	for _, s := range trials {
		if err := e.remove(ctx, s, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}
