package mcpserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/clientprofile"
	"github.com/loadout-dev/loadout/mcpserver"
)

// The order of a list is read again in the next hour, because a server of a hub
// outlives the day of the order.
func TestFirstSkillsAreReadEachHour(t *testing.T) {
	dir := t.TempDir()
	manySkills(90).write(t, dir)
	synctest.Test(t, func(t *testing.T) {
		rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewDir("local", catalog.User, dir, nil)}})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		asked, first := 0, "local/analyze-contracts-77"
		s := mcpserver.New(rt, &mcpserver.Options{FirstSkills: func() []string { asked++; return []string{first} }})
		defer s.Close()
		codex := clientprofile.Named("codex-mcp-client")
		before := s.CatalogText(codex)
		first = "local/analyze-contracts-12"
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour - 1)))
		if s.CatalogText(codex) != before || asked != 1 {
			t.Errorf("asked %d times in the same hour", asked)
		}
		time.Sleep(time.Nanosecond)
		if s.CatalogText(codex) == before || asked != 2 {
			t.Errorf("asked %d times in the next hour", asked)
		}
	})
}
