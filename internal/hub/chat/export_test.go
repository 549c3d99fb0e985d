package chat

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
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

// SnapshotFormat is the version of stored snapshots.
const SnapshotFormat = snapshotFormat

// SnapshotOf returns the state of a conversation at the end of its transcript, as a
// turn reads it, in its stored form.
func SnapshotOf(ctx context.Context, e *Engine, id string) (string, error) {
	s, err := e.readSnapshot(ctx, id)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(s)
	return string(data), err
}

// FoldTranscript returns what SnapshotOf returns, computed from all steps.
func FoldTranscript(t *testing.T, db *store.DB, id string) string {
	s := newSnapshot(id)
	err := s.advance(t.Context(), db.Events)
	data, encoding := json.Marshal(s)
	if err != nil || encoding != nil {
		t.Fatal(err, encoding)
	}
	return string(data)
}

// RequestOf returns the next request of a conversation, computed from all steps.
func RequestOf(ctx context.Context, db *store.DB, id string) (string, []llm.Message, error) {
	s := newSnapshot(id)
	err := s.advance(ctx, db.Events)
	instructions, messages := s.Agent.Request()
	return instructions, messages, err
}

// ForgetSnapshots empties the snapshots in memory.
func ForgetSnapshots(e *Engine) {
	e.snapshots.mu.Lock()
	defer e.snapshots.mu.Unlock()
	for e.snapshots.used.Len() > 0 {
		e.snapshots.remove(e.snapshots.used.Back())
	}
}

// StoreSnapshot stores the snapshot in memory, even if it is not due.
func StoreSnapshot(t *testing.T, e *Engine, id string) {
	e.snapshots.setStored(id, -1<<40)
	e.storeSnapshot(t.Context(), id)
}

// PutSnapshot stores data as a snapshot of the current format plus later.
func PutSnapshot(t *testing.T, db *store.DB, s store.Snapshot, later int64) {
	s.Format = snapshotFormat + later
	if err := db.Snapshots.Put(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// CopySnapshot stores the snapshot of a conversation as that of another.
func CopySnapshot(t *testing.T, e *Engine, from, to string) {
	s := e.snapshots.get(from)
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	PutSnapshot(t, e.db, store.Snapshot{Session: to, Position: s.seq(), Data: data}, 0)
}

// CachedSnapshots returns which of the conversations have a snapshot in memory, after
// one of each was added, in order, to a cache of the given size.
func CachedSnapshots(limit int, conversations []string, steps map[string][]*session.Event) []string {
	c := newSnapshotCache(limit)
	for _, id := range conversations {
		s := newSnapshot(id)
		for _, e := range steps[id] {
			s.Agent.Apply(*e)
		}
		c.put(id, s)
	}
	var out []string
	for _, id := range conversations {
		if c.get(id) != nil {
			out = append(out, id)
		}
	}
	return out
}
