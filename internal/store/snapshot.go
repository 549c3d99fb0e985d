package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Snapshot is the state of a conversation after an event in its transcript. It
// only saves time, because it can be recomputed from the transcript.
type Snapshot struct {
	Session  string
	Position int64 // sequence number of the event
	Format   int64 // chosen by the writer
	sum      string
	Data     []byte
}

const snapshotColumns = "session, position, format, sum, data"

func (s *Snapshot) fields() []any { return []any{&s.Session, &s.Position, &s.Format, &s.sum, &s.Data} }

// Snapshots stores states of conversations. Deleting a session deletes its
// snapshots.
type Snapshots struct{ c conn }

// Put stores a snapshot with up to [MaxValue] bytes of data. It replaces the
// session's snapshots at the same and at earlier positions. It fails with
// [ErrNotFound] if the session does not exist.
func (t Snapshots) Put(ctx context.Context, s Snapshot) error {
	if len(s.Data) > MaxValue {
		return fmt.Errorf("store snapshot of session %q: %w: %d bytes, limit %d", s.Session, ErrInvalid, len(s.Data), MaxValue)
	}
	s.sum = checksum(s.Data)
	_, err := t.c.exec(ctx, "INSERT INTO snapshots ("+snapshotColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (session, position) DO UPDATE SET format = excluded.format, sum = excluded.sum, data = excluded.data`, s.Session, s.Position, s.Format, s.sum, s.Data)
	if err == nil {
		_, err = t.c.exec(ctx, "DELETE FROM snapshots WHERE session = $1 AND position < $2", s.Session, s.Position)
	}
	if err != nil {
		return fmt.Errorf("store snapshot of session %q: %w", s.Session, toNotFound(err))
	}
	return nil
}

// Last returns the session's snapshot with the highest position up to the given
// one, in the given format. It fails with [ErrNotFound] if there is none, and with
// [ErrCorrupt] if its data is damaged.
func (t Snapshots) Last(ctx context.Context, session string, position, format int64) (Snapshot, error) {
	s, err := queryOne[Snapshot](ctx, t.c, "SELECT "+snapshotColumns+` FROM snapshots WHERE session = $1 AND position <= $2 AND format = $3
		ORDER BY position DESC LIMIT 1`, session, position, format)
	if err == nil && s.sum != checksum(s.Data) {
		err = fmt.Errorf("%w: wrong checksum", ErrCorrupt)
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("read snapshot of session %q: %w", session, err)
	}
	return s, nil
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
