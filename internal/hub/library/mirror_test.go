package library_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/skill"
)

// mirrored is a mirror of a directory.
type mirrored struct {
	*fixture
	dir    string
	skills *catalog.Catalog
	mirror *library.Mirror
}

func newMirrored(t *testing.T, w *fixture) *mirrored {
	t.Helper()
	m := &mirrored{fixture: w, dir: t.TempDir()}
	m.skills = must(catalog.New([]catalog.Source{catalog.NewDir("skills", catalog.User, m.dir, nil)}, nil))(t)
	m.mirror = w.lib.Mirror(store.Operator, m.skills, false, slog.New(slog.DiscardHandler))
	return m
}

// write writes a file of the directory. Text of "" deletes it.
func (m *mirrored) write(path, text string) {
	m.t.Helper()
	full := filepath.Join(m.dir, path)
	if text == "" {
		mustDo(m.t, os.Remove(full))
		return
	}
	mustDo(m.t, os.MkdirAll(filepath.Dir(full), 0o755))
	mustDo(m.t, os.WriteFile(full, []byte(text), 0o644))
}

func (m *mirrored) update() {
	m.t.Helper()
	mustDo(m.t, m.mirror.Update(m.ctx))
}

// listed returns the skills that eve sees in the namespace.
func (m *mirrored) listed() map[string]*library.Skill {
	m.t.Helper()
	all, err := m.fixture.list(m.eve, library.Query{In: []store.Namespace{store.Operator}})
	mustDo(m.t, err)
	out := map[string]*library.Skill{}
	for _, s := range all {
		out[s.Name] = s
	}
	return out
}

const tidesText = "---\nname: tides\ndescription: Tells the tides.\n---\n"

// Everyone sees the skills of a directory and its changes.
func TestMirrorFollowsDirectory(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		m := newMirrored(t, w)
		m.write("tides/SKILL.md", tidesText+"One.")
		m.write("broken/SKILL.md", "no frontmatter")
		m.update()
		first := m.listed()["tides"]
		if first == nil || first.Number != 1 || first.Namespace != store.Operator || len(m.listed()) != 1 {
			t.Fatalf("after the first pass: %+v", m.listed())
		}
		hits := must(w.lib.Search(w.ctx, w.eve, "tides", 5))(t)
		if len(hits) != 1 || hits[0].ID != first.ID {
			t.Errorf("a search finds %+v", hits)
		}

		m.write("tides/SKILL.md", tidesText+"Two, and longer.")
		m.write("tides/table.csv", "1,2\n")
		m.update()
		second := m.listed()["tides"]
		if second.ID != first.ID || second.Number != 2 || second.Files != 2 {
			t.Errorf("after an edit: %+v", second)
		}
		m.update() // nothing changed
		if s := m.listed()["tides"]; s.Number != 2 {
			t.Errorf("without an edit: %+v", s)
		}

		m.write("tides/table.csv", "")
		m.write("tides/SKILL.md", tidesText+"One.")
		m.update()
		if s := m.listed()["tides"]; s.Digest != first.Digest || s.Number != 1 {
			t.Errorf("after going back: %+v", s)
		}
	})
}

// A skill that disappears is hidden, and comes back with its reviews. A pass of a new
// process hides what disappeared meanwhile.
func TestMirrorHidesWhatDisappears(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		m := newMirrored(t, w)
		m.write("tides/SKILL.md", tidesText)
		m.write("tides/scripts/run.sh", "#!/bin/sh\necho 1\n")
		m.update()
		was := m.listed()["tides"]
		mustDo(t, w.lib.ReviewVersion(w.ctx, w.root, was.ID, library.Decision{Digest: was.Digest, Review: library.Approved}))

		mustDo(t, os.Rename(filepath.Join(m.dir, "tides"), filepath.Join(m.dir, "..", "away")))
		m.update()
		if len(m.listed()) != 0 {
			t.Errorf("the skill is listed: %+v", m.listed())
		}
		mustDo(t, os.Rename(filepath.Join(m.dir, "..", "away"), filepath.Join(m.dir, "tides")))
		m.update()
		if s := m.listed()["tides"]; s == nil || s.ID != was.ID || !s.Runnable {
			t.Errorf("after its return: %+v", s)
		}

		mustDo(t, os.RemoveAll(filepath.Join(m.dir, "tides")))
		m.mirror = w.lib.Mirror(store.Operator, m.skills, false, slog.New(slog.DiscardHandler))
		m.update()
		if len(m.listed()) != 0 {
			t.Errorf("a new process lists %+v", m.listed())
		}
	})
}

// openHook is a source that calls a function before a skill is opened.
type openHook struct {
	catalog.Source
	before func()
}

func (s openHook) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	s.before()
	return s.Source.Open(ctx, e)
}

// A node that finds that another one has just added a skill adds its version in the
// next pass.
func TestMirrorsAddSkillAtTheSameTime(t *testing.T) {
	w := sqlite(t, nil)
	one, two := newMirrored(t, w), newMirrored(t, w)
	one.write("tides/SKILL.md", tidesText+"One.")
	two.write("tides/SKILL.md", tidesText+"Two, and longer.")
	opened := 0
	source := openHook{catalog.NewDir("skills", catalog.User, two.dir, nil), func() {
		if opened++; opened == 2 { // for its content, after the mirror has read which skills are stored
			one.update()
		}
	}}
	two.mirror = w.lib.Mirror(store.Operator, must(catalog.New([]catalog.Source{source}, nil))(t), false, slog.New(slog.DiscardHandler))
	two.update()
	if s := two.listed()["tides"]; s == nil || s.Number != 1 || opened != 2 {
		t.Fatalf("after %d openings: %+v", opened, s)
	}
	two.update()
	if s := two.listed()["tides"]; s.Number != 2 {
		t.Errorf("after another pass: %+v", s)
	}
}

// Administrators list the hidden skills of a namespace that only the hub changes.
func TestAdministratorsListHiddenMirroredSkills(t *testing.T) {
	w := sqlite(t, nil)
	m := newMirrored(t, w)
	m.write("tides/SKILL.md", tidesText)
	m.update()
	mustDo(t, os.RemoveAll(filepath.Join(m.dir, "tides")))
	m.update()
	q := library.Query{In: []store.Namespace{store.Operator}, Hidden: true, OnlyHidden: true}
	if found, err := w.list(w.root, q); err != nil || len(found) != 1 {
		t.Errorf("an administrator sees %+v, %v", found, err)
	}
	if found, err := w.list(w.eve, q); !account.IsDenied(err) {
		t.Errorf("a user sees %+v, %v", found, err)
	}
}

// Code needs an approval of its digest, as after an upload, and the approved version
// remains current until a changed one is approved.
func TestMirroredCodeNeedsReview(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		m := newMirrored(t, w)
		m.write("tides/SKILL.md", tidesText)
		m.write("tides/scripts/run.sh", "#!/bin/sh\necho 1\n")
		m.update()
		one := m.listed()["tides"]
		if one.Runnable || !one.Code {
			t.Fatalf("code of a directory runs without a review: %+v", one)
		}
		if err := w.lib.ReviewVersion(w.ctx, w.meg, one.ID, library.Decision{Digest: one.Digest, Review: library.Approved}); !account.IsDenied(err) {
			t.Errorf("a user reviews it: %v", err)
		}
		mustDo(t, w.lib.ReviewVersion(w.ctx, w.root, one.ID, library.Decision{Digest: one.Digest, Review: library.Approved}))

		m.write("tides/scripts/run.sh", "#!/bin/sh\necho two\n")
		m.update()
		if s := m.listed()["tides"]; s.Digest != one.Digest || !s.Runnable {
			t.Errorf("an unreviewed version is current: %+v", s)
		}
		pending, _, err := w.lib.ListPending(w.ctx, w.root, nil, store.Page{})
		if err != nil || len(pending) != 1 || pending[0].Namespace != store.Operator {
			t.Fatalf("the version waits: %+v, %v", pending, err)
		}
		mustDo(t, w.lib.ReviewVersion(w.ctx, w.root, one.ID, library.Decision{Digest: pending[0].Digest, Review: library.Approved}))
		if s := m.listed()["tides"]; s.Digest != pending[0].Digest || !s.Runnable {
			t.Errorf("after the review: %+v", s)
		}
	})
}

// Nobody changes what only the hub changes, not even an administrator.
func TestMirroredNamespacesAreReadOnly(t *testing.T) {
	w := sqlite(t, nil)
	m := newMirrored(t, w)
	m.write("tides/SKILL.md", tidesText)
	m.update()
	id := m.listed()["tides"].ID
	actions := must(w.lib.AllowedActions(w.ctx, w.root, id))(t)
	for _, a := range []account.Action{account.SkillChange, account.SkillPublish, account.SkillHide, account.SkillDelete} {
		if slices.Contains(actions, a) {
			t.Errorf("an administrator may %s", a)
		}
	}
	if !slices.Contains(actions, account.SkillReview) || !slices.Contains(actions, account.SkillDownload) {
		t.Errorf("an administrator may only %v", actions)
	}
	for _, n := range []store.Namespace{store.Operator, store.Bundled} {
		if _, err := w.lib.Upload(w.ctx, w.root, n, upload(t, "moon", "The moon.")); !account.IsDenied(err) {
			t.Errorf("an upload to %s: %v", n, err)
		}
	}
	if _, err := w.lib.Delete(w.ctx, w.root, id, false, false); !account.IsDenied(err) {
		t.Errorf("a deletion: %v", err)
	}
}

// A user's own skill has precedence over one of the operator with the same name.
func TestMirroredSkillIsShadowed(t *testing.T) {
	w := sqlite(t, nil)
	m := newMirrored(t, w)
	m.write("tides/SKILL.md", tidesText)
	m.update()
	own := w.upload(w.ada, ownNamespace(w.ada), "tides", "Her own.")
	if r := must(w.lib.Resolve(w.ctx, w.ada, library.Ref{Name: "tides"}))(t); r.Skill.ID != own.ID {
		t.Errorf("ada gets the skill of %s", r.In)
	}
	if r := must(w.lib.Resolve(w.ctx, w.eve, library.Ref{Name: "tides"}))(t); r.In != store.Operator {
		t.Errorf("eve gets the skill of %s", r.In)
	}
}

// Versions that nobody reviewed or pinned do not accumulate.
func TestMirrorDeletesOldVersions(t *testing.T) {
	w := sqlite(t, nil)
	m := newMirrored(t, w)
	for i := range 60 {
		m.write("tides/SKILL.md", tidesText+string(rune('0'+i))+" is the text.")
		m.update()
	}
	s := m.listed()["tides"]
	all := must(w.lib.Versions(w.ctx, w.root, s.ID, 0, 100))(t)
	if s.Number != 60 || len(all) != 50 || all[49].Number != 11 {
		t.Errorf("version %d is current, of %d", s.Number, len(all))
	}
}

// Skills that ship with the program are approved, and cannot be rejected.
func TestMirroredBundledSkillsAreApproved(t *testing.T) {
	w := sqlite(t, nil)
	m := newMirrored(t, w)
	m.mirror = w.lib.Mirror(store.Bundled, m.skills, true, slog.New(slog.DiscardHandler))
	m.write("tides/SKILL.md", tidesText)
	for _, text := range []string{"echo 1", "echo two"} {
		m.write("tides/scripts/run.sh", text)
		m.update()
		all, err := w.list(w.eve, library.Query{In: []store.Namespace{store.Bundled}})
		if err != nil || len(all) != 1 || !all[0].Runnable {
			t.Fatalf("%s: %+v, %v", text, all, err)
		}
		err = w.lib.ReviewVersion(w.ctx, w.root, all[0].ID, library.Decision{Digest: all[0].Digest, Review: library.Rejected})
		if !errors.Is(err, library.ErrInvalid) {
			t.Errorf("a rejection: %v", err)
		}
		if data := must(w.lib.ReadSkillFile(w.ctx, w.eve, all[0].ID, 0))(t); len(data) == 0 {
			t.Error("its instructions cannot be read")
		}
	}
	sources := must(w.lib.Sources(w.ctx, w.eve))(t)
	if i := slices.IndexFunc(sources, func(s catalog.Source) bool { return s.Origin() == "bundled" }); i >= 0 {
		t.Error("the library provides bundled skills to conversations, which have them already")
	}
}

// A new skill is added although its transaction has to start over.
func TestMirrorRetriesTransaction(t *testing.T) {
	address := storetest.Postgres(t)
	m := newMirrored(t, newFixture(t, storetest.Open(t, address), nil))
	db := must(sql.Open("pgx", address))(t)
	defer db.Close()
	_, err := db.Exec(`CREATE SEQUENCE tries;
		CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('tries') = 1 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER fail_once BEFORE INSERT ON versions FOR EACH ROW EXECUTE FUNCTION fail_once()`)
	mustDo(t, err)
	m.write("tides/SKILL.md", tidesText)
	m.update()
	if len(m.listed()) != 1 {
		t.Errorf("the skill is missing: %+v", m.listed())
	}
}
