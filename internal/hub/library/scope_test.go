package library_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// W6: names are resolved in the user's namespace, those of the groups, and the public
// one. Lists omit shadowed skills.
func TestW6Scopes(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		mine := w.upload(w.ada, ownNamespace(w.ada), "pdf", "mine")
		ours := w.upload(w.ada, w.team, "pdf", "ours")
		all := w.upload(w.root, store.Public, "pdf", "everybody's")
		w.upload(w.root, store.Public, "docx", "everybody's")
		w.upload(w.eve, ownNamespace(w.eve), "secret", "eve's")

		for _, tt := range []struct {
			who  account.Principal
			want string
		}{{w.ada, mine.ID}, {w.bob, ours.ID}, {w.eve, all.ID}} {
			r := must(w.lib.Resolve(w.ctx, tt.who, library.Ref{Name: "pdf"}))(t)
			if r.Skill.ID != tt.want || r.Version.Digest != r.Skill.Digest {
				t.Errorf("%s: pdf is %+v", tt.who.Name, r.Skill)
			}
		}
		list := func(p account.Principal, q library.Query) []string {
			rows, err := w.list(p, q)
			mustDo(t, err)
			return names(rows, func(s *library.Skill) string { return s.Name + " " + s.Description[:0] + s.ID })
		}
		docx := must(w.lib.Resolve(w.ctx, w.eve, library.Ref{Name: "docx"}))(t).Skill.ID
		wantEqual(t, list(w.ada, library.Query{}), []string{"docx " + docx, "pdf " + mine.ID})
		wantEqual(t, list(w.bob, library.Query{}), []string{"docx " + docx, "pdf " + ours.ID})
		wantEqual(t, len(list(w.ada, library.Query{Shadowed: true})), 4)
		wantEqual(t, list(w.eve, library.Query{In: []store.Namespace{store.Public}, Text: "DOCX"}), []string{"docx " + docx})

		for _, in := range []store.Namespace{ownNamespace(w.ada), w.team} {
			_, err := w.list(w.eve, library.Query{In: []store.Namespace{in}})
			wantError(t, err, library.ErrNotFound)
		}
		_, err := w.lib.Resolve(w.ctx, w.ada, library.Ref{Name: "secret"})
		wantError(t, err, library.ErrNotFound)

		why := must(w.lib.Explain(w.ctx, w.ada, "pdf"))(t)
		wantEqual(t, names(why, func(c library.Candidate) string { return fmt.Sprint(c.Skill.ID, c.Chosen) }),
			[]string{mine.ID + "true", ours.ID + "false", all.ID + "false"})
	})
}

// W7: a precise reference means one skill, regardless of other skills with the name. A
// name is resolved when it is used.
func TestW7References(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		all := w.upload(w.root, store.Public, "pdf", "everybody's")
		byName := library.Ref{Name: "pdf"}
		precise := library.Ref{Name: "pdf", ID: all.ID, Digest: all.Digest}
		mine := w.upload(w.ada, ownNamespace(w.ada), "pdf", "mine") // later than the references
		next := must(w.lib.AddVersion(w.ctx, w.root, all.ID, upload(t, "pdf", "newer")))(t)

		resolve := func(r library.Ref) string {
			got := must(w.lib.Resolve(w.ctx, w.ada, r))(t)
			return got.Skill.ID + " " + got.Version.Digest
		}
		wantEqual(t, resolve(byName), mine.ID+" "+mine.Digest)
		wantEqual(t, resolve(precise), all.ID+" "+all.Digest)
		wantEqual(t, resolve(library.Ref{ID: all.ID}), all.ID+" "+next.Digest)
		wantEqual(t, resolve(library.Ref{Name: "pdf", Namespace: store.Public}), all.ID+" "+next.Digest)

		for _, tt := range []struct {
			who  account.Principal
			ref  library.Ref
			want error
		}{
			{w.ada, library.Ref{Name: "docx", ID: all.ID}, library.ErrConflict},
			{w.ada, library.Ref{ID: "none"}, library.ErrNotFound},
			{w.ada, library.Ref{ID: all.ID, Digest: mine.Digest}, library.ErrNotFound},
			{w.eve, library.Ref{ID: mine.ID}, library.ErrNotFound},
			{w.eve, library.Ref{Name: "pdf", Namespace: ownNamespace(w.ada)}, library.ErrNotFound},
			{w.eve, library.Ref{Name: "pdf", Namespace: "nonsense"}, library.ErrNotFound},
		} {
			if _, err := w.lib.Resolve(w.ctx, tt.who, tt.ref); !errors.Is(err, tt.want) && !account.IsDenied(err) {
				t.Errorf("%+v: error is %v, want %v", tt.ref, err, tt.want)
			}
		}
	})
}

// W30: a hidden public skill is usable by name and not found by searches. Its package is
// not public, hidden or not.
func TestW30HiddenSkills(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.root, store.Public, "pdf", "body")
		g := w.ghost(ownNamespace(w.eve), "helper", store.Reference{ToName: "pdf"})
		refs := must(w.lib.Hide(w.ctx, w.root, s.ID, true))(t)
		wantEqual(t, names(refs.Visible, func(r library.Reference) string { return r.ID }), []string{g.ID})

		list, err := w.list(w.eve, library.Query{})
		mustDo(t, err)
		wantEqual(t, skillNames(list), []string{})
		hits := must(w.lib.Search(w.ctx, w.eve, "pdf", 0))(t)
		wantEqual(t, len(hits), 0)
		_, err = w.lib.Skill(w.ctx, w.eve, s.ID)
		wantError(t, err, library.ErrNotFound)
		_, err = w.list(w.eve, library.Query{In: []store.Namespace{store.Public}, Hidden: true})
		wantDenied(t, err)
		list, err = w.list(w.root, library.Query{In: []store.Namespace{store.Public}, Hidden: true})
		mustDo(t, err)
		wantEqual(t, skillNames(list), []string{"pdf"})

		r := must(w.lib.Resolve(w.ctx, w.eve, library.Ref{Name: "pdf"}))(t)
		wantEqual(t, r.Skill.ID, s.ID)
		_, err = w.lib.Hide(w.ctx, w.eve, s.ID, false)
		wantError(t, err, library.ErrNotFound)

		_, err = w.lib.Download(w.ctx, w.eve, s.ID, 0)
		wantError(t, err, library.ErrNotFound)

		must(w.lib.Hide(w.ctx, w.root, s.ID, false))(t)
		a := must(w.lib.Download(w.ctx, w.eve, s.ID, 0))(t) // unlike in the earlier system
		mustDo(t, a.Close())
	})
}

// W4: a package is the same bytes each time, and can be uploaded again.
func TestW4Downloads(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "body", "scripts/run.sh", "#!/bin/sh\n", "ref/a.md", "text")
		fetch := func(p account.Principal) ([]byte, *library.Archive) {
			a := must(w.lib.Download(w.ctx, p, s.ID, 0))(t)
			defer a.Close()
			var out bytes.Buffer
			if n := must(a.WriteTo(&out))(t); n != int64(out.Len()) {
				t.Errorf("%d bytes are written, and %d said", out.Len(), n)
			}
			return out.Bytes(), a
		}
		first, a := fetch(w.ada)
		second, _ := fetch(w.bob)
		if !bytes.Equal(first, second) {
			t.Error("two downloads differ")
		}
		if a.ETag != `"`+s.Digest+`"` || a.FileName != "pdf-1.zip" {
			t.Errorf("the archive is %+v", a)
		}
		again := must(w.lib.Upload(w.ctx, w.eve, ownNamespace(w.eve), library.Package{FileName: a.FileName, AnyFolder: true, Data: bytes.NewReader(first)}))(t)
		wantEqual(t, again.Digest, s.Digest)
		_, err := w.lib.Download(w.ctx, w.eve, s.ID, 0)
		wantError(t, err, library.ErrNotFound)
	})
}

func TestPublishedSkillsAreVisible(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, ownNamespace(w.ada), "pdf", "body")
		_, err := w.lib.Skill(w.ctx, w.bob, s.ID)
		wantError(t, err, library.ErrNotFound)
		mustDo(t, w.lib.Publish(w.ctx, w.ada, s.ID, w.team))
		mustDo(t, w.lib.Publish(w.ctx, w.ada, s.ID, w.team)) // it is there
		other := w.upload(w.root, ownNamespace(w.root), "pdf", "another")
		wantError(t, w.lib.Publish(w.ctx, w.root, other.ID, w.team), library.ErrExists)
		wantDenied(t, w.lib.Publish(w.ctx, w.ada, s.ID, store.Public))
		wantError(t, w.lib.Publish(w.ctx, w.root, s.ID, ownNamespace(w.root)), library.ErrInvalid)
		seen := must(w.lib.Skill(w.ctx, w.bob, s.ID))(t)
		wantEqual(t, seen.Listings, []store.Namespace{w.team})
		_, err = w.lib.AddVersion(w.ctx, w.meg, s.ID, upload(t, "pdf", "hers"))
		wantDenied(t, err) // it is in her group, and ada's
		_, err = w.lib.Skill(w.ctx, w.eve, s.ID)
		wantError(t, err, library.ErrNotFound)

		g := w.ghost(ownNamespace(w.bob), "helper", store.Reference{ToName: "pdf", ToID: s.ID})
		var used *library.ReferencedError
		if _, err := w.lib.Unpublish(w.ctx, w.meg, s.ID, w.team, false); !errors.As(err, &used) || used.References.Total() != 1 || used.References.Hidden != 1 {
			t.Errorf("error is %v", err)
		}
		_, err = w.lib.Unpublish(w.ctx, w.bob, s.ID, w.team, false)
		wantDenied(t, err)
		lost := must(w.lib.Unpublish(w.ctx, w.meg, s.ID, w.team, true))(t)
		wantEqual(t, lost.Total(), 1)
		_, err = w.lib.Skill(w.ctx, w.bob, s.ID)
		wantError(t, err, library.ErrNotFound)
		if refs := must(w.lib.References(w.ctx, w.ada, s.ID))(t); refs.Total() != 1 || refs.Hidden != 1 || strings.Contains(fmt.Sprint(refs.Visible), g.Name) {
			t.Errorf("references are %+v", refs)
		}
	})
}

// TestW9Roles tries every action as every user, and compares it with the rules of
// package account. A skill that a user may not see is not found.
func TestW9Roles(t *testing.T) {
	w := sqlite(t, nil)
	homes := map[string]store.Namespace{"own": ownNamespace(w.ada), "team": w.team, "public": store.Public}
	uploaders := map[string]account.Principal{"own": w.ada, "team": w.ada, "public": w.root}
	people := []account.Principal{w.ada, w.bob, w.meg, w.eve, w.root, {}, w.ada.LimitedTo(account.ScopeRead), w.root.LimitedTo(account.ScopeMCP)}
	n := 0
	fresh := func(at string, hidden bool) *library.Skill {
		n++
		s := w.upload(uploaders[at], homes[at], fmt.Sprint("skill", n), "one")
		w.version(uploaders[at], s, "two")
		if hidden {
			must(w.lib.Hide(w.ctx, w.root, s.ID, true))(t)
			s.Hidden = true
		}
		return s
	}
	actions := map[account.Action]func(account.Principal, *library.Skill) error{
		account.SkillRead: func(p account.Principal, s *library.Skill) error { _, err := w.lib.Skill(w.ctx, p, s.ID); return err },
		account.SkillDownload: func(p account.Principal, s *library.Skill) error {
			_, err := w.lib.Download(w.ctx, p, s.ID, 0)
			return err
		},
		account.SkillRate:   func(p account.Principal, s *library.Skill) error { return w.lib.Rate(w.ctx, p, s.ID, 4, "good") },
		account.SkillChange: func(p account.Principal, s *library.Skill) error { return w.lib.SetCurrentVersion(w.ctx, p, s.ID, 1) },
		account.SkillReview: func(p account.Principal, s *library.Skill) error {
			return w.lib.ReviewVersion(w.ctx, p, s.ID, library.Decision{Digest: s.Digest, Review: library.Approved})
		},
		account.SkillHide: func(p account.Principal, s *library.Skill) error {
			_, err := w.lib.Hide(w.ctx, p, s.ID, s.Hidden)
			return err
		},
		account.SkillDelete: func(p account.Principal, s *library.Skill) error {
			_, err := w.lib.Delete(w.ctx, p, s.ID, false, false)
			return err
		},
		account.UsageRead: func(p account.Principal, s *library.Skill) error {
			_, err := w.lib.UsageDays(w.ctx, p, s.ID, s.Created)
			return err
		},
	}
	resource := func(at string, hidden bool) account.Resource {
		r := account.Resource{Hidden: hidden}
		switch at {
		case "own":
			r.Owner = w.ada.User
		case "team":
			r.Group, r.Author = account.GroupID(w.team.Group()), w.ada.User
		case "public":
			r.Shared = true
		}
		return r
	}
	for _, at := range slices.Sorted(maps.Keys(homes)) {
		for _, hidden := range []bool{false, true} {
			var s *library.Skill // used until one may delete it
			for _, a := range slices.Sorted(maps.Keys(actions)) {
				for i, p := range people {
					if s == nil || a == account.SkillDelete {
						s = fresh(at, hidden)
					}
					r := resource(at, hidden)
					err := actions[a](p, s)
					want := account.Check(p, a, r)
					if (err == nil) != (want == nil) {
						t.Errorf("%s of %s hidden=%v by %d %s: error is %v, want %v", a, at, hidden, i, p.Name, err, want)
						continue
					}
					full := p
					full.Scopes = account.AllScopes
					if err != nil && account.Can(full, account.SkillRead, r) == errors.Is(err, library.ErrNotFound) && !p.Anonymous() {
						t.Errorf("%s of %s hidden=%v by %s: error is %v", a, at, hidden, p.Name, err)
					}
				}
			}
		}
	}
}

// Each change is in the audit log, and so is each that was denied.
func TestChangesAreRecorded(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one")
		w.version(w.ada, s, "two")
		_, err := w.lib.Delete(w.ctx, w.bob, s.ID, false, false)
		wantDenied(t, err)
		_, err = w.lib.Upload(w.ctx, w.bob, w.team, upload(t, "x", ""))
		wantDenied(t, err)
		wantDenied(t, w.lib.Publish(w.ctx, w.ada, s.ID, store.Public))
		must(w.lib.Delete(w.ctx, w.ada, s.ID, true, false))(t)
		must(w.lib.Delete(w.ctx, w.ada, s.ID, false, false))(t)
		var got []string
		for _, r := range must(w.db.Audit.List(w.ctx, store.AuditQuery{}))(t) {
			got = append(got, fmt.Sprint(r.Action, " ", r.Decision, " ", r.Actor == string(w.ada.User)))
		}
		slices.Reverse(got)
		wantEqual(t, got, []string{"skill.upload allowed true", "skill.change allowed true", "skill.delete denied false", "skill.upload denied false",
			"skill.upload denied true", "skill.delete allowed true"})
	})
}

// Somebody who makes many groups and puts others into them takes nothing from these: the
// groups that they were in before stay in reach.
func TestManyGroups(t *testing.T) {
	w := sqlite(t, nil)
	ours := w.upload(w.ada, w.team, "pdf", "ours")
	for range store.MaxNamespaces {
		w.bob.Groups[account.GroupID(store.NewID())] = account.Reporter
	}
	rows, err := w.list(w.bob, library.Query{})
	mustDo(t, err)
	wantEqual(t, names(rows, func(s *library.Skill) string { return s.ID }), []string{ours.ID})
	_, err = w.lib.DefaultSkills(w.ctx, w.bob, library.ConversationInfo{})
	mustDo(t, err)
}
