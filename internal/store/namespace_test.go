package store_test

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestTooManyNamespaces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, in := t.Context(), make([]store.Namespace, store.MaxNamespaces+1)
		for name, list := range map[string]func() error{
			"Defaults.List":        func() error { _, err := db.Defaults.List(ctx, in); return err },
			"Kinds.List":           func() error { _, _, err := db.Kinds.List(ctx, "Ghost", in, store.Page{}); return err },
			"Kinds.Find":           func() error { _, err := db.Kinds.Find(ctx, "Ghost", "a", in); return err },
			"Skills.Find":          func() error { _, err := db.Skills.Find(ctx, "a", in); return err },
			"Skills.List":          func() error { _, _, err := db.Skills.List(ctx, store.SkillQuery{Namespaces: in}); return err },
			"Usage.ListUnused":     func() error { _, _, err := db.Usage.ListUnused(ctx, in, time.Now(), store.Page{}); return err },
			"Versions.ListPending": func() error { _, _, err := db.Versions.ListPending(ctx, in, store.Page{}); return err },
		} {
			t.Run(name, func(t *testing.T) { wantError(t, list(), store.ErrInvalid) })
		}
	})
}
