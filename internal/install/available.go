package install

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// AvailableUpdate is an update found by the last check. It is informational
// only.
type AvailableUpdate struct {
	Directory string    `json:"directory"`
	Name      string    `json:"name"`
	Digest    string    `json:"digest"` // digest of the skill installed then
	Reason    string    `json:"reason"`
	Checked   time.Time `json:"checked"`
}

// AvailableUpdates stores the updates found by the last checks. It is safe for
// concurrent use, also by several processes.
type AvailableUpdates struct {
	file *privatefile.File
}

// OpenAvailableUpdates returns the updates stored in a file, which may not
// exist.
func OpenAvailableUpdates(path string) *AvailableUpdates {
	return &AvailableUpdates{privatefile.New(path, 4<<20)}
}

// Save replaces the stored updates of the checked skills of a directory.
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

// List returns the stored updates of skills that did not change since the check.
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

// parseAvailable returns nil for missing or invalid data.
func parseAvailable(data []byte) []AvailableUpdate {
	var out []AvailableUpdate
	if json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}
