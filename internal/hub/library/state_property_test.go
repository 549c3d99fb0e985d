package library_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Whatever users upload, review, choose and delete, and in whatever order: others get
// only versions that are cleared, and code runs only after enough reviewers approved it.
func TestAnySequenceOfReviews(t *testing.T) {
	w := newFixture(t, storetest.Open(t, storetest.SQLite(t)), &library.Options{ScanTime: 1})
	second := w.root
	second.User = account.UserID(must(w.db.Users.Create(w.ctx, store.User{Name: "second", Admin: true}))(t).ID)
	users := []account.Principal{w.ada, w.bob, w.meg, w.eve, w.root, second}
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		w.requireApprovers(1)
		m := &reviewModel{fixture: w, name: fmt.Sprint("s-", round), required: 1, approved: map[string]map[account.UserID]bool{}}
		m.id = must(w.lib.Upload(w.ctx, w.ada, w.team, m.upload(rt)))(t).ID
		who := rapid.SampledFrom(users)
		rt.Repeat(map[string]func(*rapid.T){
			"version": func(rt *rapid.T) {
				_, err := w.lib.AddVersion(w.ctx, who.Draw(rt, "who"), m.id, m.upload(rt))
				m.expected(rt, err)
			},
			"review": func(rt *rapid.T) {
				m.review(rt, who.Draw(rt, "who"), rapid.SampledFrom([]library.Review{library.Approved, library.Approved, library.Rejected, library.Pending, library.ChangesRequested}).Draw(rt, "review"))
			},
			"use": func(rt *rapid.T) {
				m.expected(rt, w.lib.SetCurrentVersion(w.ctx, who.Draw(rt, "who"), m.id, m.version(rt).Number))
			},
			"delete": func(rt *rapid.T) {
				v := m.version(rt)
				err := w.lib.DeleteVersion(w.ctx, who.Draw(rt, "who"), m.id, v.Number, false)
				m.expected(rt, err)
				if err == nil {
					delete(m.approved, v.Digest)
				}
			},
			"require": func(rt *rapid.T) {
				m.required = rapid.IntRange(1, 3).Draw(rt, "approvers")
				w.requireApprovers(int64(m.required))
			},
			"": m.check,
		})
	})
}

// reviewModel is a skill of the team, with the approvals that its versions have.
type reviewModel struct {
	*fixture
	name, id string
	required int
	approved map[string]map[account.UserID]bool // reviewers by digest, since the last other decision
}

// upload returns a package with one of a few contents, with or without code.
func (m *reviewModel) upload(rt *rapid.T) library.Package {
	var more []string
	if rapid.Bool().Draw(rt, "code") {
		more = []string{"run.sh", someCode}
	}
	return upload(m.t, m.name, rapid.SampledFrom([]string{"one", "two", "three"}).Draw(rt, "body"), more...)
}

func (m *reviewModel) versions(rt *rapid.T) []*library.Version {
	all, err := m.lib.Versions(m.ctx, m.root, m.id, 0, 0)
	if err != nil {
		rt.Fatal(err)
	}
	return all
}

func (m *reviewModel) version(rt *rapid.T) *library.Version {
	return rapid.SampledFrom(m.versions(rt)).Draw(rt, "version")
}

// expected fails for errors other than refusals.
func (m *reviewModel) expected(rt *rapid.T, err error) {
	for _, e := range []error{library.ErrExists, library.ErrNotFound, library.ErrInvalid, store.ErrReferenced} {
		if errors.Is(err, e) {
			return
		}
	}
	if err != nil && !account.IsDenied(err) && !isReviewError(err) {
		rt.Fatal(err)
	}
}

func (m *reviewModel) review(rt *rapid.T, p account.Principal, r library.Review) {
	v := m.version(rt)
	err := m.lib.ReviewVersion(m.ctx, p, m.id, library.Decision{Number: v.Number, Digest: v.Digest, Review: r, Note: "a note"})
	m.expected(rt, err)
	if err != nil {
		return
	}
	if !p.Admin && p.User != m.meg.User {
		rt.Fatalf("%s reviewed version %d", p.Name, v.Number)
	}
	if r != library.Approved || m.approved[v.Digest] == nil {
		m.approved[v.Digest] = map[account.UserID]bool{}
	}
	if r == library.Approved {
		m.approved[v.Digest][p.User] = true
	}
	now, err := m.lib.Version(m.ctx, m.root, m.id, v.Number)
	if err != nil {
		rt.Fatal(err)
	}
	byUploader := m.approved[v.Digest][account.UserID(v.CreatedBy)]
	if now.Review == library.Approved && v.Review != library.Approved && (len(m.approved[v.Digest]) < m.required || m.required > 1 && byUploader && len(m.approved[v.Digest]) == m.required) {
		rt.Fatalf("version %d by %s is approved by %v, %d required", v.Number, v.CreatedBy, m.approved[v.Digest], m.required)
	}
}

// check compares the states of the versions with what users get.
func (m *reviewModel) check(rt *rapid.T) {
	all := m.versions(rt)
	cleared := func(v *library.Version) bool {
		return v.Review == library.Approved || v.Review == library.Pending && !v.Code && !v.NeedsApproval
	}
	anyCleared := slices.ContainsFunc(all, cleared)
	current := 0
	for _, v := range all {
		shown := cleared(v) || v.Current && v.Review == library.Pending
		b, err := m.lib.Open(m.ctx, m.bob, m.id, v.Number)
		if err == nil {
			b.Close()
		}
		if (err == nil) != shown && !errors.Is(err, library.ErrNotFound) {
			rt.Fatalf("version %d (%s) for others: %v", v.Number, v.State, err)
		}
		if err := m.lib.CheckRunnable(m.ctx, m.bob, v.Digest); (err == nil) != (v.Review == library.Approved) {
			rt.Fatalf("version %d (%s) runs: %v", v.Number, v.State, err)
		}
		if v.Current {
			current++
			if cleared(v) != anyCleared || (v.State == skillstate.Approved) != cleared(v) {
				rt.Fatalf("version %d is current in the state %s, and any is cleared: %v", v.Number, v.State, anyCleared)
			}
		} else if v.State == skillstate.Approved {
			rt.Fatalf("version %d is approved and not current", v.Number)
		}
	}
	if current != 1 {
		rt.Fatalf("%d versions are current", current)
	}
}
