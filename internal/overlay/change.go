// Package overlay applies changes from an overlay of a directory to the
// directory itself. A sandboxed command makes the changes, and the kernel
// stores them in the upper directory of an overlay file system; the user's
// directory, the lower one, is not modified. When the command and all its
// processes have ended, [Read] compares the two, and [Set.Apply] applies the
// changes that the caller selects: ordinary changes at once, and changes to
// steering files (package steering) if the user agrees.
//
// The content of the upper directory is untrusted. The package follows no
// symlink in either directory.
package overlay

import (
	"io/fs"

	"github.com/loadout-dev/loadout/internal/steering"
)

// Op is the operation that a [Change] performs.
type Op string

// Operations.
const (
	Create Op = "create"
	Modify Op = "modify" // different content
	Mode   Op = "mode"   // different permissions
	Delete Op = "delete"
)

// Change is a change to a file, directory or symlink.
type Change struct {
	Path string      // relative, with slashes; from untrusted code
	Op   Op          // Mode does not occur with symlinks
	Mode fs.FileMode // type and permissions afterwards, or before a deletion
	// Class is [steering.Steering] if the user must agree. Reader is the
	// program that reads the file.
	Class  steering.Class
	Reader string
	// Refused is the reason if the change is never applied, such as a symlink
	// that leads out of the directory.
	Refused string

	was     fs.FileInfo // info before the change; nil if there was no such file
	applied bool
}

// Held reports whether the change needs the user's agreement.
func (c *Change) Held() bool { return c.Refused == "" && c.Class == steering.Steering }

// Ordinary reports whether the change needs no agreement.
func (c *Change) Ordinary() bool { return c.Refused == "" && c.Class != steering.Steering }

// OldMode returns the type and the permissions of the file before the change.
// It returns false if the file did not exist.
func (c *Change) OldMode() (fs.FileMode, bool) {
	if c.was == nil {
		return 0, false
	}
	return c.was.Mode(), true
}

// Reasons to refuse a change.
const (
	leadsOut   = "symlink that leads out of the directory"
	special    = "not a file, directory or symlink"
	tooDeep    = "too many nested directories"
	changedNow = "changed meanwhile by another program"
	unreadable = "cannot be read"
	notEmpty   = "directory with files that stay"

	hostileName = "control characters in the name"
)
