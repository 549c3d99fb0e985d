package native

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/layout"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// newView returns the file system view of a sandbox. Each read-only tree gets its
// own in-memory file system, sized to fit the tree.
func newView(spec *sandbox.Spec, l sandbox.Limits) stage.Setup {
	s := layout.View(spec, l)
	needs := stage.Tmpfs{Path: mountpoint.Needs, Mode: 0o755}
	for _, t := range spec.Trees {
		size, inodes := launcher.TreeSize(&t)
		switch {
		case prepare.IsWritable(t.Path):
		case strings.HasPrefix(t.Path, mountpoint.Needs+"/"):
			needs.Size, needs.Inodes = needs.Size+size, needs.Inodes+inodes
		default:
			s.Tmpfs = append(s.Tmpfs, stage.Tmpfs{Path: t.Path, Size: size, Inodes: inodes, Mode: 0o755})
		}
	}
	if needs.Size > 0 {
		s.Tmpfs = append(s.Tmpfs, needs)
	}
	return s
}
