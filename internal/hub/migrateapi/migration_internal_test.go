package migrateapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/session"
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
		target.IsInstalled = func(context.Context, skill.Draft) (bool, error) { return false, nil }
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

// A conversation that another request stored in the meantime is there, with its ID.
func TestConversationStoredByAnotherRequest(t *testing.T) {
	m := &migration{skipped: map[string]string{}, ids: map[string]string{}}
	files := fstest.MapFS{"a.json": {Data: []byte(`{"title": "A", "messages": [{"role": "user", "content": "a"}]}`)}, "b.json": {Data: []byte(`{"title": "B", "messages": [{"role": "user", "content": "b"}]}`)}}
	var err error
	if m.plan, err = migrate.Read(t.Context(), migrate.Wegent, files); err != nil {
		t.Fatal(err)
	}
	m.docs = &documents{migration: m}
	target := migrate.Target{Documents: noDocuments{}, Chats: otherRequest{m}, HasSkill: func(string) bool { return true }}
	if m.change, err = m.plan.Compare(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if err := m.change.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.updateItems(false)
	var got []string
	for _, i := range m.report().Items {
		got = append(got, fmt.Sprintf("%s: %s %v %s %s", i.Name, i.Outcome, i.New, i.ID, i.Details))
	}
	want := `A: kept false id-of-A [1 message]; B: lost false  [no room]`
	if strings.Join(got, "; ") != want || !slices.Equal(m.change.Problems, []string{`conversation "B" was not added: no room`}) {
		t.Errorf("items %q, notes %q", got, m.change.Problems)
	}
}

// otherRequest is a store in which another request stores conversation A, and B does not
// fit.
type otherRequest struct{ m *migration }

func (otherRequest) Contains(context.Context, *migrate.PastConversation) (bool, error) {
	return false, nil
}

func (o otherRequest) Import(_ context.Context, c *migrate.PastConversation, _ func(session.Log) error) error {
	if c.Title == "A" {
		o.m.ids[c.ID] = "id-of-A"
		return &migrate.SkippedError{}
	}
	o.m.skipped[c.ID] = "no room"
	return &migrate.SkippedError{Reason: "no room"}
}

// What is denied only when the documents are stored is recorded once in the audit log.
func TestLateDenialIsRecorded(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	g, err := db.Groups.Create(t.Context(), store.Group{Name: "team"})
	if err != nil {
		t.Fatal(err)
	}
	p := account.Principal{User: "ada", Groups: map[account.GroupID]account.Role{account.GroupID(g.ID): account.Maintainer}, Scopes: account.AllScopes}
	m := &migration{Handlers: &Handlers{Agents: agents.New(db, nil)}, p: p, in: store.GroupNamespace(g.ID), plan: &migrate.Plan{}}
	d := &documents{migration: m}
	for _, doc := range agents.Parse([]byte("apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: helper}\nspec: {systemPrompt: Help.}\n"), "a.yaml") {
		d.all = append(d.all, &uploadedDocument{Document: doc})
	}
	denials := func() int {
		t.Helper()
		found, err := db.Audit.List(t.Context(), store.AuditQuery{Subject: "Ghost/helper", Decision: "denied"})
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if err := d.findNew(t.Context(), true); err != nil || len(d.denied) > 0 {
		t.Fatalf("at first, %+v are denied, %v", d.denied, err)
	}
	m.p.Groups = map[account.GroupID]account.Role{account.GroupID(g.ID): account.Reporter}
	if _, _, err := d.Apply(t.Context()); err != nil || denials() != 1 {
		t.Errorf("%d denials are recorded, %v, want 1", denials(), err)
	}
	if _, _, err := d.Apply(t.Context()); err != nil || denials() != 1 {
		t.Errorf("without a new one, %d denials are recorded, %v, want 1", denials(), err)
	}
}

// A report has a limited number of notes.
func TestNotesAreLimited(t *testing.T) {
	m := &migration{plan: &migrate.Plan{}, change: &migrate.Change{}}
	for i := range 1500 {
		m.change.Problems = append(m.change.Problems, fmt.Sprint(i))
	}
	notes := m.report().Notes
	if len(notes) != 51 || notes[0] != "0" || notes[50] != "and 1450 more" {
		t.Errorf("%d notes, the last %q", len(notes), notes[len(notes)-1])
	}
}

type noDocuments struct{}

func (noDocuments) Compare(context.Context, *migrate.Plan) ([]migrate.Item, []string, error) {
	return nil, nil, nil
}

func (noDocuments) Apply(context.Context) (written, problems []string, err error) {
	return nil, nil, nil
}

// A full quota skips what it does not fit, and another failure ends the migration.
func TestOnlyAFullQuotaSkips(t *testing.T) {
	full, failure := &quota.ExceededError{Measure: quota.Sessions, Limit: 2}, errors.New("the database is unavailable")
	if err := skipIfFull(full); !errors.As(err, new(*migrate.SkippedError)) {
		t.Errorf("full quota: %v", err)
	}
	for _, want := range []error{failure, nil} {
		if err := skipIfFull(want); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
