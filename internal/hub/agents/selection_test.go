package agents_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// K17: an agent has all skills, the named ones, or explicitly none. Removing its last
// named skill leaves none, not all.
func TestK17AllSelectedOrNone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHub(t, db, nil)
		s := h.upload(h.of("developer"), "pdf", digestA)
		chosen := func(kind string) []string {
			t.Helper()
			return h.profile("developer", kind, "", "x").Filter.Select
		}
		const bot = "\n---\nkind: Bot\nmetadata: {name: x}\nspec: {ghostRef: x}\n"
		for spec, want := range map[string][]string{"{}": nil, "{skills: []}": {}, "{skills: [pdf]}": {"pdf"}} {
			h.apply("developer", head("Ghost")+"spec: "+spec+bot)
			wantEqual(t, chosen(agents.GhostKind), want)
			wantEqual(t, chosen(agents.BotKind), want)
		}
		h.apply("developer", head("Ghost")+"spec: {skills: []}\n---\nkind: Bot\nmetadata: {name: x}\nspec: {ghostRef: x, skills: [pdf]}\n")
		wantEqual(t, chosen(agents.BotKind), []string{"pdf"})

		h.apply("developer", head("Ghost")+"spec: {skills: [pdf]}\n")
		refs, err := db.Refs.ListTo(t.Context(), agents.SkillKind, s.ID, s.Name, 10)
		must(t, err)
		for _, r := range refs {
			must(t, db.Tx(t.Context(), func(tx *store.Tx) error {
				k, err := tx.Kinds.Get(t.Context(), r.FromID)
				if err != nil {
					return err
				}
				return h.UnbindSkill(t.Context(), tx, k, s.ID, s.Name)
			}))
		}
		wantEqual(t, chosen(agents.GhostKind), []string{})
	})
}
