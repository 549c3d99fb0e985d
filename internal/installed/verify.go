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

	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/skill"
)

// DifferenceKind is a kind of difference between an installed skill and the
// lockfile.
type DifferenceKind string

// Kinds of [Difference].
const (
	Changed    DifferenceKind = "changed"    // the file has other content or is not a regular file
	Missing    DifferenceKind = "missing"    // the file does not exist
	Added      DifferenceKind = "added"      // the file is not in the lockfile
	Absent     DifferenceKind = "absent"     // the skill's directory does not exist
	NotPlain   DifferenceKind = "not-plain"  // the skill's path is a symlink or a file
	Unreadable DifferenceKind = "unreadable" // the skill's files cannot be read; see Reason
)

// Difference describes how an installed skill's files differ from the lockfile.
type Difference struct {
	Name   string         `json:"name"`
	Path   string         `json:"path,omitempty"` // file in the skill; "" for the whole skill
	Kind   DifferenceKind `json:"what"`
	Reason string         `json:"reason,omitempty"` // for Unreadable: why the files cannot be read
}

func (d Difference) String() string {
	s := string(d.Kind)
	if d.Path != "" {
		s = printable.OneLine(d.Path) + " is " + s
	}
	if d.Reason != "" {
		s += ": " + d.Reason
	}
	return s
}

// Verify compares the files of the named skills with the lockfile. Without
// names, it checks all installed skills. The result is sorted by skill and
// path; it is empty if nothing has changed. Verify ignores file modes and the
// names for which skillpath.IsIgnored returns true. If a skill is not
// installed, the error is a [*NotInstalledError]. If a change is in progress or
// its process was killed, it is [ErrUnfinished].
func (d *Dir) Verify(ctx context.Context, names ...string) ([]Difference, error) {
	var out []Difference
	there := false
	err := d.withRoot(func(root *os.Root) error {
		there = true
		// Another process may change skills at the same time. It writes the
		// lockfile last, so a changed lockfile reveals that.
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
		_, err = selectNames(&Lockfile{}, names)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// selectNames returns the given names, or the names of all installed skills if
// no names are given.
func selectNames(lock *Lockfile, names []string) ([]string, error) {
	if len(names) == 0 {
		return lock.Names(), nil
	}
	for _, name := range names {
		if _, ok := lock.Skills[name]; !ok {
			return nil, notInstalled(lock, name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}

// notInstalled returns a [*NotInstalledError] that suggests similar names.
func notInstalled(lock *Lockfile, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	const most = 2
	var guesses [most + 1][]string // similar names by edit distance
	letters := editdistance.Normalize(name)
	for _, other := range lock.Names() {
		if n := editdistance.Distance(letters, editdistance.Normalize(other), most); n <= most && n < len(letters) {
			guesses[n] = append(guesses[n], other)
		}
	}
	found := slices.Concat(guesses[:]...)
	return &NotInstalledError{Name: name, Suggestions: found[:min(3, len(found))]}
}

func verify(ctx context.Context, root *os.Root, lock *Lockfile, names []string) ([]Difference, error) {
	names, err := selectNames(lock, names)
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

// compare returns how a skill's directory differs from its lockfile entry.
func compare(root *os.Root, name string, e Entry) []Difference {
	sub, err := openDirNoFollow(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Difference{{Name: name, Kind: Absent}}
	case errors.Is(err, errNotPlain):
		return []Difference{{Name: name, Kind: NotPlain}}
	case err != nil:
		return []Difference{{Name: name, Kind: Unreadable, Reason: printable.OneLine(err.Error())}}
	}
	defer sub.Close()
	manifest, _, err := skill.ReadManifest(sub.FS())
	if err != nil {
		return []Difference{{Name: name, Kind: Unreadable, Reason: printable.OneLine(err.Error())}}
	}
	var out []Difference
	left := maps.Clone(e.Files)
	for _, f := range manifest {
		hash, ok := left[f.Path]
		delete(left, f.Path)
		switch {
		case !ok:
			out = append(out, Difference{Name: name, Path: f.Path, Kind: Added})
		case hash != f.SHA256:
			out = append(out, Difference{Name: name, Path: f.Path, Kind: Changed})
		}
	}
	for p := range left { // the manifest omits unreadable files
		what := Missing
		if _, err := sub.Lstat(p); err == nil {
			what = Changed
		}
		out = append(out, Difference{Name: name, Path: path.Clean(p), Kind: what})
	}
	slices.SortFunc(out, func(a, b Difference) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return out
}

// digest returns the digest of the files in a plain directory.
func (c *Change) digest(p string) (string, error) {
	sub, err := openDirNoFollow(c.root, p)
	if err != nil {
		return "", err
	}
	defer sub.Close()
	manifest, _, err := skill.ReadManifest(sub.FS())
	return manifest.Digest(), err
}
