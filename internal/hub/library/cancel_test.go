package library_test

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/store"
)

// Whichever step of a read fails, the read fails. It never returns a part of the
// answer as if it were all.
func TestReadsFailWithTheirSteps(t *testing.T) {
	w := sqlite(t, nil)
	since := time.Now().Add(-24 * time.Hour)
	s := w.upload(w.ada, w.team, "pdf", "one")
	w.version(w.ada, s, "two", "run.sh", "#!/bin/sh\n")
	other := w.upload(w.meg, w.team, "docx", "Uses pdf.")
	mustDo(t, w.lib.Rate(w.ctx, w.bob, s.ID, 4, "Good."))
	mustDo(t, w.lib.SetDefault(w.ctx, w.meg, library.Default{Namespace: w.team, SkillID: s.ID, Preload: true}))
	mustDo(t, w.lib.Publish(w.ctx, w.root, other.ID, store.Public))
	mustDo(t, w.db.Usage.Add(w.ctx, library.Usage{SkillID: s.ID, Loads: 1, LastUsed: time.Now()}))
	w.ghost(w.team, "helper", store.Reference{ToName: "pdf", ToID: s.ID})
	draft := library.Draft{Files: []library.DraftFile{{Path: "SKILL.md", Data: []byte(text("pdf", "three"))}}, Of: s.ID}
	in := []library.Namespace{w.team}
	page := store.Page{Limit: 10}
	for name, op := range map[string]func(ctx context.Context) (any, error){
		"actions":  func(ctx context.Context) (any, error) { return w.lib.AllowedActions(ctx, w.ada, s.ID) },
		"ID":       func(ctx context.Context) (any, error) { return w.lib.FindID(ctx, w.ada, w.team, "pdf") },
		"file":     func(ctx context.Context) (any, error) { return w.lib.ReadSkillFile(ctx, w.ada, s.ID, 1) },
		"defaults": func(ctx context.Context) (any, error) { return w.lib.Defaults(ctx, w.ada, w.team) },
		"chosen": func(ctx context.Context) (any, error) {
			return w.lib.DefaultSkills(ctx, w.ada, library.ConversationInfo{})
		},
		"package": func(ctx context.Context) (any, error) { return w.lib.PackVersion(ctx, w.ada, s.ID, 1) },
		"draft":   func(ctx context.Context) (any, error) { return w.lib.PackDraft(ctx, w.ada, draft) },
		"check":   func(ctx context.Context) (any, error) { return w.lib.CheckDraft(ctx, w.ada, draft, w.team) },
		"search draft": func(ctx context.Context) (any, error) {
			return w.lib.SearchWithDraft(ctx, w.ada, draft, w.team, []string{"pdf", "docx"}, 5)
		},
		"list": func(ctx context.Context) (any, error) { return w.lib.List(ctx, w.ada, library.Query{}) },
		"list of text": func(ctx context.Context) (any, error) {
			return w.lib.List(ctx, w.meg, library.Query{In: in, Text: "pdf", Hidden: true, Shadowed: true})
		},
		"notifications": func(ctx context.Context) (any, error) {
			all, next, err := w.lib.Notifications(ctx, w.ada, "", false, page)
			return []any{all, next}, err
		},
		"tools": func(ctx context.Context) (any, error) { return w.lib.ListPendingTools(ctx, w.meg, s.ID) },
		"ratings": func(ctx context.Context) (any, error) {
			all, next, err := w.lib.Ratings(ctx, w.ada, s.ID, page)
			return []any{all, next}, err
		},
		"score":        func(ctx context.Context) (any, error) { return w.lib.Score(ctx, w.ada, s.ID) },
		"references":   func(ctx context.Context) (any, error) { return w.lib.References(ctx, w.meg, s.ID) },
		"dry deletion": func(ctx context.Context) (any, error) { return w.lib.Delete(ctx, w.meg, s.ID, true, true) },
		"publisher":    func(ctx context.Context) (any, error) { return w.lib.Publisher(ctx, w.ada, s.ID, 1) },
		"pending": func(ctx context.Context) (any, error) {
			all, next, err := w.lib.ListPending(ctx, w.meg, in, page)
			return []any{all, next}, err
		},
		"skill":   func(ctx context.Context) (any, error) { return w.lib.Skill(ctx, w.bob, s.ID) },
		"search":  func(ctx context.Context) (any, error) { return w.lib.Search(ctx, w.ada, "pdf", 5) },
		"resolve": func(ctx context.Context) (any, error) { return w.lib.Resolve(ctx, w.ada, library.Ref{Name: "pdf"}) },
		"by ID": func(ctx context.Context) (any, error) {
			return w.lib.Resolve(ctx, w.ada, library.Ref{ID: s.ID, Digest: s.Digest})
		},
		"in a namespace": func(ctx context.Context) (any, error) {
			return w.lib.Resolve(ctx, w.ada, library.Ref{Name: "pdf", Namespace: w.team})
		},
		"explain": func(ctx context.Context) (any, error) { return w.lib.Explain(ctx, w.ada, "pdf") },
		"change":  func(ctx context.Context) (any, error) { return nil, w.lib.CheckChange(ctx, w.meg, s.ID) },
		"usage":   func(ctx context.Context) (any, error) { return w.lib.Usage(ctx, w.ada, []string{s.ID}, since) },
		"days":    func(ctx context.Context) (any, error) { return w.lib.UsageDays(ctx, w.ada, s.ID, since) },
		"uses": func(ctx context.Context) (any, error) {
			all, next, err := w.lib.ListUsage(ctx, w.meg, in, since, page)
			return []any{all, next}, err
		},
		"unused": func(ctx context.Context) (any, error) {
			all, next, err := w.lib.ListUnused(ctx, w.meg, in, since, page)
			return []any{all, next}, err
		},
		"version":  func(ctx context.Context) (any, error) { return w.lib.Version(ctx, w.ada, s.ID, 1) },
		"versions": func(ctx context.Context) (any, error) { return w.lib.Versions(ctx, w.ada, s.ID, 0, 10) },
		"findings": func(ctx context.Context) (any, error) { return w.lib.Findings(ctx, w.ada, s.ID, 1) },
		"manifest": func(ctx context.Context) (any, error) { return w.lib.Manifest(ctx, w.ada, s.ID, 1) },
		"diff": func(ctx context.Context) (any, error) {
			return w.lib.Diff(ctx, w.meg, s.ID, 1, 2, &skilldiff.Options{Texts: true})
		},
		"report": func(ctx context.Context) (any, error) { return w.lib.Check(ctx) },
		"open": func(ctx context.Context) (any, error) {
			b, err := w.lib.Open(ctx, w.ada, s.ID, 1)
			if err != nil {
				return nil, err
			}
			defer b.Close()
			return fs.ReadFile(b, "SKILL.md")
		},
		"download": func(ctx context.Context) (any, error) {
			a, err := w.lib.Download(ctx, w.ada, s.ID, 1)
			if err != nil {
				return nil, err
			}
			return a.ETag, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			limittest.CancelReadAtEach(t, op)
		})
	}
}

// Whichever step of a change fails, the change fails, and it succeeds afterwards.
func TestChangesFailWithTheirSteps(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	skill := func() *library.Skill { return must(w.lib.Skill(w.ctx, w.meg, s.ID))(t) }
	w.ghost(w.team, "helper", store.Reference{ToName: "pdf", ToID: s.ID})
	for _, tt := range []struct {
		name string
		op   func(ctx context.Context) error
		done func() bool
	}{
		{"upload", func(ctx context.Context) error {
			_, err := w.lib.Upload(ctx, w.ada, w.team, upload(t, "csv", "one", "run.sh", "#!/bin/sh\n"))
			return err
		}, func() bool { return len(must(w.list(w.ada, library.Query{Text: "csv"}))(t)) == 1 }},
		{"add a version", func(ctx context.Context) error {
			_, err := w.lib.AddVersion(ctx, w.ada, s.ID, upload(t, "pdf", "two"))
			return err
		}, func() bool { return len(must(w.lib.Versions(w.ctx, w.meg, s.ID, 0, 9))(t)) == 2 }},
		{"current version", func(ctx context.Context) error { return w.lib.SetCurrentVersion(ctx, w.meg, s.ID, 1) }, func() bool { return skill().Number == 1 }},
		{"review", func(ctx context.Context) error {
			v := must(w.lib.Version(w.ctx, w.meg, s.ID, 2))(t)
			return w.lib.ReviewVersion(ctx, w.meg, s.ID, library.Decision{Number: 2, Digest: v.Digest, Review: library.Rejected, Note: "No."})
		}, func() bool { return must(w.lib.Version(w.ctx, w.meg, s.ID, 2))(t).Review == library.Rejected }},
		{"delete a version", func(ctx context.Context) error { return w.lib.DeleteVersion(ctx, w.meg, s.ID, 2, false) }, func() bool { return len(must(w.lib.Versions(w.ctx, w.meg, s.ID, 0, 9))(t)) == 1 }},
		{"rate", func(ctx context.Context) error { return w.lib.Rate(ctx, w.bob, s.ID, 4, "Good.") }, func() bool { return must(w.lib.Score(w.ctx, w.bob, s.ID))(t) != nil }},
		{"remove a rating", func(ctx context.Context) error { return w.lib.RemoveRating(ctx, w.bob, s.ID) }, func() bool { return must(w.lib.Score(w.ctx, w.bob, s.ID))(t) == nil }},
		{"hide", func(ctx context.Context) error {
			_, err := w.lib.Hide(ctx, w.meg, s.ID, true)
			return err
		}, func() bool { return skill().Hidden }},
		{"show", func(ctx context.Context) error {
			_, err := w.lib.Hide(ctx, w.meg, s.ID, false)
			return err
		}, func() bool { return !skill().Hidden }},
		{"publish", func(ctx context.Context) error { return w.lib.Publish(ctx, w.root, s.ID, store.Public) }, func() bool { return len(must(w.list(w.eve, library.Query{Text: "pdf"}))(t)) == 1 }},
		{"unpublish", func(ctx context.Context) error {
			_, err := w.lib.Unpublish(ctx, w.root, s.ID, store.Public, true)
			return err
		}, func() bool { return len(must(w.list(w.eve, library.Query{Text: "pdf"}))(t)) == 0 }},
		{"set a default", func(ctx context.Context) error {
			return w.lib.SetDefault(ctx, w.meg, library.Default{Namespace: w.team, SkillID: s.ID})
		}, func() bool { return len(must(w.lib.Defaults(w.ctx, w.ada, w.team))(t)) == 1 }},
		{"remove a default", func(ctx context.Context) error { return w.lib.RemoveDefault(ctx, w.meg, w.team, s.ID) }, func() bool { return len(must(w.lib.Defaults(w.ctx, w.ada, w.team))(t)) == 0 }},
		{"record usage", func(ctx context.Context) error {
			return w.db.Usage.Add(ctx, library.Usage{SkillID: s.ID, Loads: 1, LastUsed: time.Now()})
		}, func() bool {
			return must(w.lib.Usage(w.ctx, w.meg, []string{s.ID}, time.Now().Add(-24*time.Hour)))(t)[s.ID].Loads == 1
		}},
		{"unbind", func(ctx context.Context) error {
			_, err := w.lib.UnbindAll(ctx, w.meg, s.ID)
			return err
		}, func() bool { return len(must(w.lib.References(w.ctx, w.meg, s.ID))(t).Visible) == 0 }},
		{"delete", func(ctx context.Context) error {
			_, err := w.lib.Delete(ctx, w.meg, s.ID, false, false)
			return err
		}, func() bool { return len(must(w.list(w.ada, library.Query{Text: "pdf"}))(t)) == 0 }},
		{"sweep", func(ctx context.Context) error {
			_, err := w.lib.Sweep(ctx)
			return err
		}, func() bool { return true }},
	} {
		if tt.done() && tt.name != "sweep" {
			t.Errorf("%s: done before it began", tt.name)
		}
		limittest.CancelAtEach(t, tt.op)
		if !tt.done() {
			t.Errorf("%s: not done, without an error", tt.name)
		}
	}
}
