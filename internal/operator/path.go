package operator

import (
	"path/filepath"
	"strings"
)

// SafePath returns the directories of a search path, such as the value of PATH,
// to which only the administrator can add programs. It resolves symlinks, and
// omits relative and missing directories.
func SafePath(list string) string {
	var out []string
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && checkDirs(topCheckedDir(real), real) == nil {
			out = append(out, real)
		}
	}
	return strings.Join(out, string(filepath.ListSeparator))
}
