package chat

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// Asks returns the store of an engine's questions.
func Asks(e *Engine) approval.Store { return approvalStore{e: e} }

// Person is a user as questions know them.
func Person(u account.UserID) policy.Principal { return userPrincipal(u) }

// Journal is the transcript of a conversation whose lease the engine takes.
func Journal(ctx context.Context, e *Engine, id string) (session.Log, error) {
	l, err := e.db.Leases.Acquire(ctx, id, e.node, time.Hour)
	return &journal{e: e, id: id, lease: func() store.Lease { return l }, wakeup: make(chan struct{}, 1)}, err
}

// NodeID names the node of an engine.
func NodeID(e *Engine) string { return e.node }
