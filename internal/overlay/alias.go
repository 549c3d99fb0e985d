package overlay

import (
	"io"
	"os"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/internal/steering"
)

// maxAliasScan is the number of entries of a directory in which symlinks of
// steering files are searched, nearest first.
const maxAliasScan = 20_000

// hookDirs returns the directories in which the configuration of a repository
// in top makes Git look for hooks.
func hookDirs(top *os.Root) map[string]string {
	out := map[string]string{}
	f, err := top.OpenFile(".git/config", os.O_RDONLY|noFollow, 0)
	if err != nil {
		return out
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, steering.MaxGitConfig))
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, "=")
		if !strings.HasSuffix(strings.ToLower(strings.TrimSpace(key)), "hookspath") {
			continue
		}
		if to, ok := resolve("", strings.Trim(strings.TrimSpace(value), `"`)); ok {
			out[to] = "Git"
		}
	}
	return out
}

// findAliases returns the paths to which symlinks with the names of steering
// files lead, such as CLAUDE.md to docs/guide.md, with the program that reads
// them. A change to such a path changes the steering file.
func findAliases(top *os.Root) map[string]string {
	type dir struct {
		path string
		at   steering.Position
	}
	out := hookDirs(top)
	queue := []dir{{"", steering.Top}}
	for seen := 0; len(queue) > 0 && seen < maxAliasScan; queue = queue[1:] {
		d := queue[0]
		f, err := top.OpenFile(cmpPath(d.path), os.O_RDONLY|noFollow, 0)
		if err != nil {
			continue
		}
		entries, _ := f.ReadDir(-1)
		f.Close()
		for _, e := range entries {
			seen++
			full, at := path.Join(d.path, e.Name()), d.at.Child(e.Name())
			switch {
			case e.IsDir() && at.DirClass() != steering.Dependency && !at.InGit():
				queue = append(queue, dir{full, at})
			case e.Type() == os.ModeSymlink && at.Class() == steering.Steering:
				target, err := top.Readlink(full)
				if to, ok := resolve(d.path, target); err == nil && ok {
					out[to] = at.Reader()
				}
			}
		}
	}
	return out
}
