package library_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// W8: a referenced skill cannot be deleted. The referrers are listed, and references are
// removed one by one or all together.
func TestW8ReferencesPreventDeletion(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "body")
		byName := w.ghost(w.team, "by-name", store.Reference{ToName: "pdf"})
		w.ghost(ownNamespace(w.bob), "precise", store.Reference{ToName: "pdf", ToID: s.ID})
		w.ghost(ownNamespace(w.eve), "another", store.Reference{ToName: "pdf"}) // she does not reach it
		mustDo(t, w.lib.SetDefault(w.ctx, w.bob, library.Default{Namespace: ownNamespace(w.bob), SkillID: s.ID}))
		mustDo(t, w.lib.Publish(w.ctx, w.root, s.ID, store.Public))
		w.upload(w.bob, ownNamespace(w.bob), "forms", "", "SKILL.md", "---\nname: forms\ndescription: Needs another.\ndependencies: [\"pdf@^1.0\"]\n---\n")

		refs := must(w.lib.References(w.ctx, w.meg, s.ID))(t)
		kinds := names(refs.Visible, func(r library.Reference) string { return r.Kind + " " + r.Name })
		wantEqual(t, kinds, []string{"Ghost by-name", "Listing "})
		if refs.Hidden != 4 || refs.Total() != 6 { // bob's ghost, default and skill; eve's ghost, which means the public one
			t.Errorf("references are %+v", refs)
		}
		var used *library.ReferencedError
		if _, err := w.lib.Delete(w.ctx, w.meg, s.ID, false, false); !errors.As(err, &used) || used.References.Total() != 6 || !errors.Is(err, store.ErrReferenced) {
			t.Errorf("error is %v", err)
		}
		dry := must(w.lib.Delete(w.ctx, w.meg, s.ID, true, true))(t)
		if dry.Deleted || dry.References.Total() != 6 {
			t.Errorf("a dry run returned %+v", dry)
		}
		_, err := w.lib.References(w.ctx, w.bob, s.ID)
		wantDenied(t, err)

		mustDo(t, w.lib.Unbind(w.ctx, w.meg, s.ID, library.Reference{Kind: "Ghost", ID: byName.ID}))
		var spec ghost
		mustDo(t, json.Unmarshal(must(w.db.Kinds.Get(w.ctx, byName.ID))(t).Spec, &spec))
		wantEqual(t, spec.Skills, []string{})
		wantError(t, w.lib.Unbind(w.ctx, w.meg, s.ID, library.Reference{Kind: "Ghost", ID: byName.ID}), library.ErrNotFound)

		left := must(w.lib.UnbindAll(w.ctx, w.meg, s.ID))(t)
		wantEqual(t, left.Total(), 1) // bob's skill needs it, as its files say
		_, err = w.lib.Delete(w.ctx, w.meg, s.ID, false, false)
		wantError(t, err, store.ErrReferenced)
		done := must(w.lib.Delete(w.ctx, w.meg, s.ID, false, true))(t)
		if !done.Deleted {
			t.Errorf("the deletion is %+v", done)
		}
		_, err = w.lib.Skill(w.ctx, w.ada, s.ID)
		wantError(t, err, library.ErrNotFound)
		notifications, _, err := w.lib.Notifications(w.ctx, w.bob, "", true, store.Page{})
		mustDo(t, err)
		wantEqual(t, names(notifications, func(n library.Notification) string { return n.Kind + " " + n.Details.Name }), []string{"skill.removed pdf"})
	})
}

func TestManyReferencesAreRemoved(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "body")
	for i := range store.MaxPage + 20 {
		w.ghost(w.team, fmt.Sprint("g", i), store.Reference{ToName: "pdf", ToID: s.ID})
	}
	if refs := must(w.lib.References(w.ctx, w.meg, s.ID))(t); !refs.More {
		t.Errorf("there are %d references, and no more", refs.Total())
	}
	must(w.lib.Delete(w.ctx, w.meg, s.ID, false, true))(t)
	if left := must(w.db.Refs.ListTo(w.ctx, store.SkillKind, s.ID, "pdf", 0))(t); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// Names that others write, and that mean skills of theirs, hide no reference.
func TestForeignNamesHideNoReference(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "body")
	w.upload(w.eve, ownNamespace(w.eve), "pdf", "hers")
	for i := range store.MaxPage {
		w.ghost(ownNamespace(w.eve), fmt.Sprint("a", i), store.Reference{ToName: "pdf"})
	}
	k := w.ghost(w.team, "z", store.Reference{ToName: "pdf", ToID: s.ID})
	_, err := w.lib.Delete(w.ctx, w.meg, s.ID, false, false)
	wantError(t, err, store.ErrReferenced)
	mustDo(t, w.lib.Unbind(w.ctx, w.meg, s.ID, library.Reference{Kind: k.Kind, ID: k.ID}))
	_, err = w.lib.Delete(w.ctx, w.meg, s.ID, false, false)
	wantError(t, err, store.ErrReferenced) // there may be more
	must(w.lib.Delete(w.ctx, w.meg, s.ID, false, true))(t)
}

func TestDefaultLimit(t *testing.T) {
	w := sqlite(t, nil)
	var last *library.Skill
	for i := range library.MaxDefaults + 1 {
		last = w.upload(w.ada, ownNamespace(w.ada), fmt.Sprint("s", i), "")
	}
	wantEqual(t, len(must(w.lib.Defaults(w.ctx, w.ada, ownNamespace(w.ada)))(t)), library.MaxDefaults)
	wantError(t, w.lib.SetDefault(w.ctx, w.ada, library.Default{Namespace: ownNamespace(w.ada), SkillID: last.ID}), library.ErrTooMany)
}

func TestPinnedVersionIsNotDeleted(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	w.version(w.ada, s, "two")
	w.ghost(w.team, "helper", store.Reference{ToName: "pdf", ToID: s.ID, Digest: s.Digest})
	wantError(t, w.lib.DeleteVersion(w.ctx, w.ada, s.ID, 1, false), store.ErrReferenced)
	wantError(t, w.lib.DeleteVersion(w.ctx, w.meg, s.ID, 1, true), library.ErrInvalid) // it is not rejected
}

// A reference by a user whom the maintainer cannot see does not protect a rejected
// version.
func TestPinnedRejectedVersionIsDeleted(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one")
		second := w.version(w.ada, s, "two", "run.sh", "#!/bin/sh\n")
		pin := w.ghost(ownNamespace(w.bob), "helper", store.Reference{ToName: "pdf", ToID: s.ID, Digest: second.Digest})
		w.ghost(w.team, "other", store.Reference{ToName: "pdf", ToID: s.ID, Digest: s.Digest})
		w.decide(second.Digest, s, library.Rejected)
		wantError(t, w.lib.DeleteVersion(w.ctx, w.meg, s.ID, 2, false), store.ErrReferenced)
		wantDenied(t, w.lib.DeleteVersion(w.ctx, w.bob, s.ID, 2, true))
		mustDo(t, w.lib.DeleteVersion(w.ctx, w.meg, s.ID, 2, true))
		_, err := w.lib.Version(w.ctx, w.meg, s.ID, 2)
		wantError(t, err, library.ErrNotFound)
		refs := must(w.lib.References(w.ctx, w.meg, s.ID))(t)
		if refs.Total() != 1 || refs.Visible[0].Name != "other" {
			t.Errorf("the references left are %+v", refs)
		}
		if k := must(w.db.Kinds.Get(w.ctx, pin.ID))(t); string(k.Spec) != `{"skills":[]}` {
			t.Errorf("the resource is %s", k.Spec)
		}
	})
}

// W10: a new upload is a default of who uploaded it; defaults have exceptions, and may be
// loaded from the start.
func TestW10Defaults(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		mine := w.upload(w.ada, ownNamespace(w.ada), "pdf", "mine")
		all := w.upload(w.root, store.Public, "pdf", "everybody's")
		ours := w.upload(w.ada, w.team, "docx", "ours")
		choose := func(p account.Principal, s library.ConversationInfo) []string {
			return names(must(w.lib.DefaultSkills(w.ctx, p, s))(t), func(c library.DefaultSkill) string { return fmt.Sprint(c.Name, " ", c.ID, " ", c.Preload) })
		}
		wantEqual(t, choose(w.ada, library.ConversationInfo{}), []string{"pdf " + mine.ID + " false"})
		wantEqual(t, choose(w.root, library.ConversationInfo{}), []string{}) // a public upload becomes nobody's default

		mustDo(t, w.lib.SetDefault(w.ctx, w.root, library.Default{Namespace: store.Public, SkillID: all.ID}))
		mustDo(t, w.lib.SetDefault(w.ctx, w.ada, library.Default{Namespace: w.team, SkillID: ours.ID, Preload: true,
			Exceptions: []library.Exception{{Type: "mode", Value: "code"}, {Type: "agent", Value: "a1"}}}))
		wantEqual(t, choose(w.bob, library.ConversationInfo{Agent: "a2"}), []string{"docx " + ours.ID + " true", "pdf " + all.ID + " false"})
		wantEqual(t, choose(w.bob, library.ConversationInfo{Agent: "a1"}), []string{"pdf " + all.ID + " false"})
		wantEqual(t, choose(w.bob, library.ConversationInfo{Mode: "code"}), []string{"pdf " + all.ID + " false"})
		wantEqual(t, choose(w.ada, library.ConversationInfo{}), []string{"pdf " + mine.ID + " false", "docx " + ours.ID + " true"})

		// The user's own setting overrides the group's.
		mustDo(t, w.lib.SetDefault(w.ctx, w.bob, library.Default{Namespace: ownNamespace(w.bob), SkillID: ours.ID, Exceptions: []library.Exception{{Type: "project", Value: "p"}}}))
		wantEqual(t, choose(w.bob, library.ConversationInfo{Project: "p"}), []string{"pdf " + all.ID + " false"})

		must(w.lib.Hide(w.ctx, w.root, all.ID, true))(t) // existing references stay usable
		wantEqual(t, choose(w.eve, library.ConversationInfo{}), []string{"pdf " + all.ID + " false"})

		for _, tt := range []struct {
			p account.Principal
			d library.Default
		}{
			{w.bob, library.Default{Namespace: w.team, SkillID: ours.ID}},
			{w.ada, library.Default{Namespace: store.Public, SkillID: all.ID}},
			{w.eve, library.Default{Namespace: ownNamespace(w.ada), SkillID: mine.ID}},
			{w.eve, library.Default{Namespace: ownNamespace(w.eve), SkillID: mine.ID}},
			{w.ada, library.Default{Namespace: w.team, SkillID: mine.ID}}, // which the others do not reach
			{w.ada, library.Default{Namespace: ownNamespace(w.ada), SkillID: mine.ID, Exceptions: []library.Exception{{Type: "moon", Value: "full"}}}},
			{w.ada, library.Default{Namespace: ownNamespace(w.ada), SkillID: mine.ID, Exceptions: []library.Exception{{Type: "mode"}}}},
		} {
			if err := w.lib.SetDefault(w.ctx, tt.p, tt.d); err == nil {
				t.Errorf("%s sets %+v", tt.p.Name, tt.d)
			}
		}
		mustDo(t, w.lib.RemoveDefault(w.ctx, w.bob, ownNamespace(w.bob), ours.ID))
		wantError(t, w.lib.RemoveDefault(w.ctx, w.bob, ownNamespace(w.bob), ours.ID), library.ErrNotFound)
		wantEqual(t, len(must(w.lib.Defaults(w.ctx, w.bob, w.team))(t)), 1)
	})
}
