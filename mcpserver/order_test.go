package mcpserver_test

import (
	"strings"
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
		s := mcpserver.New(rt, &mcpserver.Options{FirstSkills: func() ([]string, bool) { asked++; return []string{first}, true }})
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

// A list without the order, because it could not be read, is not kept.
func TestFirstSkillsAreReadAgainAfterFailure(t *testing.T) {
	dir := t.TempDir()
	manySkills(90).write(t, dir)
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewDir("local", catalog.User, dir, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	var keys []string
	s := mcpserver.New(rt, &mcpserver.Options{FirstSkills: func() ([]string, bool) { return keys, keys != nil }})
	defer s.Close()
	codex := clientprofile.Named("codex-mcp-client")
	const row = "\n- analyze-contracts-77"
	without := strings.Index(s.CatalogText(codex), row)
	keys = []string{"local/analyze-contracts-77"}
	if with := strings.Index(s.CatalogText(codex), row); with < 0 || with >= without {
		t.Errorf("the skill is at %d, and was at %d without the order", with, without)
	}
}
