package library_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// requireApprovers sets the number of required approvers of the team.
func (w *fixture) requireApprovers(n int64) {
	w.t.Helper()
	g := must(w.db.Groups.Get(w.ctx, w.team.Group()))(w.t)
	g.RequiredApprovers = n
	mustDo(w.t, w.db.Groups.Update(w.ctx, g))
}

// setRule sets whose approvals the team requires.
func (w *fixture) setRule(group string, role store.Role, required int64) {
	w.t.Helper()
	g := must(w.db.Groups.Get(w.ctx, w.team.Group()))(w.t)
	g.ApproverGroup, g.ApproverRole, g.RequiredApprovers = group, role, required
	mustDo(w.t, w.db.Groups.Update(w.ctx, g))
}

// setDisabled sets whether the account of a user is disabled.
func (w *fixture) setDisabled(p account.Principal, disabled bool) error {
	u, err := w.db.Users.Get(w.ctx, string(p.User))
	if err != nil {
		return err
	}
	u.Disabled = disabled
	return w.db.Users.Update(w.ctx, u)
}

// approve approves the version of s with a digest.
func (w *fixture) approve(p account.Principal, s *library.Skill, digest string) error {
	return w.lib.ReviewVersion(w.ctx, p, s.ID, library.Decision{Digest: digest, Review: library.Approved})
}

func (w *fixture) wantApprovers(s *library.Skill, number int64, want ...account.Principal) {
	w.t.Helper()
	ids := names(want, func(p account.Principal) string { return string(p.User) })
	wantEqual(w.t, must(w.lib.Version(w.ctx, w.bob, s.ID, number))(w.t).Approvers, ids)
}

// A group may require several reviewers. Until then, the version waits, and its
// code does not run.
func TestRequiredApprovers(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.requireApprovers(2)
		s := w.upload(w.ada, w.team, "pdf", "one")
		second := w.version(w.ada, s, "two", "run.sh", "#!/bin/sh\n")
		wantEqual(t, second.RequiredApprovers, 2)
		for range 2 { // one reviewer counts once
			mustDo(t, w.approve(w.meg, s, second.Digest))
			wantStates(t, w, s, "2 pending", "1 approved current")
			w.wantApprovers(s, 2, w.meg)
		}
		if err := w.lib.CheckRunnable(w.ctx, w.ada, second.Digest); !isReviewError(err) {
			t.Errorf("the error is %v", err)
		}
		waiting, _, err := w.lib.ListPending(w.ctx, w.root, nil, store.Page{})
		mustDo(t, err)
		if i := slices.IndexFunc(waiting, func(v *library.Version) bool { return v.Digest == second.Digest }); i < 0 || waiting[i].RequiredApprovers != 2 || len(waiting[i].Approvers) != 1 {
			t.Errorf("the versions that wait are %+v", waiting)
		}
		news, _, err := w.lib.Notifications(w.ctx, w.meg, s.ID+"@2 ", true, store.Page{})
		mustDo(t, err)
		wantEqual(t, len(news), 0) // nothing is decided

		mustDo(t, w.approve(w.root, s, second.Digest))
		wantStates(t, w, s, "2 approved current", "1 superseded")
		w.wantApprovers(s, 2, w.meg, w.root)
		mustDo(t, w.lib.CheckRunnable(w.ctx, w.ada, second.Digest))

		w.decide(second.Digest, s, library.Rejected) // one is enough, and discards the approvals
		wantStates(t, w, s, "2 rejected", "1 approved current")
		mustDo(t, w.approve(w.root, s, second.Digest))
		w.wantApprovers(s, 2, w.root)
		wantStates(t, w, s, "2 pending", "1 approved current")

		w.requireApprovers(1) // for later decisions
		wantStates(t, w, s, "2 pending", "1 approved current")
		mustDo(t, w.approve(w.meg, s, second.Digest))
		wantStates(t, w, s, "2 approved current", "1 superseded")
		w.requireApprovers(3)
		mustDo(t, w.approve(w.meg, s, second.Digest)) // it remains approved
		wantStates(t, w, s, "2 approved current", "1 superseded")
	})
}

// Where several reviewers are required, uploaders do not count, nor do users who may
// no longer review.
func TestApproversWhoDoNotCount(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.requireApprovers(2)
		s := w.upload(w.ada, w.team, "pdf", "one")
		byAdmin := w.version(w.root, s, "two", "run.sh", "#!/bin/sh\n")
		wantError(t, w.approve(w.root, s, byAdmin.Digest), library.ErrInvalid)
		w.wantApprovers(s, 2)
		byMeg := w.version(w.meg, s, "three", "run.sh", "#!/bin/sh\n")
		wantDenied(t, w.approve(w.meg, s, byMeg.Digest))
		wantDenied(t, w.approve(w.bob, s, byMeg.Digest))

		mustDo(t, w.approve(w.meg, s, byAdmin.Digest))
		mustDo(t, w.db.Groups.SetMember(w.ctx, store.Member{GroupID: w.team.Group(), UserID: string(w.meg.User), Role: store.Developer}))
		second := w.root
		second.User = account.UserID(must(w.db.Users.Create(w.ctx, store.User{Name: "second", Admin: true}))(t).ID)
		third := second
		third.User = account.UserID(must(w.db.Users.Create(w.ctx, store.User{Name: "third", Admin: true}))(t).ID)
		mustDo(t, w.approve(second, s, byAdmin.Digest))
		w.wantApprovers(s, 2, second)
		wantStates(t, w, s, "3 pending", "2 pending", "1 approved current")

		mustDo(t, w.setDisabled(second, true))
		mustDo(t, w.approve(third, s, byAdmin.Digest))
		wantStates(t, w, s, "3 pending", "2 pending", "1 approved current")
		mustDo(t, w.setDisabled(second, false))
		mustDo(t, w.approve(second, s, byAdmin.Digest))
		wantStates(t, w, s, "3 pending", "2 approved current", "1 superseded")
	})
}

// A group that requires several approvers lists no skill of others with code that fewer
// approved, and its number applies to their later versions too.
func TestApproversOfPublishedSkill(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.requireApprovers(2)
		s := w.upload(w.root, store.Public, "pdf", "one", "run.sh", someCode)
		mustDo(t, w.approve(w.root, s, s.Digest)) // the public namespace requires one
		second := w.root
		second.User = account.UserID(must(w.db.Users.Create(w.ctx, store.User{Name: "second", Admin: true}))(t).ID)
		third := w.root
		third.User = account.UserID(must(w.db.Users.Create(w.ctx, store.User{Name: "third", Admin: true}))(t).ID)
		publish := func() error { return w.lib.Publish(w.ctx, w.root, s.ID, w.team) }
		wantError(t, publish(), library.ErrInvalid)
		mustDo(t, w.approve(second, s, s.Digest))
		wantError(t, publish(), library.ErrInvalid) // the uploader does not count
		mustDo(t, w.approve(third, s, s.Digest))
		mustDo(t, w.setDisabled(third, true))
		wantError(t, publish(), library.ErrInvalid) // may no longer review
		mustDo(t, w.setDisabled(third, false))
		mustDo(t, publish())

		next := w.version(w.root, s, "two", "run.sh", otherCode)
		wantEqual(t, next.RequiredApprovers, 2)
		wantError(t, w.approve(w.root, s, next.Digest), library.ErrInvalid)
		mustDo(t, w.approve(second, s, next.Digest))
		wantStates(t, w, s, "2 pending", "1 approved current")
		waiting, _, err := w.lib.ListPending(w.ctx, third, nil, store.Page{})
		mustDo(t, err)
		if len(waiting) != 1 || waiting[0].RequiredApprovers != 2 {
			t.Errorf("the versions that wait are %+v", waiting)
		}
		mustDo(t, w.approve(third, s, next.Digest))
		wantStates(t, w, s, "2 approved current", "1 superseded")
	})
}

// Versions without code need a decision if they request permitted tools or a model.
func TestPendingRequests(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		for i, field := range []string{"allowed-tools: Bash", "model: large", "model: inherit", "license: MIT"} {
			w.upload(w.ada, w.team, fmt.Sprint("skill-", i), "Text.", "SKILL.md", fmt.Sprintf("---\nname: skill-%d\ndescription: Does it.\n%s\n---\nText.\n", i, field))
		}
		found, _, err := w.lib.ListPending(w.ctx, w.meg, nil, store.Page{})
		mustDo(t, err)
		if got := names(found, func(v *library.Version) string { return v.Name }); !slices.Equal(got, []string{"skill-0", "skill-1"}) {
			t.Fatalf("the versions %v wait", got)
		}
		mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, found[0].SkillID, library.Decision{Digest: found[0].Digest, Review: library.Approved}))
		found, _, err = w.lib.ListPending(w.ctx, w.meg, nil, store.Page{})
		mustDo(t, err)
		wantEqual(t, names(found, func(v *library.Version) string { return v.Name }), []string{"skill-1"})
	})
}

// wantReviews checks the versions that the list of pending reviews has, and that the start
// page shows their skills.
func (w *fixture) wantReviews(p account.Principal, versions ...string) {
	t := w.t
	t.Helper()
	pending := func(limit int) []string {
		all := []string{}
		page := store.Page{Limit: limit}
		for {
			found, next, err := w.lib.ListPending(w.ctx, p, nil, page)
			mustDo(t, err)
			if len(found) > limit || next != "" && len(found) < limit {
				t.Fatalf("a page of %d has %d versions", limit, len(found))
			}
			all = append(all, names(found, func(v *library.Version) string { return fmt.Sprint(v.Name, " ", v.Number) })...)
			if page.After = next; next == "" {
				return all
			}
		}
	}
	for limit := 1; limit <= 4; limit++ {
		wantEqual(t, pending(limit), append([]string{}, versions...))
	}
	skills := map[string]bool{}
	for _, v := range versions {
		name, _, _ := strings.Cut(v, " ")
		skills[name] = true
	}
	found := must(w.list(p, library.Query{In: []store.Namespace{w.team}, Attention: true}))(t)
	wantEqual(t, skillNames(found), append([]string{}, slices.Sorted(maps.Keys(skills))...))
}

// Reviewers see the versions that need their decision: not those without code, those
// that they uploaded or approved, or those older than the current version.
func TestPendingReviews(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		want := w.wantReviews
		want(w.meg)
		pdf := w.upload(w.ada, w.team, "pdf", "one")
		for _, name := range []string{"a", "b", "c"} {
			w.upload(w.ada, w.team, name, "only text")
		}
		second := w.version(w.ada, pdf, "two", "run.sh", someCode)
		w.upload(w.meg, w.team, "hers", "one", "run.sh", someCode)
		w.upload(w.ada, w.team, "csv", "one", "run.sh", someCode)
		want(w.meg, "pdf 2", "csv 1") // maintainers must not approve their own uploads
		want(w.root, "pdf 2", "hers 1", "csv 1")

		w.requireApprovers(2)
		mustDo(t, w.approve(w.meg, pdf, second.Digest))
		want(w.meg, "csv 1")
		want(w.root, "pdf 2", "hers 1", "csv 1")
		w.upload(w.root, w.team, "its", "one", "run.sh", someCode)
		want(w.root, "pdf 2", "hers 1", "csv 1") // two approvers: its uploader does not count
		w.requireApprovers(1)
		want(w.meg, "pdf 2", "csv 1", "its 1") // her approval is enough now
		want(w.root, "pdf 2", "hers 1", "csv 1", "its 1")

		third := w.version(w.ada, pdf, "three", "run.sh", otherCode)
		want(w.meg, "pdf 2", "csv 1", "its 1", "pdf 3")
		mustDo(t, w.approve(w.meg, pdf, third.Digest))
		wantStates(t, w, pdf, "3 approved current", "2 pending", "1 superseded")
		want(w.meg, "csv 1", "its 1")
		w.decide(third.Digest, pdf, library.Rejected)
		wantStates(t, w, pdf, "3 rejected", "2 pending", "1 approved current")
		want(w.meg, "pdf 2", "csv 1", "its 1")
	})
}

// The start page and the list of reviews have the same versions: not those that wait for
// others or for a request for changes, or those that need no review, but also older ones.
func TestStartPageShowsPendingReviews(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.storeAdmin()
		text := w.upload(w.ada, w.team, "text", "one")
		w.version(w.ada, text, "two")
		mustDo(t, w.lib.SetCurrentVersion(w.ctx, w.ada, text.ID, 1)) // its second version needs no review
		w.wantReviews(w.meg)

		blocked := w.upload(w.ada, w.team, "blocked", "one")
		second := w.version(w.ada, blocked, "two", "run.sh", someCode)
		w.review(w.meg, blocked, second.Digest, library.Approved, "")
		third := w.version(w.ada, blocked, "three", "run.sh", otherCode)
		w.review(w.root, blocked, third.Digest, library.ChangesRequested, "No.")
		fourth := w.version(w.ada, blocked, "four", "run.sh", someCode+"# 4")
		w.wantReviews(w.meg, "blocked 4")
		w.review(w.meg, blocked, fourth.Digest, library.Approved, "")
		w.wantReviews(w.meg)
		w.wantReviews(w.root, "blocked 4") // whose request blocks it

		w.requireApprovers(2)
		older := w.upload(w.ada, w.team, "older", "one")
		w.version(w.ada, older, "two", "run.sh", someCode)
		newest := w.version(w.ada, older, "three", "run.sh", otherCode)
		mustDo(t, w.approve(w.meg, older, newest.Digest))
		w.wantReviews(w.meg, "older 2")

		security := must(w.db.Groups.Create(w.ctx, store.Group{Name: "security"}))(t)
		w.setRule(security.ID, store.Reporter, 1)
		w.wantReviews(w.meg)                                     // only approvals of the other group count
		w.wantReviews(w.root, "blocked 4", "older 2", "older 3") // nobody can approve: change the rule or reject
		mustDo(t, w.db.Groups.SetMember(w.ctx, store.Member{GroupID: security.ID, UserID: string(w.meg.User), Role: store.Reporter}))
		w.wantReviews(w.root, "blocked 4") // now somebody can
		w.setRule("", store.Owner, 1)
		w.wantReviews(w.meg)
		w.wantReviews(w.owner(), "blocked 4", "older 2", "older 3")
		w.setRule("", store.Maintainer, 1)
		w.wantReviews(w.meg, "older 2", "older 3") // it would suffice now
	})
}
