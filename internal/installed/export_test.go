package installed

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
)

// Staging is the name of the directory for uncommitted files.
const Staging = staging

// At makes f be called before each step of the changes of d; it can make the step
// fail.
func (d *Dir) At(f func(step string) error) { d.fault = f }

// At is [Dir.At] of the directory that is changed.
func (c *Change) At(f func(step string) error) { c.dir.At(f) }

// Parsed is the lock that was parsed last.
func (d *Dir) Parsed() *Lockfile {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parsed
}

// Abandon closes the open files of a change, like the end of its process.
func (c *Change) Abandon() {
	c.lockFile.Close()
	c.root.Close()
}

// Untracked returns the names of skill directories that are not in the
// lockfile, such as manual copies. It does not follow symlinks.
func (d *Dir) Untracked(ctx context.Context) ([]string, error) {
	var out []string
	err := d.withRoot(func(root *os.Root) error {
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
	if strings.HasPrefix(name, ".") || skillpath.IsIgnored(name) {
		return false
	}
	sub, err := openDirNoFollow(root, name)
	if err != nil {
		return false
	}
	defer sub.Close()
	_, err = skillfile.Find(sub.FS())
	return err == nil
}
