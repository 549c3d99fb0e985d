package chat

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// snapshot is the state of a conversation after a step of its transcript, on the
// branch that ends with the step. It depends only on the stored steps: it is the
// same on every node, no matter whether it was computed from all steps or from an
// earlier snapshot.
type snapshot struct {
	Conversation string `json:"conversation"` // conversation ID
	// Last is the hash of the last step. A snapshot is valid only for a
	// transcript that contains this step.
	Last        string        `json:"last"`
	LastMessage int64         `json:"last_message"`          // number of the last message in the transcript
	LastBranch  int64         `json:"last_branch,omitempty"` // number of the last input that added a [session.Branch]
	Session     session.State `json:"session"`
	Agent       *fold.State   `json:"agent"`

	stored int64 // number of the last step in the stored snapshot; 0 if there is none
}

// snapshotFormat is the version of the stored form. Change it whenever a stored
// snapshot could differ from the snapshot that this program computes from the
// same steps.
const snapshotFormat = 1<<16 + fold.Format

func newSnapshot(id string) *snapshot { return &snapshot{Conversation: id, Agent: &fold.State{}} }

// seq returns the number of the last step applied to the snapshot.
func (s *snapshot) seq() int64 { return s.Session.Seq }

// count updates what the snapshot knows of all branches with the next step of the
// transcript.
func (s *snapshot) count(step step) {
	s.LastMessage = max(s.LastMessage, step.Input)
	if step.Branched != nil {
		s.LastBranch = max(s.LastBranch, step.Turn)
	}
}

// apply updates the snapshot with the next step of its branch.
func (s *snapshot) apply(step step, row store.Event) {
	s.Last = hashRow(row)
	s.Session.Apply(step.Event)
	s.Agent.Apply(step.Event)
}

func hashRow(row store.Event) string {
	sum := sha256.Sum256(row.Data)
	return hex.EncodeToString(sum[:])
}

// clone returns an independent copy of the snapshot.
func (s *snapshot) clone() *snapshot {
	c := *s
	c.Session, c.Agent = s.Session.Clone(), s.Agent.Clone()
	return &c
}

// size returns the approximate size of the snapshot in bytes.
func (s *snapshot) size() int {
	n := s.Agent.Size()
	for _, a := range s.Session.Active() {
		n += len(a.Text)
	}
	return n
}

// errForeign is returned for a snapshot of another transcript.
var errForeign = errors.New("snapshot does not match the transcript")

// snapshotPage is the number of steps that a snapshot reads at once.
const snapshotPage = 100

// advance applies the steps that follow the snapshot in the transcript.
func (s *snapshot) advance(ctx context.Context, from store.Events) error {
	for check := s.seq() > 0; ; check = false {
		after := s.seq()
		if check {
			after-- // to compare the last step
		}
		rows, err := from.Read(ctx, s.Conversation, after, snapshotPage)
		if err != nil {
			return err
		}
		full := len(rows) == snapshotPage
		if check {
			if len(rows) == 0 || rows[0].Seq != s.seq() || hashRow(rows[0]) != s.Last {
				return errForeign
			}
			rows = rows[1:]
		}
		for _, r := range rows {
			step, err := readStep(r)
			if err != nil {
				return err
			}
			if step.Parent() != s.seq() {
				return s.recompute(ctx, from)
			}
			s.count(step)
			s.apply(step, r)
		}
		if !full {
			return nil
		}
	}
}

// recompute computes the snapshot from the whole transcript, because its end
// belongs to another branch.
func (s *snapshot) recompute(ctx context.Context, from store.Events) error {
	last, err := from.Last(ctx, s.Conversation)
	if err != nil {
		return err
	}
	path, err := readPath(ctx, from, s.Conversation, last)
	if err != nil {
		return err
	}
	*s = *newSnapshot(s.Conversation) // not stored, so that it soon is
	for after := int64(0); len(path) > 0; {
		rows, err := from.Read(ctx, s.Conversation, after, snapshotPage)
		if err == nil && len(rows) == 0 {
			err = fmt.Errorf("read step %d of transcript: %w", path[0], store.ErrNotFound)
		}
		if err != nil {
			return err
		}
		for _, r := range rows {
			step, err := readStep(r)
			if err != nil {
				return err
			}
			s.count(step)
			if after = r.Seq; len(path) > 0 && path[0] == after {
				s.apply(step, r)
				path = path[1:]
			}
		}
	}
	return nil
}

// readSnapshot returns the state of a conversation at the end of its transcript.
// It reads only the steps after the snapshot in memory or, without one, after
// the stored snapshot. The caller must hold the lease.
func (e *Engine) readSnapshot(ctx context.Context, id string) (*snapshot, error) {
	for _, find := range []func(context.Context, string) *snapshot{e.cachedSnapshot, e.storedSnapshot} {
		s := find(ctx, id)
		if s == nil {
			continue
		}
		switch err := s.advance(ctx, e.db.Events); {
		case err == nil:
			own := s.clone()
			e.snapshots.put(id, s)
			return own, nil
		case errors.Is(err, errForeign):
			e.opts.Logger.Warn("ignored snapshot of conversation", "conversation", id, "error", err)
		default:
			return nil, err
		}
	}
	s := newSnapshot(id)
	if err := s.advance(ctx, e.db.Events); err != nil {
		return nil, err
	}
	own := s.clone()
	e.snapshots.put(id, s)
	return own, nil
}

func (e *Engine) cachedSnapshot(_ context.Context, id string) *snapshot { return e.snapshots.take(id) }

// storedSnapshot returns the stored snapshot of a conversation, or nil if there is
// none that this program can use.
func (e *Engine) storedSnapshot(ctx context.Context, id string) *snapshot {
	stored, err := e.db.Snapshots.Last(ctx, id, maxSeq, snapshotFormat)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	s := newSnapshot(id)
	if err == nil {
		err = json.Unmarshal(stored.Data, s)
	}
	if err == nil && (s.Conversation != id || s.Agent == nil || s.seq() != stored.Position || s.Agent.Seq() != stored.Position) {
		err = fmt.Errorf("%w: wrong conversation or position", store.ErrCorrupt)
	}
	if err != nil {
		e.opts.Logger.Warn("ignored snapshot of conversation", "conversation", id, "error", err)
		return nil
	}
	s.stored = stored.Position
	return s
}

// maxSeq is larger than the number of any step.
const maxSeq = 1 << 62

// minUnstored is the minimum number of steps after which a snapshot is stored
// again.
const minUnstored = 64

// isDue reports whether to store the snapshot. The interval grows with the
// transcript, so that the cost per step stays constant.
func (s *snapshot) isDue() bool { return s.seq()-s.stored >= minUnstored+s.stored/4 }

// storeSnapshot writes the snapshot from memory to the database if it is due. A
// failure is harmless: the next turn tries again.
func (e *Engine) storeSnapshot(ctx context.Context, id string) {
	s := e.snapshots.get(id)
	if s == nil || !s.isDue() {
		return
	}
	e.storing.Lock() // one at a time, because the data can be large
	defer e.storing.Unlock()
	data, err := json.Marshal(s)
	if err == nil && len(data) <= store.MaxValue { // otherwise reading the transcript is hardly slower
		err = e.db.Snapshots.Put(ctx, store.Snapshot{Session: id, Position: s.seq(), Format: snapshotFormat, Data: data})
	}
	switch {
	case err == nil:
		e.snapshots.setStored(id, s.seq())
	case ctx.Err() == nil && !errors.Is(err, store.ErrNotFound): // not deleted
		e.opts.Logger.Warn("cannot store snapshot of conversation", "conversation", id, "error", err)
	}
}

// maxSnapshotBytes is the maximum size of all snapshots in memory.
const maxSnapshotBytes = 64 << 20

// snapshotCache holds the snapshots of the conversations that this node used most
// recently. It is safe for concurrent use.
type snapshotCache struct {
	mu   sync.Mutex
	size int
	max  int
	used *list.List               // holds *cachedSnapshot, most recently used first
	byID map[string]*list.Element // elements of used, by conversation ID
}

type cachedSnapshot struct {
	id       string
	snapshot *snapshot
	size     int
}

func newSnapshotCache(limit int) *snapshotCache {
	return &snapshotCache{max: limit, used: list.New(), byID: map[string]*list.Element{}}
}

// take removes and returns a snapshot, which the caller may change. It returns nil
// if there is none.
func (c *snapshotCache) take(id string) *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remove(c.byID[id])
}

// get returns a copy of a snapshot, or nil if there is none.
func (c *snapshotCache) get(id string) *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.byID[id]; at != nil {
		return at.Value.(*cachedSnapshot).snapshot.clone()
	}
	return nil
}

// put adds a snapshot, which the caller must no longer change. It removes the
// least recently used snapshots until the remaining ones fit.
func (c *snapshotCache) put(id string, s *snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byID[id])
	size := s.size()
	c.size += size
	c.byID[id] = c.used.PushFront(&cachedSnapshot{id, s, size})
	for c.size > c.max {
		c.remove(c.used.Back())
	}
}

// setStored records the number of the last step in the stored snapshot.
func (c *snapshotCache) setStored(id string, seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.byID[id]; at != nil {
		at.Value.(*cachedSnapshot).snapshot.stored = seq
	}
}

// remove removes an entry, which may be nil. c.mu must be held.
func (c *snapshotCache) remove(at *list.Element) *snapshot {
	if at == nil {
		return nil
	}
	entry := c.used.Remove(at).(*cachedSnapshot)
	delete(c.byID, entry.id)
	c.size -= entry.size
	return entry.snapshot
}
