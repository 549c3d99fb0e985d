package library_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// The server sorts and filters, and counts what it found.
func TestListSortsAndFilters(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		own := ownNamespace(w.ada)
		ids := map[string]string{}
		add := func(name, title, tags, body string, more ...string) {
			t.Helper()
			all := files(name, "", more...)
			all["SKILL.md"] = &fstest.MapFile{Data: fmt.Appendf(nil, "---\nname: %s\ndisplayName: %s\ndescription: About %s.\nauthor: Ann\ncategory: %s\ntags: [%s]\n---\n%s", name, title, name, map[bool]string{true: "Food", false: "Sweets"}[name != "candy"], tags, body)}
			s := must(w.lib.Upload(w.ctx, w.ada, own, library.Package{FileName: name + ".zip", Data: bytes.NewReader(pack(t, name, all))}))(t)
			ids[name] = s.ID
		}
		add("apple", "Zest", "fruit, red", "One two three four five.")
		add("bread", "yeast", "baked", "Short.", "scripts/knead.sh", "echo")
		add("candy", "Xylitol", "fruit", "One two.")
		now := time.Now()
		mustDo(t, w.db.Usage.Add(w.ctx, store.SkillUsage{SkillID: ids["candy"], Loads: 5, LastUsed: now}, store.SkillUsage{SkillID: ids["bread"], Calls: 2, LastUsed: now}))
		since := now.Add(-24 * time.Hour)
		yes, no := true, false
		for _, tt := range []struct {
			name string
			q    library.Query
			want []string
		}{
			{"by name", library.Query{}, []string{"apple", "bread", "candy"}},
			{"by title, in any case", library.Query{Order: library.ByTitle}, []string{"candy", "bread", "apple"}},
			{"by uses", library.Query{Order: library.ByUses, Since: since}, []string{"candy", "bread", "apple"}},
			{"by update", library.Query{Order: library.ByUpdate}, []string{"candy", "bread", "apple"}},
			{"by creation", library.Query{Order: library.ByCreation}, []string{"candy", "bread", "apple"}},
			{"category", library.Query{Category: "Food"}, []string{"apple", "bread"}},
			{"attention", library.Query{Attention: true}, nil}, // nobody but an administrator reviews the code of users
			{"with code", library.Query{Code: &yes}, []string{"bread"}},
			{"without", library.Query{Code: &no}, []string{"apple", "candy"}},
			{"review", library.Query{Review: library.Pending}, []string{"bread"}},
			{"tag", library.Query{Tag: "fruit"}, []string{"apple", "candy"}},
			{"imported", library.Query{Imported: &yes}, nil},
			{"tag and code", library.Query{Tag: "fruit", Code: &yes}, nil},
			{"only hidden", library.Query{OnlyHidden: true, Hidden: true}, nil},
			{"text", library.Query{Text: "BREAD"}, []string{"bread"}},
			{"relevance", library.Query{Text: "candy", Order: library.ByRelevance}, []string{"candy"}},
			{"part of a word", library.Query{Text: "ppl", Order: library.ByRelevance}, []string{"apple"}},
			{"unused, but new", library.Query{Unused: true, Since: since}, nil},
			{"unused", library.Query{Unused: true, Since: now}, []string{"apple"}},
		} {
			tt.q.In = []store.Namespace{own}
			found, err := w.lib.List(w.ctx, w.ada, tt.q)
			mustDo(t, err)
			if got := skillNames(found.Skills); !slices.Equal(got, tt.want) || found.Total != len(tt.want) {
				t.Errorf("%s: %q of %d, want %q", tt.name, got, found.Total, tt.want)
			}
		}

		found, err := w.lib.List(w.ctx, w.ada, library.Query{In: []store.Namespace{own}, Tag: "red", Uses: true, Since: since})
		mustDo(t, err)
		want := library.Facets{Total: 3, Namespaces: map[store.Namespace]int{own: 3}, Code: 1, Reviews: map[library.Review]int{library.Pending: 1},
			Tags: []library.TagCount{{Tag: "fruit", Count: 2}, {Tag: "baked", Count: 1}, {Tag: "red", Count: 1}}, Categories: []library.CategoryCount{{Category: "Food", Count: 2}, {Category: "Sweets", Count: 1}}}
		if diff := cmp.Diff(want, found.Facets); diff != "" {
			t.Error(diff)
		}
		if s := found.Skills[0]; s.Category != "Food" || s.Author != "Ann" || *s.Uses != 0 {
			t.Errorf("the skill is %+v", s)
		}
		if _, err := w.lib.List(w.ctx, w.ada, library.Query{Order: "color"}); !errors.Is(err, library.ErrInvalid) {
			t.Errorf("an unknown order: %v", err)
		}
	})
}

// A cursor continues after the last skill in each order, also if skills were added or
// deleted meanwhile.
func TestListPages(t *testing.T) {
	w := sqlite(t, nil)
	own := ownNamespace(w.ada)
	var all []*library.Skill
	for i := range 7 {
		all = append(all, w.upload(w.ada, own, fmt.Sprintf("s%d", i), "Text."))
	}
	q := library.Query{In: []store.Namespace{own}, Page: store.Page{Limit: 3}}
	next := func() []string {
		t.Helper()
		found, err := w.lib.List(w.ctx, w.ada, q)
		mustDo(t, err)
		q.After = found.Next
		return skillNames(found.Skills)
	}
	wantEqual(t, next(), []string{"s0", "s1", "s2"})
	w.upload(w.ada, own, "a-new-one", "Text.")
	wantEqual(t, next(), []string{"s3", "s4", "s5"})
	_, err := w.lib.Delete(w.ctx, w.ada, all[5].ID, false, true)
	mustDo(t, err)
	wantEqual(t, next(), []string{"s6"})
	wantEqual(t, q.After, "")
	for _, bad := range []string{"x", "e30x", "eyJvZmZzZXQiOi0xfQ"} {
		q.After = bad
		if _, err := w.lib.List(w.ctx, w.ada, q); !errors.Is(err, library.ErrInvalid) {
			t.Errorf("the cursor %q: %v", bad, err)
		}
	}
}

// The usage of a skill counts only for users who may see it.
func TestListByUsesShowsAllowedUsageOnly(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.root, store.Public, "pdf", "Text.")
	mustDo(t, w.db.Usage.Add(w.ctx, store.SkillUsage{SkillID: s.ID, Loads: 5, LastUsed: time.Now()}))
	five := int64(5)
	for _, tt := range []struct {
		who  account.Principal
		want *int64
	}{{w.eve, nil}, {w.root, &five}} {
		found, err := w.lib.List(w.ctx, tt.who, library.Query{In: []store.Namespace{store.Public}, Uses: true, Since: time.Now().Add(-time.Hour)})
		mustDo(t, err)
		wantEqual(t, found.Skills[0].Uses, tt.want)
	}
}

// A list of installable skills omits those whose code is awaiting review, except for
// the user's own, and those that were rejected. They do not shadow others. The same
// ones are installable by their names.
func TestListInstallableSkills(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		in := must(library.DownloadNamespaces(w.bob))(t)
		var all []*library.Skill
		add := func(s *library.Skill) *library.Skill { all = append(all, s); return s }
		want := func(when string, ids ...string) {
			t.Helper()
			got := names(must(w.list(w.bob, library.Query{In: in, Installable: true}))(t), func(s *library.Skill) string { return s.ID })
			if diff := cmp.Diff(ids, got); diff != "" {
				t.Errorf("%s: got + and want -:\n%s", when, diff)
			}
			for _, s := range all {
				if got := must(w.lib.IsInstallable(w.ctx, w.bob, s))(t); got != slices.Contains(ids, s.ID) {
					t.Errorf("%s: installable is %v for the skill in %s", when, got, s.Namespace)
				}
			}
		}
		public := add(w.upload(w.root, store.Public, "pdf", "public"))
		group := add(w.upload(w.ada, w.team, "pdf", "group", "run.sh", someCode))
		want("pending in the group", public.ID)
		w.decide(group.Digest, group, library.Approved)
		want("approved", group.ID)
		w.decide(group.Digest, group, library.Rejected)
		want("rejected", public.ID)
		own := add(w.upload(w.bob, ownNamespace(w.bob), "pdf", "own", "run.sh", otherCode))
		want("with an own skill", own.ID)
		mustDo(t, w.lib.ReviewVersion(w.ctx, w.root, own.ID, library.Decision{Digest: own.Digest, Review: library.Rejected}))
		want("with an own skill that was rejected", public.ID)
	})
}

// A list of installable skills omits those that were hidden while it was made.
func TestListChecksDownloadAgain(t *testing.T) {
	address := storetest.SQLite(t)
	w := newFixture(t, storetest.Open(t, address), nil)
	s := w.upload(w.root, store.Public, "pdf", "public")
	q := library.Query{In: must(library.DownloadNamespaces(w.bob))(t), Installable: true}
	wantEqual(t, skillNames(must(w.list(w.bob, q))(t)), []string{"pdf"})
	db := must(sql.Open("sqlite", strings.TrimPrefix(address, "sqlite:")+"?_pragma=busy_timeout(10000)"))(t)
	defer db.Close()
	must(db.Exec("UPDATE skills SET hidden = TRUE WHERE id = ?", s.ID))(t) // without a new revision, as if after the library read it
	wantEqual(t, skillNames(must(w.list(w.bob, q))(t)), []string{})
}
