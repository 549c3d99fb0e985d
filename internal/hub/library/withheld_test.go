package library_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	someCode  = "#!/bin/sh\n"
	otherCode = "#!/bin/sh\necho\n"
)

// versionReads lists all methods that return the contents of a version.
func versionReads(w *fixture, p account.Principal, s *library.Skill, v *library.Version) map[string]error {
	ref := library.Ref{ID: s.ID, Digest: v.Digest}
	out := map[string]error{}
	_, out["Manifest"] = w.lib.Manifest(w.ctx, p, s.ID, v.Number)
	_, out["ReadSkillFile"] = w.lib.ReadSkillFile(w.ctx, p, s.ID, v.Number)
	_, out["Findings"] = w.lib.Findings(w.ctx, p, s.ID, v.Number)
	_, out["Diff to"] = w.lib.Diff(w.ctx, p, s.ID, 1, v.Number, nil)
	_, out["Diff from"] = w.lib.Diff(w.ctx, p, s.ID, v.Number, 1, nil)
	_, out["Diff alone"] = w.lib.Diff(w.ctx, p, s.ID, library.NoVersion, v.Number, nil)
	_, out["Resolve"] = w.lib.Resolve(w.ctx, p, ref)
	out["CheckVersion"] = w.lib.CheckVersion(w.ctx, p, must(w.db.Skills.Get(w.ctx, s.ID))(w.t), v.Digest)
	b, err := w.lib.Open(w.ctx, p, s.ID, v.Number)
	if err == nil {
		err = b.Close()
	}
	out["Open"] = err
	a, err := w.lib.Download(w.ctx, p, s.ID, v.Number)
	if err == nil {
		err = a.Close()
	}
	out["Download"] = err
	return out
}

// Whatever the state of a version that is not approved, and whatever the current one, only
// its uploader and the reviewers get it.
func TestVersionsAreWithheld(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", someCode)
		w.decide(s.Digest, s, library.Approved)
		second := must(w.lib.AddVersion(w.ctx, w.ada, s.ID, upload(t, "pdf", "two", "run.sh", otherCode)))(t)
		source := must(w.lib.BoundSource(w.bob, "agent", []library.Ref{{ID: s.ID, Name: "pdf", Digest: second.Digest}}))(t)
		check := func(when string, open bool) {
			t.Helper()
			for _, who := range []account.Principal{w.ada, w.meg, w.root, w.bob} {
				allowed := open || who.User != w.bob.User
				for method, err := range versionReads(w, who, s, second) {
					if allowed && err != nil || !allowed && !isReviewError(err) {
						t.Errorf("%s: %s by %s: error is %v", when, method, who.Name, err)
					}
				}
				v := must(w.lib.Version(w.ctx, who, s.ID, 2))(t)
				listed := must(w.lib.Versions(w.ctx, who, s.ID, 3, 1))(t)[0]
				for _, v := range []*library.Version{v, listed} {
					if v.Withheld == allowed || (v.Description != "") != allowed || (v.Label != "") != allowed {
						t.Errorf("%s: %s sees %+v", when, who.Name, v)
					}
					if (v.Note != "") != (v.Reviewer != "" && who.User != w.bob.User) {
						t.Errorf("%s: %s sees the note %q", when, who.Name, v.Note)
					}
				}
			}
			// The hub answers MCP clients with the user's scopes for them, which do not include reviews.
			for _, who := range []account.Principal{w.ada, w.meg} {
				if _, err := w.lib.Resolve(w.ctx, who.LimitedTo(account.ScopeMCP), library.Ref{ID: s.ID, Digest: second.Digest}); err != nil {
					t.Errorf("%s: over MCP, %s gets %v", when, who.Name, err)
				}
			}
			list := must(source.List(w.ctx))(t)
			if (len(list.Entries) == 1) != open || (len(list.Problems) == 0) != open {
				t.Errorf("%s: the source has %+v", when, list)
			}
			if err := w.lib.CheckRunnable(w.ctx, w.bob, second.Digest); !open && (!isReviewError(err) || strings.Contains(err.Error(), "secret note")) {
				t.Errorf("%s: running it is %v", when, err)
			}
		}
		decide := func(r library.Review) {
			t.Helper()
			mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, s.ID, library.Decision{Digest: second.Digest, Review: r, Note: "secret note"}))
		}
		check("pending", false)
		decide(library.ChangesRequested)
		check("changes requested", false)
		decide(library.Rejected)
		check("rejected", false)
		decide(library.Pending)
		check("pending again", false)
		third := w.version(w.ada, s, "three", "run.sh", "#!/bin/sh\ntrue\n")
		w.decide(third.Digest, s, library.Approved)
		check("pending, and a newer one is approved", false)
		decide(library.Rejected)
		check("rejected, and a newer one is approved", false)
		decide(library.Approved)
		check("superseded", true)
		// An entry that was listed is not opened after a rejection.
		entry := must(source.List(w.ctx))(t).Entries[0]
		decide(library.Rejected)
		if _, err := source.Open(w.ctx, entry); !isReviewError(err) {
			t.Errorf("opening a listed version that was rejected is %v", err)
		}
	})
}

// If the current version is rejected, another approved one becomes current, and a version
// that waits never does.
func TestRejectedCurrentVersion(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", someCode)
		w.decide(s.Digest, s, library.Approved)
		second := w.version(w.ada, s, "two", "run.sh", otherCode)
		w.decide(second.Digest, s, library.Approved)
		third := w.version(w.ada, s, "three", "run.sh", "#!/bin/sh\ntrue\n")
		w.decide(third.Digest, s, library.Approved)
		mustDo(t, w.lib.SetCurrentVersion(w.ctx, w.ada, s.ID, 2))
		w.decide(second.Digest, s, library.Rejected) // the one before it, not the one that was withdrawn
		wantStates(t, w, s, "3 withdrawn", "2 rejected", "1 approved current")
		w.decide(s.Digest, s, library.Rejected)
		wantStates(t, w, s, "3 approved current", "2 rejected", "1 rejected")

		w.decide(third.Digest, s, library.Rejected)
		sees := func(p account.Principal) string {
			t.Helper()
			_, err := w.lib.Skill(w.ctx, p, s.ID)
			list, failed := w.list(p, library.Query{})
			mustDo(t, failed)
			hits := must(w.lib.Search(w.ctx, p, "pdf", 0))(t)
			entries := 0
			for _, source := range must(w.lib.Sources(w.ctx, p))(t) {
				entries += len(slices.Collect(must(source.List(w.ctx))(t).Layer.All()))
			}
			_, failed = w.lib.Resolve(w.ctx, p, library.Ref{Name: "pdf"})
			chosen := 0
			for _, c := range must(w.lib.Explain(w.ctx, p, "pdf"))(t) {
				if c.Chosen {
					chosen++
				}
			}
			return fmt.Sprint("get ", err == nil, ", list ", len(list), ", search ", len(hits), ", sources ", entries, ", resolve ", failed == nil, ", chosen ", chosen)
		}
		nothing, managed := "get false, list 0, search 0, sources 0, resolve false, chosen 0", "get true, list 1, search 0, sources 0, resolve true, chosen 0"
		check := func(when string) {
			t.Helper()
			for who, want := range map[*account.Principal]string{&w.bob: nothing, &w.ada: managed, &w.meg: managed, &w.eve: nothing} {
				if got := sees(*who); got != want {
					t.Errorf("%s: %s sees %q, want %q", when, who.Name, got, want)
				}
			}
		}
		check("all rejected")
		fourth := w.version(w.ada, s, "four", "run.sh", "#!/bin/sh\nfalse\n")
		if fourth.Current || fourth.State != skillstate.Pending {
			t.Errorf("the upload is %+v", fourth)
		}
		check("another one waits")
		if err := w.lib.SetCurrentVersion(w.ctx, w.meg, s.ID, 4); !isReviewError(err) {
			t.Errorf("making it current is %v", err)
		}
		mustDo(t, w.lib.SetDefault(w.ctx, w.ada, library.Default{Namespace: w.team, SkillID: s.ID})) // ada may
		w.decide(fourth.Digest, s, library.Approved)
		if got, want := sees(w.bob), "get true, list 1, search 1, sources 1, resolve true, chosen 1"; got != want {
			t.Errorf("approved: bob sees %q, want %q", got, want)
		}
	})
}

// Watchers of a source with pinned versions are notified of reviews, whatever version is
// current.
func TestReviewsNotifyBoundSources(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", someCode)
	w.decide(s.Digest, s, library.Approved)
	second := w.version(w.ada, s, "two", "run.sh", otherCode)
	third := w.version(w.ada, s, "three", "run.sh", "#!/bin/sh\ntrue\n")
	w.decide(third.Digest, s, library.Approved)
	other := w.node(&library.Options{Poll: 5 * time.Millisecond})
	source := must(other.BoundSource(w.bob, "agent", []library.Ref{{ID: s.ID, Digest: second.Digest}}))(t)
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error, 2)
	go func() { done <- other.Run(ctx) }()
	woken := make(chan struct{}, 100)
	must(other.Search(ctx, w.bob, "pdf", 0))(t) // reads all changes
	must(source.List(ctx))(t)
	go func() { done <- source.(catalog.Watcher).Watch(ctx, func() { woken <- struct{}{} }) }()
	for _, r := range []library.Review{library.Approved, library.Rejected} {
		w.decide(second.Digest, s, r)
		<-woken
	}
	stop()
	mustDo(t, <-done)
	mustDo(t, <-done)
}

// A skill that has no version but a rejected one is not in the way of its users.
func TestRejectedSkillHidesNothing(t *testing.T) {
	w := sqlite(t, nil)
	public := w.upload(w.root, store.Public, "pdf", "everybody's")
	s := w.upload(w.ada, w.team, "pdf", "ours", "run.sh", someCode)
	w.decide(s.Digest, s, library.Rejected)
	list, err := w.list(w.bob, library.Query{})
	mustDo(t, err)
	wantEqual(t, names(list, func(s *library.Skill) string { return s.ID }), []string{public.ID})
	hits := must(w.lib.Search(w.ctx, w.bob, "pdf", 0))(t)
	wantEqual(t, names(hits, func(h library.Hit) string { return h.ID }), []string{public.ID})
}
