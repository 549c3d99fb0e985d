package library_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// review decides about the version of s with a digest.
func (w *fixture) review(p account.Principal, s *library.Skill, digest string, r library.Review, note string) {
	w.t.Helper()
	mustDo(w.t, w.lib.ReviewVersion(w.ctx, p, s.ID, library.Decision{Digest: digest, Review: r, Note: note}))
}

func (w *fixture) status(p account.Principal, s *library.Skill, number int64) *library.ReviewStatus {
	w.t.Helper()
	return must(w.lib.ReviewStatus(w.ctx, p, s.ID, number))(w.t)
}

func (w *fixture) kinds(s *library.Skill, number int64) []string {
	w.t.Helper()
	return names(w.status(w.meg, s, number).History, func(e library.ReviewEvent) string { return e.Kind })
}

// storeAdmin makes root an administrator in the database too, so that its approvals
// remain.
func (w *fixture) storeAdmin() {
	w.t.Helper()
	u := must(w.db.Users.Get(w.ctx, string(w.root.User)))(w.t)
	u.Admin = true
	mustDo(w.t, w.db.Users.Update(w.ctx, u))
}

const runScript = "#!/bin/sh\n"

// A request for changes blocks later versions until its reviewer approves one of them.
// The approvals of others are kept.
func TestRequestedChangesBlockLaterVersions(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		s := w.upload(w.ada, w.team, "pdf", "one")
		second := w.version(w.ada, s, "two", "run.sh", runScript)
		w.review(w.meg, s, second.Digest, library.ChangesRequested, "Do not.")
		wantStates(t, w, s, "2 changes-requested", "1 approved current")
		if got := w.notes(w.ada, library.VersionReviewed); len(got) != 1 || got[0].Review != library.ChangesRequested || got[0].By != string(w.meg.User) {
			t.Errorf("the uploader was notified of %+v", got)
		}
		third := w.version(w.ada, s, "three", "run.sh", runScript+"true\n")
		w.review(w.root, s, third.Digest, library.Approved, "")
		wantStates(t, w, s, "3 pending", "2 changes-requested", "1 approved current")
		if got := w.notes(w.ada, library.VersionReviewed); len(got) != 2 || got[0].Review != "approval" {
			t.Errorf("the uploader was notified of %+v", got)
		}
		if waiting, _, err := w.lib.ListPending(w.ctx, w.root, nil, store.Page{}); err != nil || len(waiting) > 0 {
			t.Errorf("%d versions wait for the reviewer who approved: %v", len(waiting), err)
		}
		st := w.status(w.ada, s, 3)
		if len(st.Requests) != 1 || st.Requests[0].Version != 2 || st.Requests[0].Note != "Do not." || len(st.Missing) != 0 || st.Requests[0].Dismiss {
			t.Errorf("the status is %+v", st)
		}
		w.review(w.meg, s, third.Digest, library.Approved, "Good.")
		wantStates(t, w, s, "3 approved current", "2 changes-requested", "1 superseded")
		w.wantApprovers(s, 3, w.root, w.meg)
		wantEqual(t, w.kinds(s, 3), []string{"uploaded", "checked", "approved", "approved", "published"})
		wantEqual(t, w.kinds(s, 2), []string{"uploaded", "checked", "changes-requested"})
		wantEqual(t, len(w.status(w.meg, s, 3).Requests), 0)
		dev := w.bob // neither the uploader nor a reviewer
		dev.Groups = map[account.GroupID]account.Role{account.GroupID(w.team.Group()): account.Developer}
		for _, e := range w.status(dev, s, 3).History {
			wantEqual(t, e.Note, "")
		}
	})
}

// A version without code, which needs no review otherwise, is held back too, and so is
// one after the deletion of the version that the reviewer saw.
func TestRequestedChangesHoldVersionsWithoutCode(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	second := w.version(w.ada, s, "two")
	w.review(w.meg, s, second.Digest, library.ChangesRequested, "Wrong.")
	wantStates(t, w, s, "2 changes-requested", "1 approved current")
	mustDo(t, w.lib.DeleteVersion(w.ctx, w.ada, s.ID, 2, false))
	third := w.version(w.ada, s, "three")
	wantEqual(t, third.NeedsApproval, true)
	wantStates(t, w, s, "2 pending", "1 approved current")
	if err := w.lib.SetCurrentVersion(w.ctx, w.ada, s.ID, 2); err == nil {
		t.Error("the uploader published the version")
	}
	waiting, _, err := w.lib.ListPending(w.ctx, w.meg, nil, store.Page{})
	mustDo(t, err)
	wantEqual(t, len(waiting), 1)
	w.review(w.meg, s, third.Digest, library.Approved, "")
	wantStates(t, w, s, "2 approved current", "1 superseded")
}

// owner makes eve an owner of the team.
func (w *fixture) owner() account.Principal {
	w.t.Helper()
	p := w.eve
	p.Groups = map[account.GroupID]account.Role{account.GroupID(w.team.Group()): account.Owner}
	w.setRole(p, store.Owner)
	return p
}

// setRole sets the stored role of a user in the team.
func (w *fixture) setRole(p account.Principal, role store.Role) {
	w.t.Helper()
	mustDo(w.t, w.db.Groups.SetMember(w.ctx, store.Member{GroupID: w.team.Group(), UserID: string(p.User), Role: role}))
}

// An owner dismisses a request with a reason. Versions that only the request blocked
// are published.
func TestDismissedRequests(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		own := w.owner()
		s := w.upload(w.ada, w.team, "pdf", "one")
		second := w.version(w.ada, s, "two", "run.sh", runScript)
		w.review(w.meg, s, second.Digest, library.ChangesRequested, "Do not.")
		third := w.version(w.ada, s, "three", "run.sh", runScript+"true\n")
		w.version(w.ada, s, "four")
		w.review(w.root, s, third.Digest, library.Approved, "")
		request := w.status(own, s, 2).Requests[0].ID
		dismiss := func(p account.Principal, id, reason string) error {
			return w.lib.DismissChanges(w.ctx, p, s.ID, id, reason)
		}
		wantError(t, dismiss(own, request, " "), library.ErrInvalid)
		wantDenied(t, dismiss(w.meg, request, "why"))
		wantDenied(t, dismiss(w.ada, request, "why"))
		wantError(t, dismiss(own, "none", "why"), library.ErrConflict)
		wantStates(t, w, s, "4 pending", "3 pending", "2 changes-requested", "1 approved current")
		mustDo(t, dismiss(own, request, "It is agreed."))
		wantError(t, dismiss(own, request, "again"), library.ErrConflict)
		wantStates(t, w, s, "4 approved current", "3 superseded", "2 pending", "1 superseded")
		wantEqual(t, w.kinds(s, 2), []string{"uploaded", "checked", "changes-requested", "dismissed"})
		if got := w.notes(w.meg, library.VersionReviewed); len(got) == 0 || got[0].Review != "dismissed" || got[0].Note != "It is agreed." {
			t.Errorf("the reviewer was notified of %+v", got)
		}

		own2 := must(w.lib.AddVersion(w.ctx, own, s.ID, upload(t, "pdf", "five", "run.sh", "five\n")))(t)
		w.review(w.meg, s, own2.Digest, library.ChangesRequested, "No.")
		wantDenied(t, dismiss(own, w.status(w.meg, s, own2.Number).Requests[0].ID, "mine")) // the uploader
		w.review(w.meg, s, own2.Digest, library.Pending, "")                                // the reviewer takes it back
		wantEqual(t, len(w.status(w.meg, s, own2.Number).Requests), 0)
	})
}

// Approvals of users who may no longer review do not count when a dismissed request, or
// one that its reviewer takes back, releases a version.
func TestReleasedVersionsNeedPresentReviewers(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		own := w.owner()
		for name, leave := range map[string]func(bool){
			"demoted": func(gone bool) {
				w.setRole(w.meg, map[bool]store.Role{true: store.Developer, false: store.Maintainer}[gone])
			},
			"disabled": func(gone bool) { mustDo(t, w.setDisabled(w.meg, gone)) },
		} {
			s := w.upload(w.ada, w.team, name, "one")
			second := w.version(w.ada, s, "two", "run.sh", runScript)
			third := w.version(w.ada, s, "three", "run.sh", runScript+"true\n")
			pending := []string{"3 pending", "2 pending", "1 approved current"}
			for _, release := range []func(){
				func() { w.review(w.root, s, second.Digest, library.Pending, "") },
				func() { mustDo(t, w.lib.DismissChanges(w.ctx, own, s.ID, w.status(own, s, 2).Requests[0].ID, "why")) },
			} {
				w.review(w.root, s, second.Digest, library.ChangesRequested, "No.")
				w.review(w.meg, s, third.Digest, library.Approved, "")
				leave(true)
				wantEqual(t, w.status(w.ada, s, 3).Missing, []library.MissingApproval{{Count: 1, Group: w.team.Group(), Name: "team", Role: "maintainer", Admins: true}})
				release()
				wantStates(t, w, s, pending...)
				leave(false)
			}
			w.review(w.root, s, third.Digest, library.Approved, "")
			wantStates(t, w, s, "3 approved current", "2 pending", "1 superseded")
		}
	})
}

// Owners must not dismiss a request for changes of their own version, or one that blocks
// a version of theirs. Each request says whether the user may dismiss it.
func TestWhoMayDismissRequests(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		own := w.owner()
		for name, uploaders := range map[string][2]account.Principal{"requested": {own, w.ada}, "blocked": {w.ada, own}} {
			s := w.upload(w.ada, w.team, name, "one")
			second := w.version(uploaders[0], s, "two", "run.sh", runScript)
			w.review(w.meg, s, second.Digest, library.ChangesRequested, "No.")
			w.version(uploaders[1], s, "three", "run.sh", runScript+"true\n")
			for number := int64(2); number <= 3; number++ {
				for who, want := range map[*account.Principal]bool{&own: false, &w.meg: false, &w.root: true} {
					if got := w.status(*who, s, number).Requests; len(got) != 1 || got[0].Dismiss != want {
						t.Errorf("%s, version %d, user %s: requests are %+v, want %v", name, number, who.Name, got, want)
					}
				}
			}
			wantDenied(t, w.lib.DismissChanges(w.ctx, own, s.ID, w.status(own, s, 2).Requests[0].ID, "why"))
			wantStates(t, w, s, "3 pending", "2 changes-requested", "1 approved current")
		}
		s := w.upload(w.ada, w.team, "other", "one", "run.sh", runScript)
		w.review(w.meg, s, s.Digest, library.ChangesRequested, "No.")
		wantEqual(t, w.status(own, s, 1).Requests[0].Dismiss, true)
	})
}

// The status of a review says whether the user may approve, and whether that suffices.
func TestPreviewOfApproval(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		want := func(when string, p account.Principal, s *library.Skill, number int64, may, suffices bool) {
			t.Helper()
			if got := w.status(p, s, number); got.Approve != may || got.Suffices != suffices {
				t.Errorf("%s: may approve %v, suffices %v, want %v, %v", when, got.Approve, got.Suffices, may, suffices)
			}
		}
		s := w.upload(w.ada, w.team, "pdf", "one")
		second := w.version(w.ada, s, "two", "run.sh", runScript)
		want("the uploader", w.ada, s, 2, false, false)
		want("a reviewer", w.meg, s, 2, true, true)
		want("a token that cannot review", w.meg.LimitedTo(account.ScopeRead), s, 2, false, false)
		w.review(w.root, s, second.Digest, library.ChangesRequested, "No.")
		third := w.version(w.ada, s, "three", "run.sh", runScript+"true\n")
		want("changes requested by another reviewer", w.meg, s, 3, true, false)
		want("changes requested by the reviewer", w.root, s, 3, true, true)
		w.review(w.meg, s, third.Digest, library.Approved, "")
		want("approved before", w.meg, s, 3, false, false)
		w.review(w.root, s, third.Digest, library.Approved, "")
		want("approved by both", w.root, s, 3, false, false)

		w.setRule("", store.Owner, 1)
		byRoot := w.version(w.root, s, "four", "run.sh", "four\n")
		want("not an owner", w.meg, s, 4, false, false)
		want("an administrator's own", w.root, s, 4, false, false)
		w.review(w.meg, s, byRoot.Digest, library.ChangesRequested, "No.")
		w.version(w.ada, s, "five", "run.sh", "five\n")
		want("not an owner, whose request it would close", w.meg, s, 5, true, false)
		if err := w.approve(w.root, s, byRoot.Digest); err == nil || !strings.Contains(err.Error(), "uploader's approval does not count; ask another reviewer") {
			t.Errorf("the error is %v", err)
		}
	})
}

// A group to which a skill is published may require approvals of its own members. The
// status names that group, and each group of users once.
func TestMissingApprovalsOfListingGroup(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		other := must(w.db.Groups.Create(w.ctx, store.Group{Name: "other", ApproverRole: store.Owner}))(t)
		s := w.upload(w.ada, w.team, "pdf", "one")
		mustDo(t, w.lib.Publish(w.ctx, w.root, s.ID, store.GroupNamespace(other.ID)))
		second := w.version(w.ada, s, "two", "run.sh", runScript)
		w.review(w.meg, s, second.Digest, library.Approved, "")
		wantEqual(t, w.status(w.ada, s, 2).Missing, []library.MissingApproval{{Count: 1, Group: other.ID, Name: "other", Role: "owner", Admins: true}})
		other.ApproverRole, other.RequiredApprovers = store.Maintainer, 3
		mustDo(t, w.db.Groups.Update(w.ctx, other))
		w.requireApprovers(2)
		wantEqual(t, w.status(w.ada, s, 2).Missing, []library.MissingApproval{{Count: 2, Group: w.team.Group(), Name: "team", Role: "maintainer", Admins: true}})
	})
}

// Each decision is notified, also if it is the same as one that was taken back, and that
// of another reviewer. It replaces the notification of the reviewer's last one. A decision
// that changes nothing is not notified.
func TestRepeatedDecisionsAreNotified(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", runScript)
		notes := func() []string {
			return names(w.notes(w.ada, library.VersionReviewed), func(n library.NotificationDetails) string { return string(n.Review) + " " + n.Note })
		}
		for _, note := range []string{"No.", "Still no.", "Still no."} {
			w.review(w.meg, s, s.Digest, library.ChangesRequested, note)
		}
		w.review(w.meg, s, s.Digest, library.Pending, "")
		w.review(w.root, s, s.Digest, library.ChangesRequested, "Nor do I.")
		wantEqual(t, notes(), []string{"changes-requested Nor do I.", "changes-requested Still no."})
		for _, want := range [][]string{{"approved ", "changes-requested Still no."}, {"approved "}} {
			w.review(w.root, s, s.Digest, library.Pending, "")
			w.review(w.root, s, s.Digest, library.Approved, "")
			wantEqual(t, notes(), want)
			w.markSeen(w.ada)
			w.review(w.root, s, s.Digest, library.Approved, "")
			wantEqual(t, len(notes()), 0)
		}

		w.requireApprovers(2)
		second := w.version(w.ada, s, "two", "run.sh", runScript+"true\n")
		for range 2 {
			w.review(w.meg, s, second.Digest, library.Approved, "")
			w.review(w.meg, s, second.Digest, library.Approved, "")
			w.review(w.meg, s, second.Digest, library.Pending, "")
			wantEqual(t, notes(), []string{"approval "})
		}
	})
}

// A group chooses whose approvals count. The status says whose are missing.
func TestWhoseApprovalsCount(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		security := must(w.db.Groups.Create(w.ctx, store.Group{Name: "security"}))(t)
		w.setRule(security.ID, store.Reporter, 1)
		s := w.upload(w.ada, w.team, "pdf", "one")
		second := w.version(w.ada, s, "two", "run.sh", runScript)
		w.review(w.meg, s, second.Digest, library.Approved, "")
		w.review(w.root, s, second.Digest, library.Approved, "") // administrators are no members
		wantStates(t, w, s, "2 pending", "1 approved current")
		wantEqual(t, w.status(w.ada, s, 2).Missing, []library.MissingApproval{{Count: 1, Group: security.ID, Name: "security", Role: "reporter"}})
		mustDo(t, w.db.Groups.SetMember(w.ctx, store.Member{GroupID: security.ID, UserID: string(w.meg.User), Role: store.Reporter}))
		w.meg.Groups[account.GroupID(security.ID)] = account.Reporter
		w.review(w.meg, s, second.Digest, library.Approved, "")
		wantStates(t, w, s, "2 approved current", "1 superseded")

		w.setRule("", store.Owner, 1)
		third := w.version(w.ada, s, "three", "run.sh", runScript+"true\n")
		w.review(w.meg, s, third.Digest, library.Approved, "")
		wantEqual(t, w.status(w.ada, s, 3).Missing, []library.MissingApproval{{Count: 1, Group: w.team.Group(), Name: "team", Role: "owner", Admins: true}})
		w.review(w.root, s, third.Digest, library.Approved, "")
		wantStates(t, w, s, "3 approved current", "2 superseded", "1 superseded")
		byRoot := w.version(w.root, s, "four", "run.sh", "four\n")
		wantError(t, w.approve(w.root, s, byRoot.Digest), library.ErrInvalid)
	})
}

func TestViewedFiles(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one", "a.sh", "a\n", "b.sh", "b\n")
		set := func(number int64, path string, viewed bool) error {
			return w.lib.SetViewed(w.ctx, w.meg, s.ID, number, path, viewed)
		}
		viewed := func(p account.Principal, number int64) []string {
			return must(w.lib.ViewedFiles(w.ctx, p, s.ID, number))(t)
		}
		mustDo(t, set(1, "a.sh", true))
		mustDo(t, set(1, "b.sh", true))
		mustDo(t, set(1, "SKILL.md", true))
		mustDo(t, set(1, "SKILL.md", false))
		wantError(t, set(1, "none", true), library.ErrInvalid)
		wantDenied(t, w.lib.SetViewed(w.ctx, w.bob, s.ID, 1, "a.sh", true))
		wantEqual(t, viewed(w.meg, 1), []string{"a.sh", "b.sh"})
		wantEqual(t, viewed(w.ada, 1), []string{})
		w.version(w.ada, s, "two", "a.sh", "a\n", "b.sh", "changed\n")
		wantEqual(t, viewed(w.meg, 2), []string{"a.sh"}) // the other file changed
	})
}

func TestChangelogLine(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	pkg := upload(t, "pdf", "two")
	pkg.Changelog = " Reads\ntables. "
	v := must(w.lib.AddVersion(w.ctx, w.ada, s.ID, pkg))(t)
	wantEqual(t, v.Changelog, "Reads tables.")
	wantEqual(t, w.status(w.meg, s, 2).History[0].Note, "Reads tables.")
	if got := w.notes(w.meg, library.VersionAdded); len(got) != 1 || got[0].Note != "Reads tables." {
		t.Errorf("the maintainer was notified of %+v", got)
	}
	pkg = upload(t, "pdf", "three")
	for range 201 {
		pkg.Changelog += "é"
	}
	_, err := w.lib.AddVersion(w.ctx, w.ada, s.ID, pkg)
	wantError(t, err, library.ErrInvalid)
}
