package installed

import (
	"path/filepath"

	"github.com/loadout-dev/loadout/skill"
)

// IsValidName reports whether name can be the directory name of an installed
// skill.
func IsValidName(name string) bool { return checkName(name) == nil }

// FindName returns the lockfile name of a skill. If name is not a valid
// directory name, it returns the lockfile name of the skill whose SKILL.md has
// that name. It returns "" if there is no such skill.
func (d *Dir) FindName(name string) (string, error) {
	lock, err := d.Lockfile()
	if err != nil {
		return "", err
	}
	if _, ok := lock.Skills[name]; ok {
		return name, nil
	}
	if IsValidName(name) {
		return "", nil
	}
	for _, key := range lock.Names() {
		b, err := skill.OpenDir(filepath.Join(d.path, key))
		if err != nil {
			continue // Verify reports it
		}
		parsed, _, err := skill.Parse(b, b.Folder)
		_ = b.Close()
		if err == nil && parsed.Name == name {
			return key, nil
		}
	}
	return "", nil
}
