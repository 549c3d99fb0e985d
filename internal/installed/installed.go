// Package installed manages the skills that a user installed in a directory.
// The file loadout.lock in that directory records the origin of each skill and
// the hash of each file.
//
// A [Change] installs and removes any number of skills atomically, even if the
// process is killed. Readers never see a partly written skill. [Dir.Verify]
// compares the files with the lockfile. Skills that are not in the lockfile,
// such as manual copies, are not modified, except by [Change.Replace].
//
// The package downloads nothing, runs nothing and shows no prompts. The
// directory may be part of an untrusted repository, so the package treats
// names, symlinks and files in it as hostile. It reads and writes nothing
// outside the directory. Start reading at [Dir].
package installed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
)

// maxNames is the maximum number of entries in a directory of skills.
const maxNames = 100_000

// Dir is a directory of installed skills. It is safe for concurrent use and
// does not need to be closed.
type Dir struct {
	path string

	// fault is called before each step of a change. Tests set it to make a step
	// fail.
	fault func(step string) error

	mu     sync.Mutex // guards the fields below
	text   []byte     // text of the most recently parsed lockfile
	parsed *Lockfile  // its content; never modified
}

// Open returns a Dir for path. It does not access any files. path may be a
// symlink, and need not exist.
func Open(path string) *Dir { return &Dir{path: path} }

// Path returns the path of the skills directory.
func (d *Dir) Path() string { return d.path }

// Lockfile returns the content of loadout.lock. If the file does not exist, the
// content is empty. If the file is invalid, the error is a [*LockfileError].
func (d *Dir) Lockfile() (*Lockfile, error) {
	lock := &Lockfile{}
	err := d.withRoot(func(root *os.Root) (err error) {
		lock, _, err = d.readLock(root)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lock.clone(), nil // the original is shared
}

// withRoot opens the directory and passes it to do. If the directory does not
// exist, withRoot does nothing. Errors contain the path of the directory.
func (d *Dir) withRoot(do func(root *os.Root) error) error {
	root, err := os.OpenRoot(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open skills directory: %w", err)
	}
	defer root.Close()
	if err := do(root); err != nil {
		return fmt.Errorf("read skills in %s: %w", d.path, err)
	}
	return nil
}

// Has reports whether the directory has an entry with this name, ignoring
// letter case. The entry need not be a skill.
func (d *Dir) Has(name string) (bool, error) {
	found := false
	err := d.withRoot(func(root *os.Root) error {
		names, err := listNames(root)
		found = slices.ContainsFunc(names, func(n string) bool { return foldName(n) == foldName(name) })
		return err
	})
	return found, err
}

// errNotPlain is returned for a path that is not a directory, such as a symlink
// to a directory.
var errNotPlain = errors.New("not a directory (symbolic links are not allowed)")

// openDirNoFollow opens a directory below root. It rejects symlinks.
func openDirNoFollow(root *os.Root, name string) (*os.Root, error) {
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
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) { // replaced since the first check
		sub.Close()
		return nil, errNotPlain
	}
	return sub, nil
}

// listNames returns the names of a directory's entries.
func listNames(root *os.Root) ([]string, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list skills directory: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(maxNames + 1)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("list skills directory: %w", err)
	}
	if len(names) > maxNames {
		return nil, fmt.Errorf("list skills directory: too many entries (limit %d)", maxNames)
	}
	return names, nil
}

// foldName folds the letter case of a name. Two names have the same result if
// some file system treats them as equal.
func foldName(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// checkName returns an error if name is not a valid directory name on every
// system.
func checkName(name string) error {
	if !skillname.IsPortable(name) {
		return &NameError{Name: name, Reason: "want 1 to 64 lower-case letters, digits and single inner hyphens"}
	}
	if _, why := skillpath.Check(name); why != "" {
		return &NameError{Name: name, Reason: why}
	}
	return nil
}
