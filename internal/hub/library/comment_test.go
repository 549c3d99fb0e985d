package library_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// comment adds a comment, and returns its ID.
func (w *fixture) comment(p account.Principal, s *library.Skill, number int64, c library.NewComment) string {
	w.t.Helper()
	_, id, err := w.lib.AddComment(w.ctx, p, s.ID, number, c)
	mustDo(w.t, err)
	return id
}

func (w *fixture) threads(p account.Principal, s *library.Skill, number int64) []library.CommentThread {
	w.t.Helper()
	return must(w.lib.Comments(w.ctx, p, s.ID, number))(w.t)
}

// notes returns the unseen notifications of a kind, newest first.
func (w *fixture) notes(p account.Principal, kind string) []library.NotificationDetails {
	w.t.Helper()
	all, _, err := w.lib.Notifications(w.ctx, p, "", true, store.Page{})
	mustDo(w.t, err)
	var out []library.NotificationDetails
	for _, n := range all {
		if n.Kind == kind {
			out = append(out, n.Details)
		}
	}
	return out
}

// markSeen marks all notifications of a user as seen.
func (w *fixture) markSeen(p account.Principal) {
	w.t.Helper()
	all, _, err := w.lib.Notifications(w.ctx, p, "", true, store.Page{})
	mustDo(w.t, err)
	for _, n := range all {
		mustDo(w.t, w.lib.MarkNotificationSeen(w.ctx, p, n.ID))
	}
}

// A reviewer comments on a line. The uploader is notified, answers, and the reviewer
// hears of the answer.
func TestCommentsOnLines(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", "#!/bin/sh\nrm -r /\n")
		first := w.comment(w.meg, s, 1, library.NewComment{Digest: s.Digest, Path: "run.sh", Line: 2, Text: " Why **this**? "})
		got := w.notes(w.ada, library.CommentAdded)
		if len(got) != 1 || got[0].Note != "Why **this**?" || got[0].By != string(w.meg.User) || got[0].Number != 1 || got[0].Thread != first {
			t.Fatalf("the uploader was notified of %+v", got)
		}
		reply := w.comment(w.ada, s, 1, library.NewComment{Thread: first, Text: "By mistake."})
		if got := w.notes(w.meg, library.CommentAdded); len(got) != 1 || got[0].Note != "By mistake." {
			t.Errorf("the reviewer was notified of %+v", got)
		}
		wantEqual(t, len(w.notes(w.ada, library.CommentAdded)), 1) // not of her own

		all := w.threads(w.ada, s, 1)
		if len(all) != 1 || all[0].Path != "run.sh" || all[0].Line != 2 || all[0].Text != "rm -r /" || all[0].Side != "new" || len(all[0].Comments) != 2 || all[0].Comments[1].ID != reply {
			t.Fatalf("the threads are %+v", all)
		}
		edited := must(w.lib.EditComment(w.ctx, w.ada, s.ID, reply, "Removed."))(t)
		wantEqual(t, edited.Comments[1].Text, "Removed.")
		wantEqual(t, edited.Comments[1].Edited.IsZero(), false)
		_, err := w.lib.EditComment(w.ctx, w.meg, s.ID, reply, "No.")
		wantDenied(t, err)
		wantEqual(t, []bool{edited.Comments[0].Delete, edited.Comments[1].Delete}, []bool{false, true})
		wantDenied(t, w.lib.DeleteComment(w.ctx, w.ada, s.ID, first))
		resolved := must(w.lib.ResolveThread(w.ctx, w.ada, s.ID, first, true))(t)
		wantEqual(t, resolved.ResolvedBy, string(w.ada.User))
		wantEqual(t, must(w.lib.ResolveThread(w.ctx, w.meg, s.ID, first, false))(t).ResolvedBy, "")
		mustDo(t, w.lib.DeleteComment(w.ctx, w.meg, s.ID, first))
		wantEqual(t, w.threads(w.ada, s, 1)[0].Comments[0].Text, "")
	})
}

// Open threads of earlier versions follow their lines.
func TestCommentsOnEarlierVersions(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", "one\ntwo\nthree\n", "old.sh", "gone\n")
	moved := w.comment(w.meg, s, 1, library.NewComment{Path: "run.sh", Line: 2, Text: "moves"})
	changed := w.comment(w.meg, s, 1, library.NewComment{Path: "run.sh", Line: 3, Text: "changes"})
	removed := w.comment(w.meg, s, 1, library.NewComment{Path: "old.sh", Line: 1, Text: "goes"})
	whole := w.comment(w.meg, s, 1, library.NewComment{Text: "whole"})
	settled := w.comment(w.meg, s, 1, library.NewComment{Path: "run.sh", Line: 1, Text: "settled"})
	must(w.lib.ResolveThread(w.ctx, w.meg, s.ID, settled, true))(t)
	w.version(w.ada, s, "two", "run.sh", "zero\none\ntwo\nfour\n")
	onOld := w.comment(w.meg, s, 2, library.NewComment{Path: "run.sh", Line: 3, Base: 1, Text: "why removed?"})

	type place struct {
		version, line int64
		outdated      bool
		side          string
	}
	got := map[string]place{}
	for _, th := range w.threads(w.ada, s, 2) {
		got[th.ID] = place{th.Version, th.Line, th.Outdated, th.Side}
	}
	wantEqualPlaces(t, got, map[string]place{
		moved: {1, 3, false, "new"}, changed: {1, 0, true, "new"}, removed: {1, 0, true, "new"}, whole: {1, 0, false, "new"}, onOld: {2, 3, false, "old"},
	})
	wantEqual(t, len(w.threads(w.ada, s, 1)), 5)
}

func wantEqualPlaces[T comparable](t *testing.T, got, want map[string]T) {
	t.Helper()
	for id, p := range want {
		if got[id] != p {
			t.Errorf("thread %s is at %v, want %v", id, got[id], p)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d threads, want %d", len(got), len(want))
	}
}

func TestCommentsThatAreRefused(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", "one\n", "data.bin", "a\x00b\n")
	for _, c := range []library.NewComment{
		{Text: " \n"}, {Text: strings.Repeat("é", 4001)}, {Text: "x", Line: 1}, {Text: "x", Path: "run.sh", Line: 2}, {Text: "x", Path: "run.sh", Line: -1},
		{Text: "x", Path: "none"}, {Text: "x", Path: "../run.sh"}, {Text: "x", Path: "data.bin", Line: 1},
	} {
		_, _, err := w.lib.AddComment(w.ctx, w.meg, s.ID, 1, c)
		wantError(t, err, library.ErrInvalid)
	}
	w.comment(w.meg, s, 1, library.NewComment{Text: strings.Repeat("é", 4000), Path: "data.bin"})
	add := func(p account.Principal, c library.NewComment) error {
		c.Text = "x"
		_, _, err := w.lib.AddComment(w.ctx, p, s.ID, 1, c)
		return err
	}
	wantError(t, add(w.meg, library.NewComment{Digest: "other"}), library.ErrConflict)
	wantError(t, add(w.meg, library.NewComment{Thread: "none"}), library.ErrNotFound)
	wantError(t, add(w.eve, library.NewComment{}), library.ErrNotFound)
	wantDenied(t, add(w.bob, library.NewComment{}))
	_, err := w.lib.Comments(w.ctx, w.bob, s.ID, 1)
	wantDenied(t, err)
	other := w.upload(w.meg, w.team, "docx", "one")
	id := w.comment(w.meg, other, 1, library.NewComment{Text: "x"})
	_, err = w.lib.ResolveThread(w.ctx, w.meg, s.ID, id, true) // of another skill
	wantError(t, err, library.ErrNotFound)
}

// A version that is not released is only for its uploader and reviewers, and so are
// its comments. Users who left the group hear no more of a thread.
func TestCommentsOnUnreleasedVersions(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	second := w.version(w.ada, s, "two", "run.sh", "one\n")
	dev := w.bob
	dev.Groups = map[account.GroupID]account.Role{account.GroupID(w.team.Group()): account.Developer}
	_, _, err := w.lib.AddComment(w.ctx, dev, s.ID, second.Number, library.NewComment{Text: "x"})
	if !isReviewError(err) {
		t.Errorf("the error is %v", err)
	}
	first := w.comment(w.meg, s, 2, library.NewComment{Text: "x"})
	mustDo(t, w.db.Groups.RemoveMember(w.ctx, w.team.Group(), string(w.meg.User)))
	w.comment(w.ada, s, 2, library.NewComment{Thread: first, Text: "y"})
	wantEqual(t, len(w.notes(w.meg, library.CommentAdded)), 0)
	records := must(w.db.Audit.List(w.ctx, store.AuditQuery{Action: string(account.SkillComment), Subject: s.ID, Decision: "allowed"}))(t)
	wantEqual(t, len(records), 2)
	if !slices.ContainsFunc(records, func(r store.AuditRecord) bool { return strings.Contains(string(r.Details), first) }) {
		t.Errorf("the audit log has %+v", records)
	}
}

// The open threads of an earlier version are only for those who may see it.
func TestCommentsOfWithheldEarlierVersions(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	second := w.version(w.ada, s, "two", "run.sh", "token\n")
	w.comment(w.meg, s, 2, library.NewComment{Path: "run.sh", Line: 1, Text: "remove this"})
	mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, s.ID, library.Decision{Number: 2, Digest: second.Digest, Review: library.Rejected, Note: "No."}))
	third := w.version(w.ada, s, "three", "run.sh", "fine\n")
	mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, s.ID, library.Decision{Number: 3, Digest: third.Digest, Review: library.Approved}))
	dev := w.bob
	dev.Groups = map[account.GroupID]account.Role{account.GroupID(w.team.Group()): account.Developer}
	wantEqual(t, len(w.threads(dev, s, 3)), 0)
	wantEqual(t, len(w.threads(w.ada, s, 3)), 1)
	wantEqual(t, len(w.threads(w.meg, s, 3)), 1)
}

// A comment has no hidden characters. One that was stored earlier with nothing else can
// be deleted.
func TestCommentsOfHiddenCharacters(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	_, _, err := w.lib.AddComment(w.ctx, w.meg, s.ID, 1, library.NewComment{Text: "\u202e\u202c"})
	wantError(t, err, library.ErrInvalid)
	id := w.comment(w.meg, s, 1, library.NewComment{Text: "\u202ex"})
	_, err = w.lib.EditComment(w.ctx, w.meg, s.ID, id, "\u202e")
	wantError(t, err, library.ErrInvalid)
	wantEqual(t, must(w.db.Comments.Get(w.ctx, id))(t).Text, "x")
	mustDo(t, w.db.Comments.SetText(w.ctx, id, "\u202e"))
	got := w.threads(w.meg, s, 1)[0].Comments[0]
	if got.Text != "" || !got.Delete {
		t.Fatalf("the comment is %+v", got)
	}
	mustDo(t, w.lib.DeleteComment(w.ctx, w.meg, s.ID, id))
	wantEqual(t, len(w.threads(w.meg, s, 1)), 0)
}

// Reviewers and administrators delete the comments of others. Nothing of the text
// remains.
func TestReviewersDeleteComments(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", "one\n")
		first := w.comment(w.meg, s, 1, library.NewComment{Path: "run.sh", Line: 1, Text: "Why?"})
		reply := w.comment(w.ada, s, 1, library.NewComment{Thread: first, Text: "secret"})
		wantEqual(t, w.threads(w.meg, s, 1)[0].Comments[1].Delete, true)
		wantEqual(t, w.threads(w.ada, s, 1)[0].Comments[0].Delete, false)
		wantEqual(t, len(w.notes(w.meg, library.CommentAdded)), 1)
		mustDo(t, w.lib.DeleteComment(w.ctx, w.meg, s.ID, reply))
		wantEqual(t, len(w.notes(w.meg, library.CommentAdded)), 0)
		mustDo(t, w.lib.DeleteComment(w.ctx, w.root, s.ID, first))
		wantEqual(t, len(w.threads(w.meg, s, 1)), 0)
		wantEqual(t, len(w.notes(w.ada, library.CommentAdded)), 0)
		_, err := w.lib.EditComment(w.ctx, w.meg, s.ID, first, "again")
		wantError(t, err, library.ErrNotFound)
		records := must(w.db.Audit.List(w.ctx, store.AuditQuery{Action: string(account.SkillComment), Subject: s.ID, Decision: "allowed"}))(t)
		if len(records) != 4 || !strings.Contains(string(records[1].Details), string(w.ada.User)) || strings.Contains(string(records[1].Details), "secret") {
			t.Errorf("the audit log has %+v", records)
		}
	})
}

// Notifications have the current text of a comment, and end with it, also for users
// without a comment in its thread.
func TestNotificationsFollowComments(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		s := w.upload(w.ada, w.team, "pdf", "one")
		first := w.comment(w.meg, s, 1, library.NewComment{Text: "Why?"})
		gone := w.comment(w.root, s, 1, library.NewComment{Thread: first, Text: "So what?"})
		reply := w.comment(w.ada, s, 1, library.NewComment{Thread: first, Text: "The password is hunter2."})
		notes := func() []string {
			return names(w.notes(w.root, library.CommentAdded), func(n library.NotificationDetails) string { return n.Note })
		}
		wantEqual(t, notes(), []string{"The password is hunter2."})
		mustDo(t, w.lib.DeleteComment(w.ctx, w.root, s.ID, gone))
		must(w.lib.EditComment(w.ctx, w.ada, s.ID, reply, "It works."))(t)
		wantEqual(t, notes(), []string{"It works."})
		mustDo(t, w.lib.DeleteComment(w.ctx, w.meg, s.ID, reply))
		wantEqual(t, len(notes()), 0)

		// They end with the version and with the skill.
		w.comment(w.ada, s, 1, library.NewComment{Thread: w.comment(w.root, s, 1, library.NewComment{Text: "One?"}), Text: "A first secret."})
		second := w.version(w.ada, s, "two", "run.sh", runScript)
		w.comment(w.ada, s, 2, library.NewComment{Thread: w.comment(w.root, s, 2, library.NewComment{Text: "Two?"}), Text: "A second secret."})
		wantEqual(t, notes(), []string{"A second secret.", "A first secret."})
		w.review(w.meg, s, second.Digest, library.Rejected, "No.")
		mustDo(t, w.lib.DeleteVersion(w.ctx, w.meg, s.ID, 2, false))
		wantEqual(t, notes(), []string{"A first secret."})
		must(w.lib.Delete(w.ctx, w.meg, s.ID, false, true))(t)
		wantEqual(t, len(notes()), 0)
	})
}

// A user who is no reviewer has a limited number of comments on a version, and if it has
// many, only reviewers add more. Comments count as storage of the group.
func TestCommentLimits(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	v := must(w.db.Versions.Get(w.ctx, s.ID, 1))(t)
	fill := func(author string, n int) {
		t.Helper()
		mustDo(t, w.db.Tx(w.ctx, func(tx *store.Tx) error {
			for range n {
				if _, err := tx.Comments.Add(w.ctx, store.Comment{SkillID: s.ID, VersionID: v.ID, Author: author, Text: "x"}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	add := func(p account.Principal) error {
		_, _, err := w.lib.AddComment(w.ctx, p, s.ID, 1, library.NewComment{Text: "y"})
		return err
	}
	fill(string(w.ada.User), 100)
	wantError(t, add(w.ada), library.ErrTooManyComments)
	dev := w.bob
	dev.Groups = map[account.GroupID]account.Role{account.GroupID(w.team.Group()): account.Developer}
	mustDo(t, add(dev))
	fill(string(w.meg.User), 299) // those of reviewers count, too
	wantError(t, add(dev), library.ErrTooManyComments)
	before := must(w.db.Storage.Bytes(w.ctx, w.team))(t)
	mustDo(t, add(w.meg))
	wantEqual(t, must(w.db.Storage.Bytes(w.ctx, w.team))(t), before+1)
	fill("others", 99)
	wantError(t, add(w.meg), library.ErrTooManyComments)
}
