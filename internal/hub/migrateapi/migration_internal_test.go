package migrateapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillname"
)

// The names that conversations record are looked up without a comparison with each
// skill of the upload, and names that are too long for a skill are not looked up.
func TestProvides(t *testing.T) {
	m := &migration{provided: map[string]bool{}}
	for i := range 2000 {
		name := fmt.Sprintf("Skill %d", i)
		m.skills = append(m.skills, uploadedSkill{Skill: remote.Skill{Name: name}, item: migrate.Item{Outcome: migrate.Kept}})
		m.provided[skillname.Slug(name)] = true
	}
	long := "Skill 1" + strings.Repeat("!", 1000)
	for name, want := range map[string]bool{"Skill 1999": true, "skill-7": true, "Skill 2000": false, "": false, long: false} {
		if got := m.provides(name); got != want {
			t.Errorf("%.40q: %v", name, got)
		}
	}
	if n := testing.AllocsPerRun(10, func() { m.provides("Skill 2000") }); n > 100 {
		t.Errorf("one name takes %v allocations", n)
	}
	if ok := m.target(t.Context()).HasSkill(long); ok {
		t.Error("a name of 1007 bytes is that of a skill")
	}
}
