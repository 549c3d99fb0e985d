package library_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestAnySequenceOfOperations(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	w := newFixture(t, db, &library.Options{ScanTime: 1}) // findings are not what this is about
	people := []account.Principal{w.ada, w.bob, w.meg, w.eve, w.root}
	namespaces := []store.Namespace{ownNamespace(w.ada), ownNamespace(w.eve), w.team, store.Public}
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		var ids []string
		ghosts := 0
		who := rapid.SampledFrom(people)
		where := rapid.SampledFrom(namespaces)
		name := rapid.SampledFrom([]string{"a", "b"})
		body := rapid.SampledFrom([]string{"one", "two", "three"})
		fail := func(err error) { // except public data
			known := errors.Is(err, library.ErrExists) || errors.Is(err, library.ErrNotFound) || errors.Is(err, store.ErrReferenced) ||
				errors.Is(err, library.ErrInvalid) || account.IsDenied(err)
			if _, ok := errors.AsType[*library.NameError](err); err != nil && !known && !ok {
				rt.Fatal(err)
			}
		}
		pick := func() string {
			if len(ids) == 0 {
				return "none"
			}
			return rapid.SampledFrom(ids).Draw(rt, "skill")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"upload": func(rt *rapid.T) {
				n := fmt.Sprintf("%s-%d", name.Draw(rt, "name"), round)
				s, err := w.lib.Upload(w.ctx, who.Draw(rt, "who"), where.Draw(rt, "where"), upload(t, n, body.Draw(rt, "body")))
				fail(err)
				if err == nil {
					ids = append(ids, s.ID)
				}
			},
			"version": func(rt *rapid.T) {
				n := fmt.Sprintf("%s-%d", name.Draw(rt, "name"), round)
				_, err := w.lib.AddVersion(w.ctx, who.Draw(rt, "who"), pick(), upload(t, n, body.Draw(rt, "body")))
				fail(err)
			},
			"use": func(rt *rapid.T) {
				fail(w.lib.SetCurrentVersion(w.ctx, who.Draw(rt, "who"), pick(), int64(rapid.IntRange(1, 3).Draw(rt, "number"))))
			},
			"delete a version": func(rt *rapid.T) {
				fail(w.lib.DeleteVersion(w.ctx, who.Draw(rt, "who"), pick(), int64(rapid.IntRange(1, 3).Draw(rt, "number")), rapid.Bool().Draw(rt, "unbind")))
			},
			"publish": func(rt *rapid.T) { fail(w.lib.Publish(w.ctx, who.Draw(rt, "who"), pick(), where.Draw(rt, "where"))) },
			"withdraw": func(rt *rapid.T) {
				_, err := w.lib.Unpublish(w.ctx, who.Draw(rt, "who"), pick(), where.Draw(rt, "where"), rapid.Bool().Draw(rt, "force"))
				fail(err)
			},
			"hide": func(rt *rapid.T) {
				_, err := w.lib.Hide(w.ctx, who.Draw(rt, "who"), pick(), rapid.Bool().Draw(rt, "hidden"))
				fail(err)
			},
			"default": func(rt *rapid.T) {
				fail(w.lib.SetDefault(w.ctx, who.Draw(rt, "who"), library.Default{Namespace: where.Draw(rt, "where"), SkillID: pick()}))
			},
			"bind": func(rt *rapid.T) {
				ghosts++
				r, err := w.lib.Resolve(w.ctx, who.Draw(rt, "who"), library.Ref{ID: pick()})
				fail(err)
				if err == nil {
					w.ghost(where.Draw(rt, "where"), fmt.Sprintf("g-%d-%d", round, ghosts), store.Reference{ToName: r.Skill.Name, ToID: r.Skill.ID})
				}
			},
			"delete": func(rt *rapid.T) {
				_, err := w.lib.Delete(w.ctx, who.Draw(rt, "who"), pick(), false, rapid.Bool().Draw(rt, "unbind"))
				fail(err)
			},
			"sweep": func(rt *rapid.T) { must(w.db.Blobs.Sweep(w.ctx, 0))(t) },
			"": func(rt *rapid.T) {
				for _, id := range ids[max(0, len(ids)-2):] {
					w.sound(rt, id)
				}
			},
		})
		for _, id := range ids {
			w.sound(rt, id)
		}
	})
	if r := must(w.lib.Check(w.ctx))(t); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

// sound returns what is inconsistent about a skill or its remains.
func (w *fixture) sound(t *rapid.T, id string) {
	s, err := w.lib.Skill(w.ctx, w.root, id)
	if errors.Is(err, library.ErrNotFound) {
		refs, err := w.db.Refs.ListTo(w.ctx, store.SkillKind, id, "", 0)
		if err != nil || len(refs) > 0 {
			t.Fatalf("what is gone is named by %v, %v", refs, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	versions, err := w.lib.Versions(w.ctx, w.root, id, 0, 0)
	if err != nil || len(versions) == 0 {
		t.Fatalf("versions are %v, %v", versions, err)
	}
	for _, v := range versions {
		b, err := w.lib.Open(w.ctx, w.root, id, v.Number)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.ReadFile(b, "SKILL.md"); err != nil {
			t.Fatal(err)
		}
		if v.Current != (v.Number == s.Number) {
			t.Fatalf("version %d of skill at %d: %+v", v.Number, s.Number, v)
		}
	}
	for _, n := range s.Listings {
		found, err := w.lib.Resolve(w.ctx, w.root, library.Ref{Name: s.Name, Namespace: n})
		if err != nil || found.Skill.ID != id {
			t.Fatalf("in %s the name is %v, %v", n, found, err)
		}
	}
}

func TestSweepRemovesUnreferencedFiles(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, ownNamespace(w.ada), "pdf", "one", "a.txt", "a")
		must(w.lib.Delete(w.ctx, w.ada, s.ID, false, false))(t)
		if r := must(w.lib.Check(w.ctx))(t); r.Orphans.Files != 2 || len(r.Problems) > 0 {
			t.Errorf("the report is %+v", r)
		}
		wantEqual(t, must(w.lib.Sweep(w.ctx))(t).Files, int64(0)) // their grace has begun
		w.upload(w.ada, ownNamespace(w.ada), "pdf", "one", "a.txt", "a")
		wantEqual(t, must(w.lib.Check(w.ctx))(t).Orphans.Files, int64(0))
	})
}

// Every name that is taken can be downloaded and uploaded again.
func FuzzNames(f *testing.F) {
	for _, n := range []string{"pdf", "PDF forms", "表单", "a.b", "con", "x.", "a/b", "é", "e\u0301", "\u202eabc", "a@1", "..", "lpt1.txt", "A", "-", "ﬁ"} {
		f.Add(n)
	}
	db := storetest.Open(f, "sqlite:"+filepath.Join(f.TempDir(), "hub.db"))
	w := newFixture(f, db, nil)
	f.Fuzz(func(t *testing.T, name string) {
		pkg := upload(t, "pdf", "", "SKILL.md", fmt.Sprintf("---\nname: %q\ndescription: x\n---\n", name))
		pkg.AnyFolder = true
		s, err := w.lib.Upload(t.Context(), w.ada, ownNamespace(w.ada), pkg)
		if err != nil {
			return
		}
		a := must(w.lib.Download(t.Context(), w.ada, s.ID, 0))(t)
		defer a.Close()
		var out bytes.Buffer
		must(a.WriteTo(&out))(t)
		must(w.lib.Delete(t.Context(), w.ada, s.ID, false, false))(t)
		again := must(w.lib.Upload(t.Context(), w.ada, ownNamespace(w.ada), library.Package{FileName: s.Name + ".zip", Data: &out}))(t)
		if again.Name != s.Name || again.Digest != s.Digest {
			t.Errorf("%q became %q", s.Name, again.Name)
		}
		must(w.lib.Delete(t.Context(), w.ada, again.ID, false, false))(t)
	})
}
