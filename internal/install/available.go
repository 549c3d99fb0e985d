package install

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// AvailableUpdate is an update found by the last check. It is only
// informational, because Loadout checks again before installing an update.
type AvailableUpdate struct {
	Directory string    `json:"directory"`
	Name      string    `json:"name"`
	Digest    string    `json:"digest"` // digest of the installed skill at that time
	Reason    string    `json:"reason"`
	Checked   time.Time `json:"checked"`
}

// AvailableUpdates stores the updates found by the last check of each skill. It
// is safe for concurrent use, including by several processes.
type AvailableUpdates struct {
	file *privatefile.File
}

// OpenAvailableUpdates returns the updates stored in a file, which need not
// exist. It does not need to be closed.
func OpenAvailableUpdates(path string) *AvailableUpdates {
	return &AvailableUpdates{privatefile.New(path, 4<<20)}
}

// Save replaces the stored updates for the checked skills in a directory.
func (u *AvailableUpdates) Save(ctx context.Context, dir *installed.Dir, checked []Update) error {
	lock, err := dir.Lockfile()
	if err != nil {
		return err
	}
	replaced := map[string]bool{}
	out := []AvailableUpdate{}
	for _, c := range checked {
		replaced[c.Name] = true
		if c.State == Newer || c.State == EditedHere {
			out = append(out, AvailableUpdate{dir.Path(), c.Name, lock.Skills[c.Name].Digest, c.Reason, time.Now().UTC().Truncate(time.Second)})
		}
	}
	return u.file.Change(ctx, func(old []byte) ([]byte, error) {
		for _, n := range parseAvailable(old) {
			if n.Directory != dir.Path() || !replaced[n.Name] {
				out = append(out, n)
			}
		}
		b, err := json.MarshalIndent(out, "", "  ")
		return append(b, '\n'), err
	})
}

// List returns the stored updates of skills that have not changed since the
// check.
func (u *AvailableUpdates) List() []AvailableUpdate {
	data, err := u.file.Read()
	if err != nil {
		return nil // missing or unsafe file
	}
	locks := map[string]*installed.Lockfile{}
	var out []AvailableUpdate
	for _, n := range parseAvailable(data) {
		if locks[n.Directory] == nil {
			lock, err := installed.Open(n.Directory).Lockfile()
			if err != nil {
				continue
			}
			locks[n.Directory] = lock
		}
		if e, ok := locks[n.Directory].Skills[n.Name]; ok && e.Digest == n.Digest {
			out = append(out, n)
		}
	}
	return out
}

// parseAvailable parses the stored updates. It returns nil if the data is
// missing or invalid.
func parseAvailable(data []byte) []AvailableUpdate {
	var out []AvailableUpdate
	if json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}
