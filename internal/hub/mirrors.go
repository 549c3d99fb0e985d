package hub

import (
	"context"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// openMirrors prepares the mirror of the operator's directories, which [Hub.follow]
// runs, and adds the bundled skills to the library.
func (h *Hub) openMirrors(ctx context.Context) error {
	sources, err := h.opts.Skills(h.Single())
	if err != nil {
		return err
	}
	// Without directories, the mirror hides the skills of directories that were removed
	// from the configuration. On PostgreSQL, another node may have them.
	if len(sources) > 0 || h.db.Kind() == "SQLite" {
		m, err := h.newMirror(store.Operator, sources, false)
		if err != nil {
			return err
		}
		h.mirrors = append(h.mirrors, m)
	}
	if !h.opts.BundledSkills {
		return nil
	}
	m, err := h.newMirror(store.Bundled, []catalog.Source{catalog.NewFS("bundled", catalog.Bundled, bundled.FS())}, true)
	if err != nil {
		return err
	}
	return m.Update(ctx)
}

func (h *Hub) newMirror(in store.Namespace, sources []catalog.Source, approved bool) (*library.Mirror, error) {
	c, err := catalog.New(sources, &catalog.Options{Logger: h.log})
	if err != nil {
		return nil, err
	}
	return h.library.Mirror(in, c, approved, h.log), nil
}
