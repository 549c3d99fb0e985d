package installed

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/loadout-dev/loadout/internal/near"
	"github.com/loadout-dev/loadout/skill"
)

// What is a kind of difference between the lock and the files.
type What string

// The kinds.
const (
	Changed    What = "changed"    // a file has other bytes, or is no file any more
	Missing    What = "missing"    // a file is gone
	Added      What = "added"      // a file is there that the lock does not name
	Absent     What = "absent"     // the skill's directory is gone
	NotPlain   What = "not-plain"  // a link or a file is in the place of the skill's directory
	Unreadable What = "unreadable" // the skill's files cannot be read; see Reason
)

// Difference is one between the lock and the files of an installed skill.
type Difference struct {
	Name   string `json:"name"`
	Path   string `json:"path,omitempty"` // of a file in the skill; "" where the skill as a whole is meant
	What   What   `json:"what"`
	Reason string `json:"reason,omitempty"` // of Unreadable
}

func (d Difference) String() string {
	s := string(d.What)
	if d.Path != "" {
		s = skill.OneLine(d.Path) + " is " + s
	}
	if d.Reason != "" {
		s += ": " + d.Reason
	}
	return s
}

// Verify reads the files of the named skills, or of all that the lock knows, and
// compares them with the lock: what it returns is sorted by skill, then by path,
// and empty where all is as it was installed. Files that [skill.Ignored] names do
// not count, nor do modes. A name that the lock does not know is a
// [*NotInstalledError]. The error is an [ErrUnfinished] where a change is under
// way, or was killed.
func (d *Dir) Verify(ctx context.Context, names ...string) ([]Difference, error) {
	var out []Difference
	there := false
	err := d.with(func(root *os.Root) error {
		there = true
		// Another process may change skills meanwhile. Then the lock is another
		// afterwards, as it is written last.
		for range 3 {
			lock, before, err := d.readLock(root)
			if err != nil {
				return err
			}
			if out, err = verify(ctx, root, lock, names); err != nil || len(out) == 0 {
				return err
			}
			if _, err := root.Lstat(journalPath); err == nil {
				return ErrUnfinished
			}
			if _, after, err := d.readLock(root); err != nil || bytes.Equal(before, after) {
				return err
			}
		}
		return ErrUnfinished
	})
	if err == nil && !there {
		_, err = chosen(&Lock{}, names)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// chosen are the names, or all.
func chosen(lock *Lock, names []string) ([]string, error) {
	if len(names) == 0 {
		return lock.names(), nil
	}
	for _, name := range names {
		if _, ok := lock.Skills[name]; !ok {
			return nil, notInstalled(lock, name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}

// notInstalled says so, with names that may have been meant.
func notInstalled(lock *Lock, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	const most = 2
	var guesses [most + 1][]string // by distance
	letters := near.Letters(name)
	for _, other := range lock.names() {
		if n := near.Distance(letters, near.Letters(other), most); n <= most && n < len(letters) {
			guesses[n] = append(guesses[n], other)
		}
	}
	found := slices.Concat(guesses[:]...)
	return &NotInstalledError{Name: name, Near: found[:min(3, len(found))]}
}

func verify(ctx context.Context, root *os.Root, lock *Lock, names []string) ([]Difference, error) {
	names, err := chosen(lock, names)
	if err != nil {
		return nil, err
	}
	var out []Difference
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out = append(out, compare(root, name, lock.Skills[name])...)
	}
	return out, nil
}

// compare returns how the directory of a skill differs from its entry.
func compare(root *os.Root, name string, e Entry) []Difference {
	sub, err := openPlain(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Difference{{Name: name, What: Absent}}
	case errors.Is(err, errNotPlain):
		return []Difference{{Name: name, What: NotPlain}}
	case err != nil:
		return []Difference{{Name: name, What: Unreadable, Reason: skill.OneLine(err.Error())}}
	}
	defer sub.Close()
	manifest, _, err := skill.ReadManifest(sub.FS())
	if err != nil {
		return []Difference{{Name: name, What: Unreadable, Reason: skill.OneLine(err.Error())}}
	}
	var out []Difference
	left := maps.Clone(e.Files)
	for _, f := range manifest {
		hash, ok := left[f.Path]
		delete(left, f.Path)
		switch {
		case !ok:
			out = append(out, Difference{Name: name, Path: f.Path, What: Added})
		case hash != f.SHA256:
			out = append(out, Difference{Name: name, Path: f.Path, What: Changed})
		}
	}
	for p := range left { // what is no readable file is not in the manifest either
		what := Missing
		if _, err := sub.Lstat(p); err == nil {
			what = Changed
		}
		out = append(out, Difference{Name: name, Path: path.Clean(p), What: what})
	}
	slices.SortFunc(out, func(a, b Difference) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return out
}

// digest hashes the files below a plain directory.
func (c *Change) digest(p string) (string, error) {
	sub, err := openPlain(c.root, p)
	if err != nil {
		return "", err
	}
	defer sub.Close()
	manifest, _, err := skill.ReadManifest(sub.FS())
	return manifest.Digest(), err
}
