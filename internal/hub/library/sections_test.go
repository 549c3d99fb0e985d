package library_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// overview returns the names of the skills in each section of a user's start page.
func (w *fixture) overview(p account.Principal, since time.Time) map[string][]string {
	w.t.Helper()
	out := map[string][]string{}
	for _, s := range must(w.lib.Overview(w.ctx, p, since))(w.t).Sections {
		out[s.Name] = append(skillNames(s.Skills), fmt.Sprint(s.Total))
	}
	return out
}

// The code that a reviewer approved last comes first. A new version that is pending does
// not change that.
func TestRecentlyApproved(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		ids := map[string]*library.Skill{}
		for _, name := range []string{"a", "b", "c"} {
			ids[name] = w.upload(w.ada, w.team, name, "Text.", "run.sh", someCode+name)
		}
		w.upload(w.ada, w.team, "text", "Text.")
		for _, name := range []string{"b", "a"} {
			w.decide(ids[name].Digest, ids[name], library.Approved)
		}
		w.version(w.ada, ids["b"], "Text.", "run.sh", otherCode)
		found := must(w.list(w.bob, library.Query{Order: library.ByApproval}))(t)
		wantEqual(t, skillNames(found), []string{"a", "b", "c", "text"})
		hourAgo := time.Now().Add(-time.Hour)
		wantEqual(t, w.overview(w.bob, hourAgo)["approved"], []string{"a", "b", "2"})
		wantEqual(t, w.overview(w.bob, time.Now().Add(time.Hour)), map[string][]string{}) // not in this period
		w.decide(ids["a"].Digest, ids["a"], library.Pending)
		wantEqual(t, w.overview(w.bob, hourAgo)["approved"], []string{"b", "1"})
	})
}

// The skills that members of a group use most come first for each of them, but nobody
// learns from the order what one other member used, or sees skills that are not theirs.
func TestMostUsedByTeam(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		ids := map[string]string{}
		for _, name := range []string{"a", "b", "c", "d"} {
			ids[name] = w.upload(w.root, store.Public, name, "Text.").ID
		}
		ids["secret"] = w.upload(w.ada, ownNamespace(w.ada), "secret", "Text.").ID
		now := time.Now()
		use := func(p account.Principal, name string, n int64) {
			t.Helper()
			mustDo(t, w.db.Usage.Add(w.ctx, store.SkillUsage{SkillID: ids[name], Owner: string(p.User), Loads: n, LastUsed: now}))
			mustDo(t, w.db.MergeUsage(w.ctx, now))
		}
		use(w.ada, "b", 2)
		use(w.bob, "b", 3)
		use(w.ada, "c", 9)
		use(w.ada, "secret", 9)
		use(w.bob, "secret", 9) // when it was shown to bob
		use(w.eve, "d", 99)
		since := now.Add(-24 * time.Hour)
		for _, tt := range []struct {
			name string
			who  account.Principal
			want []string // used ones, most first
		}{
			{"two others", w.meg, []string{"b"}},
			{"the user and one other", w.ada, []string{"c", "secret", "b"}},
			{"the user and one other, who used more", w.bob, []string{"b"}},
			{"not in the group", w.eve, []string{"d"}},
			{"nobody", w.root, nil},
			{"a token that cannot read the usage", w.ada.LimitedTo(account.ScopeChat), nil},
		} {
			all := skillNames(must(w.list(tt.who, library.Query{Order: library.ByTeamUses, Since: since}))(t))
			if !slices.Equal(all[:len(tt.want)], tt.want) {
				t.Errorf("%s: %q, want %q first", tt.name, all, tt.want)
			}
			got := w.overview(tt.who, since)["team"]
			want := append(slices.Clone(tt.want), fmt.Sprint(len(tt.want)))
			if tt.want == nil {
				want = nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the section has + and should have -:\n%s", tt.name, diff)
			}
		}
	})
}

// A pending version needs the attention of those who may decide on it, until they did.
// Only queries that ask for it return this.
func TestAttentionForReviews(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		want := func(when string, p account.Principal, names ...string) {
			t.Helper()
			found := must(w.lib.List(w.ctx, p, library.Query{Attention: true}))(t)
			if got := skillNames(found.Skills); !slices.Equal(got, names) || found.Total != len(names) || found.Facets.Attention != len(names) {
				t.Errorf("%s: %q of %d, want %q", when, got, found.Total, names)
			}
			for _, s := range found.Skills {
				wantEqual(t, s.Attention, []library.Attention{library.ReviewNeeded})
			}
			wantEqual(t, must(w.lib.List(w.ctx, p, library.Query{Attentions: true}))(t).Facets.Attention, len(names))
			plain := must(w.lib.List(w.ctx, p, library.Query{}))(t)
			if plain.Facets.Attention != 0 || slices.ContainsFunc(plain.Skills, func(s *library.Skill) bool { return s.Attention != nil }) {
				t.Errorf("%s: the list has the attention that it was not asked for", when)
			}
		}
		w.upload(w.ada, w.team, "text", "Text.")
		first := w.upload(w.ada, w.team, "code", "Text.", "run.sh", someCode)
		w.upload(w.meg, w.team, "own", "Text.", "run.sh", someCode)
		want("a reviewer", w.meg, "code")
		want("the uploader", w.ada)
		want("a reader", w.bob)
		want("outside of the group", w.eve)
		token := w.meg.LimitedTo(account.ScopeRead)
		want("a token that cannot review", token)
		w.decide(first.Digest, first, library.Approved)
		want("approved", w.meg)
		second := w.version(w.ada, first, "Text.", "run.sh", otherCode)
		want("a new version", w.meg, "code")
		third := w.version(w.ada, first, "Text.", "run.sh", someCode+"# 3")
		w.decide(third.Digest, first, library.Approved)
		want("a newer version was approved", w.meg)
		w.decide(second.Digest, first, library.Rejected)
		wantEqual(t, w.overview(w.meg, time.Now().Add(time.Hour)), map[string][]string{})

		w.requireApprovers(2)
		other := w.upload(w.ada, w.team, "other", "Text.", "run.sh", otherCode)
		w.decide(other.Digest, other, library.Approved)
		want("approved by one of two", w.meg)
		public := w.upload(w.root, store.Public, "public", "Text.", "run.sh", someCode)
		want("an administrator's own", w.root, "public")
		mustDo(t, w.lib.Publish(w.ctx, w.root, public.ID, w.team))
		want("an administrator's own in a group that requires two", w.root)
		wantEqual(t, w.overview(w.meg, time.Now().Add(time.Hour))["attention"], []string(nil))
	})
}

// A skill needs attention also if another skill has its name in a nearer namespace.
func TestAttentionForShadowedSkill(t *testing.T) {
	w := sqlite(t, nil)
	w.upload(w.ada, w.team, "pdf", "Text.", "run.sh", someCode)
	own := w.upload(w.meg, ownNamespace(w.meg), "pdf", "Text.")
	found := must(w.lib.List(w.ctx, w.meg, library.Query{Attentions: true}))(t)
	if found.Facets.Attention != 1 || found.Total != 1 || found.Skills[0].ID != own.ID {
		t.Errorf("list has %d skills, %d need attention; want the nearer one, and 1", found.Total, found.Facets.Attention)
	}
	found = must(w.lib.List(w.ctx, w.meg, library.Query{Attention: true}))(t)
	if found.Total != 1 || found.Skills[0].Namespace != w.team || !slices.Equal(found.Skills[0].Attention, []library.Attention{library.ReviewNeeded}) {
		t.Errorf("list of skills that need attention has %d: %+v", found.Total, found.Skills)
	}
	o := must(w.lib.Overview(w.ctx, w.meg, time.Now().Add(time.Hour)))(t)
	if o.Total != 1 || o.Facets.Attention != 1 || len(o.Sections) != 1 || o.Sections[0].Skills[0].Namespace != w.team {
		t.Errorf("overview is %+v", o)
	}
}

// A start page shows few skills of each section, and how many there are.
func TestOverviewIsShort(t *testing.T) {
	w := sqlite(t, nil)
	for i := range 7 {
		w.upload(w.ada, ownNamespace(w.ada), fmt.Sprint("s", i), "Text.")
	}
	o := must(w.lib.Overview(w.ctx, w.ada, time.Now().Add(-time.Hour)))(t)
	if len(o.Sections) != 1 || o.Sections[0].Name != "new" || o.Sections[0].Total != 7 || o.Total != 7 || o.Facets.Total != 7 {
		t.Fatalf("%+v", o)
	}
	wantEqual(t, len(o.Sections[0].Skills), 4)
	wantEqual(t, w.overview(w.ada, time.Now().Add(time.Hour)), map[string][]string{}) // none are new
	wantEqual(t, w.overview(w.bob, time.Now().Add(-time.Hour)), map[string][]string{})
}
