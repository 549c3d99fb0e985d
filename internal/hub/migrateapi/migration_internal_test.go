package migrateapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
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

// After an error, the report says what was stored before and what was not. If nothing
// was stored, the error is returned.
func TestErrorAfterSomethingWasStored(t *testing.T) {
	for fails, want := range map[string]string{
		"one":  "",
		"two":  "one: kept true; two: lost false; three: lost false",
		"none": "one: kept true; two: kept true; three: kept true",
	} {
		m := &migration{Handlers: &Handlers{Server: &api.Server{Options: api.Options{Log: slog.New(slog.DiscardHandler)}}}, skipped: map[string]string{}}
		m.plan = &migrate.Plan{System: migrate.BAAgent}
		for _, name := range []string{"one", "two", "three"} {
			m.plan.Drafts = append(m.plan.Drafts, migrate.Draft{Draft: skill.Draft{Name: name, Description: "Does " + name + "."}})
		}
		target := m.target(t.Context())
		target.IsInstalled = func(string) (bool, error) { return false, nil }
		target.CreateSkill = func(_ context.Context, d skill.Draft) error {
			if d.Name == fails {
				return errors.New("the disk is broken")
			}
			return nil
		}
		var err error
		if m.change, err = m.plan.Compare(t.Context(), migrate.Target{Documents: noDocuments{}, IsInstalled: target.IsInstalled, CreateSkill: target.CreateSkill}); err != nil {
			t.Fatal(err)
		}
		err = m.apply(t.Context())
		if want == "" {
			if err == nil {
				t.Errorf("%s fails: no error", fails)
			}
			continue
		}
		var got []string
		for _, i := range m.change.Items {
			got = append(got, fmt.Sprintf("%s: %s %v", i.Name, strings.Replace(string(i.Outcome), "changed", "kept", 1), i.New))
		}
		if err != nil || strings.Join(got, "; ") != want {
			t.Errorf("%s fails: %v, items %q", fails, err, got)
		}
		notes := strings.Join(m.change.Problems, "; ")
		if fails == "none" && notes != "" || fails == "two" && notes != "stopped: the hub failed; migrate the files again to store the rest" {
			t.Errorf("%s fails: notes %q", fails, notes)
		}
	}
}

type noDocuments struct{}

func (noDocuments) Compare(context.Context, *migrate.Plan) ([]migrate.Item, []string, error) {
	return nil, nil, nil
}

func (noDocuments) Apply(context.Context) (written, problems []string, err error) {
	return nil, nil, nil
}
