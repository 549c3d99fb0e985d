// Package installed keeps the skills that a person had put into one directory,
// and loadout.lock beside them, which says where each came from and what every
// file of it has to be.
//
// A [Change] puts and removes any number of skills at once: all of them or none,
// whatever happens to the process meanwhile, and readers see each skill whole.
// [Dir.Verify] compares the files with the lock. Skills that the lock does not
// know, as one that was copied there by hand, are left alone; only [Change.Replace]
// takes the place of one.
//
// It fetches nothing, runs nothing and asks nobody. The directory may be part of
// a repository of strangers: names, links and files in it are taken for hostile,
// and nothing outside of it is read or written.
package installed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/skill"
)

// maxNames bounds the names in a directory of skills.
const maxNames = 100_000

// Dir is a directory of skills. It is safe for concurrent use, keeps nothing
// open, and need not be closed.
type Dir struct {
	path string

	// at is called before each step of a change and can make it fail. Only tests
	// set it.
	at func(step string) error

	mu     sync.Mutex // guards what follows
	text   []byte     // of the lock that was parsed last
	parsed *Lock      // what it says; never changed
}

// Open returns the directory at path, which may be a link and need not exist. It
// touches nothing.
func Open(path string) *Dir { return &Dir{path: path} }

// Path is the path of the directory.
func (d *Dir) Path() string { return d.path }

// Lock returns what loadout.lock says: nothing where there is none. A file that
// cannot be relied on is a [*LockError].
func (d *Dir) Lock() (*Lock, error) {
	lock := &Lock{}
	err := d.with(func(root *os.Root) (err error) {
		lock, _, err = d.readLock(root)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lock.clone(), nil // as others have it, too
}

// with calls do with the open directory, or not at all where there is none, and adds
// to an error which directory it is about.
func (d *Dir) with(do func(root *os.Root) error) error {
	root, err := os.OpenRoot(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the directory of skills: %w", err)
	}
	defer root.Close()
	if err := do(root); err != nil {
		return fmt.Errorf("skills in %s: %w", d.path, err)
	}
	return nil
}

// Has reports whether the directory has something of this name, also in another
// spelling of case, be it a skill or not.
func (d *Dir) Has(name string) (bool, error) {
	found := false
	err := d.with(func(root *os.Root) error {
		names, err := listNames(root)
		found = slices.ContainsFunc(names, func(n string) bool { return fold(n) == fold(name) })
		return err
	})
	return found, err
}

// Unlocked returns the names of the directories that are skills, and that the lock
// does not know: somebody put them there by hand. Links are not followed.
func (d *Dir) Unlocked(ctx context.Context) ([]string, error) {
	var out []string
	err := d.with(func(root *os.Root) error {
		lock, _, err := d.readLock(root)
		if err != nil {
			return err
		}
		names, err := listNames(root)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if _, ok := lock.Skills[name]; !ok && isSkill(root, name) {
				out = append(out, name)
			}
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

func isSkill(root *os.Root, name string) bool {
	if strings.HasPrefix(name, ".") || skill.Ignored(name) {
		return false
	}
	sub, err := openPlain(root, name)
	if err != nil {
		return false
	}
	defer sub.Close()
	_, err = skill.FindFile(sub.FS())
	return err == nil
}

// errNotPlain says that something is no directory, or a link to one.
var errNotPlain = errors.New("it is not a plain directory")

// openPlain opens a directory below root that is no link.
func openPlain(root *os.Root, name string) (*os.Root, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errNotPlain
	}
	sub, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) { // changed in between
		sub.Close()
		return nil, errNotPlain
	}
	return sub, nil
}

// listNames returns the names of what is in the directory.
func listNames(root *os.Root) ([]string, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list the directory of skills: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(maxNames + 1)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("list the directory of skills: %w", err)
	}
	if len(names) > maxNames {
		return nil, fmt.Errorf("list the directory of skills: it has more than %d names", maxNames)
	}
	return names, nil
}

// fold makes names alike that some file system takes for one.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// checkName refuses names that are no plain directory name on every system.
func checkName(name string) error {
	if !skill.PortableName(name) {
		return &NameError{Name: name, Reason: "a name is 1 to 64 lower-case letters, digits and single inner hyphens"}
	}
	if _, why := skill.CheckPath(name); why != "" {
		return &NameError{Name: name, Reason: why}
	}
	return nil
}
