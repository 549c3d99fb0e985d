package native

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/layout"
	"github.com/loadout-dev/loadout/sandbox/internal/staged"
)

// view is the file system of a sandbox, in which each read-only tree is in
// memory of its own size.
func view(spec *sandbox.Spec, l sandbox.Limits) stage.Setup {
	s := layout.View(spec, l)
	needs := stage.Tmpfs{Path: sandbox.NeedsDir, Mode: 0o755}
	for _, t := range spec.Trees {
		size, inodes := staged.TreeSize(&t)
		switch {
		case t.Writable():
		case strings.HasPrefix(t.Path, sandbox.NeedsDir+"/"):
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
