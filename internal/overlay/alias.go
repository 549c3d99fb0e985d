package overlay

import (
	"os"
	"path"

	"github.com/loadout-dev/loadout/internal/steering"
)

// maxAliasScan is the number of entries of a directory in which symlinks of
// steering files are searched, nearest first.
const maxAliasScan = 20_000

// findAliases returns the paths to which symlinks with the names of steering
// files lead, such as CLAUDE.md to docs/guide.md, with the program that reads
// them. A change to such a path changes the steering file.
func findAliases(top *os.Root) map[string]string {
	type dir struct {
		path string
		at   steering.Position
	}
	out := map[string]string{}
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
