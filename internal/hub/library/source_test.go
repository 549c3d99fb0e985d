package library_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/loadouttest"
)

// runtime is one with the skills of a principal.
func (w *fixture) runtime(p account.Principal, bound ...library.Ref) *loadout.Runtime {
	w.t.Helper()
	sources := must(w.lib.Sources(w.ctx, p))(w.t)
	if bound != nil {
		sources = append([]catalog.Source{must(w.lib.BoundSource(p, "agent", bound))(w.t)}, sources...)
	}
	rt := must(loadout.New(w.ctx, &loadout.Options{Sources: sources}))(w.t)
	w.t.Cleanup(func() { mustDo(w.t, rt.Close()) })
	return rt
}

func keys(rt *loadout.Runtime) []string {
	return names(rt.Catalog().Snapshot().Skills(), (*catalog.Entry).Key)
}

// W6: conversations of a principal find the same skills as lists and references.
func TestW6PrincipalSources(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.upload(w.ada, ownNamespace(w.ada), "pdf", "mine", "ref/a.md", "text")
		w.upload(w.ada, w.team, "pdf", "ours")
		w.upload(w.ada, w.team, "docx", "ours")
		w.upload(w.root, store.Public, "pdf", "everybody's")
		x := w.upload(w.root, store.Public, "xlsx", "everybody's")

		rt := w.runtime(w.ada)
		wantEqual(t, keys(rt), []string{"group.team/docx", "user/pdf", "public/xlsx"})
		wantEqual(t, keys(w.runtime(w.bob)), []string{"group.team/docx", "group.team/pdf", "public/xlsx"})
		wantEqual(t, keys(w.runtime(w.eve)), []string{"public/pdf", "public/xlsx"})

		s := must(rt.NewSession(w.ctx, nil))(t)
		defer s.Close()
		res := must(s.Load(w.ctx, "pdf", nil))(t)
		if !strings.Contains(res.Text, "mine") {
			t.Errorf("the load returned %q", res.Text)
		}
		e := must(rt.Catalog().Resolve(w.ctx, x.Digest))(t)
		wantEqual(t, e.Name, "xlsx")
		files := must(rt.Catalog().CompleteManifest(w.ctx, e))(t)
		wantEqual(t, files.Digest(), x.Digest)
		for _, src := range must(w.lib.Sources(w.ctx, w.ada))(t) {
			t.Run(src.Origin(), func(t *testing.T) { loadouttest.Source(t, src) })
		}
		_, err := w.lib.Sources(w.ctx, account.Principal{})
		wantDenied(t, err)
	})
}

// A listed skill is opened as it is now, although another node changed it and this
// node was not told.
func TestSourceOpensCurrentState(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		other := w.node(nil)
		s := w.upload(w.root, store.Public, "pdf", "one")
		c := w.runtime(w.eve).Catalog()
		e := must(c.Resolve(w.ctx, "pdf"))(t)
		read := func() string {
			_, text, err := c.Read(w.ctx, e)
			if errors.Is(err, fs.ErrNotExist) {
				return "gone"
			}
			mustDo(t, err)
			return strings.TrimSpace(string(text[bytes.LastIndexByte(bytes.TrimSpace(text), '\n'):]))
		}
		wantEqual(t, read(), "one")
		must(other.AddVersion(w.ctx, w.root, s.ID, upload(t, "pdf", "two")))(t)
		wantEqual(t, read(), "two")
		mustDo(t, other.SetCurrentVersion(w.ctx, w.root, s.ID, 1))
		wantEqual(t, read(), "one")
		must(other.Hide(w.ctx, w.root, s.ID, true))(t)
		wantEqual(t, read(), "one")
		must(other.Delete(w.ctx, w.root, s.ID, false, true))(t)
		wantEqual(t, read(), "gone")
		w.upload(w.root, store.Public, "pdf", "another")
		wantEqual(t, read(), "another")
	})
}

func TestReferencesComeBeforeNames(t *testing.T) {
	w := sqlite(t, nil)
	w.upload(w.eve, ownNamespace(w.eve), "pdf", "hers")
	s := w.upload(w.root, store.Public, "pdf", "one")
	must(w.lib.AddVersion(w.ctx, w.root, s.ID, upload(t, "pdf", "two")))(t)
	must(w.lib.Hide(w.ctx, w.root, s.ID, true))(t)
	mine := w.upload(w.ada, ownNamespace(w.ada), "secret", "ada's")

	rt := w.runtime(w.eve, library.Ref{ID: s.ID, Digest: s.Digest}, library.Ref{ID: mine.ID}, library.Ref{Name: "nothing"}, library.Ref{Name: "pdf"})
	wantEqual(t, keys(rt), []string{"agent/pdf"})
	_, text, err := rt.Catalog().Read(w.ctx, must(rt.Catalog().Resolve(w.ctx, "pdf"))(t))
	mustDo(t, err)
	if !bytes.HasSuffix(text, []byte("one\n")) {
		t.Errorf("the pinned version is %q", text)
	}
	problems := names(rt.Catalog().Snapshot().Problems(), func(p catalog.Problem) string { return p.Path })
	wantEqual(t, problems, []string{"agent/" + mine.ID, "agent/nothing"})
}

// The entry of a skill stays the same as long as its files do, and a source sees what
// another node changed.
func TestSourcesReportChanges(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		other := w.node(nil)
		s := w.upload(w.ada, w.team, "pdf", "one")
		w.upload(w.ada, w.team, "docx", "one")
		sources := must(other.Sources(w.ctx, w.bob))(t)
		team := sources[slices.IndexFunc(sources, func(s catalog.Source) bool { return s.Scope() == catalog.Group })]
		list := func() []*catalog.Entry { return slices.Collect(must(team.List(w.ctx))(t).Layer.All()) }
		first := list()
		mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, s.ID, library.Decision{Digest: s.Digest, Review: library.Approved}))
		if second := list(); !slices.Equal(first, second) {
			t.Error("a review changes entries")
		}
		w.version(w.ada, s, "two")
		third := list()
		if first[0] != third[0] || first[1] == third[1] {
			t.Errorf("entries are %p and %p, before they were %p and %p", third[0], third[1], first[0], first[1])
		}
		b := must(team.Open(w.ctx, third[1]))(t)
		if text := must(fs.ReadFile(b, "SKILL.md"))(t); !bytes.HasSuffix(text, []byte("two\n")) {
			t.Errorf("the skill is %q", text)
		}
		must(w.lib.Delete(w.ctx, w.ada, s.ID, false, false))(t)
		wantEqual(t, len(list()), 1)
		_, err := team.Open(w.ctx, third[1])
		wantError(t, err, fs.ErrNotExist)
	})
}

func TestWatchedSourcesAreNotified(t *testing.T) {
	w := sqlite(t, nil)
	other := w.node(&library.Options{Poll: 5 * time.Millisecond})
	sources := must(other.Sources(w.ctx, w.bob))(t)
	ctx, stop := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { mustDo(t, other.Run(ctx)) })
	woken := map[catalog.Scope]chan struct{}{catalog.User: make(chan struct{}, 100), catalog.Group: make(chan struct{}, 100), catalog.Public: make(chan struct{}, 100)}
	for _, s := range sources {
		must(s.List(ctx))(t)
		running.Go(func() {
			if err := s.(catalog.Watcher).Watch(ctx, func() { woken[s.Scope()] <- struct{}{} }); err != nil {
				t.Error(err)
			}
		})
	}
	s := w.upload(w.ada, w.team, "pdf", "one")
	<-woken[catalog.Group]
	mustDo(t, w.lib.Publish(w.ctx, w.root, s.ID, store.Public))
	<-woken[catalog.Public]
}

func TestSearchFindsReachableSkills(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		mine := w.upload(w.ada, ownNamespace(w.ada), "pdf", "")
		w.upload(w.ada, w.team, "pdf", "ours")
		w.upload(w.root, store.Public, "docx", "")
		w.upload(w.eve, ownNamespace(w.eve), "pdf-forms", "")
		hits := must(w.lib.Search(w.ctx, w.ada, "pdf", 0))(t)
		wantEqual(t, names(hits, func(h library.Hit) string { return h.ID }), []string{mine.ID})
		hits = must(w.lib.Search(w.ctx, w.eve, "what does docx do", 0))(t)
		if len(hits) == 0 || hits[0].Name != "docx" {
			t.Errorf("hits are %v", hits)
		}
		wantEqual(t, len(must(w.lib.Search(w.ctx, w.eve, "", 0))(t)), 0)
		_, err := w.lib.Search(w.ctx, w.eve.LimitedTo(account.ScopeWrite), "pdf", 0)
		wantDenied(t, err)
	})
}

// Skills are found by the requests that their front matter has as examples, as in a
// local catalog: in the library, and as a draft.
func TestSearchFindsExamples(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		const examples = "examples:\n  - Why did turnover drop on Tuesday?\n  - "
		pkg := func(name, more string) library.Package {
			text := "---\nname: " + name + "\ndescription: Examines series.\n" + more + "---\nRead.\n"
			return library.Package{FileName: name + ".zip", Data: bytes.NewReader(pack(t, name, fstest.MapFS{"SKILL.md": {Data: []byte(text)}}))}
		}
		found := must(w.lib.Upload(w.ctx, w.ada, w.team, pkg("anomalies", examples+strings.Repeat("x", 490)+"\n")))(t)
		must(w.lib.Upload(w.ctx, w.ada, w.team, pkg("series", "")))(t)
		hits := func() []string {
			t.Helper()
			return names(must(w.lib.Search(w.ctx, w.bob, "turnover tuesday", 0))(t), func(h library.Hit) string { return h.Name })
		}
		wantEqual(t, hits(), []string{"anomalies"})
		draft := library.Draft{Files: []library.DraftFile{{Path: "SKILL.md", Data: []byte("---\nname: turnover\ndescription: Examines it.\nexamples: [Why on Tuesday?]\n---\nRead.\n")}}}
		tried := must(w.lib.SearchWithDraft(w.ctx, w.ada, draft, "", []string{"tuesday"}, 5))(t)
		wantEqual(t, names(tried[0].Hits, func(h library.DraftHit) string { return h.Name }), []string{"turnover", "anomalies"})
		must(w.lib.AddVersion(w.ctx, w.ada, found.ID, pkg("anomalies", "")))(t)
		wantEqual(t, hits(), []string{})
	})
}

func TestBundlesAreFileSystems(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, ownNamespace(w.ada), "pdf", "body", "a/b/c.txt", "c", "a/d.txt", "d", "e.txt", "")
	b := must(w.lib.Open(w.ctx, w.ada, s.ID, 0))(t)
	defer b.Close()
	mustDo(t, fstest.TestFS(b.FS, "SKILL.md", "a/b/c.txt", "a/d.txt", "e.txt"))
}

// What is in the cache is never believed.
func TestChangedCachedFileIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	w := sqlite(t, &library.Options{CacheDir: dir})
	s := w.upload(w.ada, ownNamespace(w.ada), "pdf", "body")
	read := func(l *library.Library) string {
		b := must(l.Open(w.ctx, w.ada, s.ID, 0))(t)
		defer b.Close()
		return string(must(fs.ReadFile(b, "SKILL.md"))(t))
	}
	want := read(w.lib)
	kept := must(os.ReadDir(dir))(t)
	if len(kept) != 1 {
		t.Fatalf("the cache has %v", kept)
	}
	path := filepath.Join(dir, kept[0].Name())
	for _, bad := range []string{strings.Repeat("x", len(want)), "", want + "x"} {
		mustDo(t, os.WriteFile(path, []byte(bad), 0o600))
		wantEqual(t, read(w.lib), want)
		wantEqual(t, string(must(os.ReadFile(path))(t)), want) // repaired
	}
	mustDo(t, os.Remove(path))
	wantEqual(t, read(w.lib), want)

	mustDo(t, os.WriteFile(filepath.Join(dir, "new-1"), []byte("half"), 0o600))
	next := w.node(&library.Options{CacheDir: dir})
	wantEqual(t, read(next), want)
	wantEqual(t, len(must(os.ReadDir(dir))(t)), 1)
}

func TestCacheLimit(t *testing.T) {
	dir := t.TempDir()
	const most = 8 << 10
	w := sqlite(t, &library.Options{CacheDir: dir, CacheBytes: most})
	more := []string{"large.bin", strings.Repeat("large", 1000)}
	for i := range 40 {
		more = append(more, fmt.Sprintf("f%d.txt", i), strings.Repeat(fmt.Sprint(i, " "), 200))
	}
	s := w.upload(w.ada, ownNamespace(w.ada), "pdf", "body", more...)
	b := must(w.lib.Open(w.ctx, w.ada, s.ID, 0))(t)
	defer b.Close()
	mustDo(t, fstest.TestFS(b.FS, "SKILL.md"))
	var sum int64
	for _, d := range must(os.ReadDir(dir))(t) {
		if _, err := hex.DecodeString(d.Name()); err != nil {
			t.Errorf("the cache has %s", d.Name())
		}
		sum += must(d.Info())(t).Size()
	}
	if sum == 0 || sum > most {
		t.Errorf("the cache has %d bytes of %d", sum, most)
	}
}

func TestLostCacheIsRebuilt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	w := sqlite(t, &library.Options{CacheDir: dir})
	s := w.upload(w.ada, ownNamespace(w.ada), "pdf", "body")
	mustDo(t, os.RemoveAll(dir))
	for range 2 {
		b := must(w.lib.Open(w.ctx, w.ada, s.ID, 0))(t)
		must(fs.ReadFile(b, "SKILL.md"))(t)
		mustDo(t, b.Close())
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	w := sqlite(t, nil)
	for _, o := range []library.Options{{Grace: time.Minute}, {CacheDir: "/dev/null/x"}} {
		if l, err := library.New(w.db, &o); err == nil {
			t.Errorf("%+v is taken", o)
			mustDo(t, l.Close())
		} else if errors.Is(err, library.ErrNotFound) {
			t.Error(err)
		}
	}
}

// A skill may be the best one of a small namespace by chance: skills that fit come
// first, whichever namespace they are in.
func TestWeakHitsComeLast(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		describe := func(name, description string) library.Package {
			text := "---\nname: " + name + "\ndescription: " + description + "\n---\nRead.\n"
			return library.Package{FileName: name + ".zip", Data: bytes.NewReader(pack(t, name, fstest.MapFS{"SKILL.md": {Data: []byte(text)}}))}
		}
		must(w.lib.Upload(w.ctx, w.ada, ownNamespace(w.ada), describe("ledger", "Balances the ledger of a shop.")))(t)
		must(w.lib.Upload(w.ctx, w.ada, w.team, describe("tides", "Computes tide tables for harbours.")))(t)
		for query, want := range map[string][]string{
			"tide tables of the shop": {"tides false", "ledger true"},
			"brew tea in the shop":    {"ledger true"},
		} {
			hits := must(w.lib.Search(w.ctx, w.ada, query, 0))(t)
			wantEqual(t, names(hits, func(h library.Hit) string { return fmt.Sprint(h.Name, " ", h.Weak) }), want)
		}
	})
}

// Skills are found by the prompts of their evaluation files, but less than by
// descriptions: a skill cannot take the place of another one by naming it.
func TestSearchFindsQuestions(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		upload := func(name, description, evals string) {
			files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: " + description + "\n---\nRead.\n")}}
			if evals != "" {
				files["evals/eval_queries.json"] = &fstest.MapFile{Data: []byte(evals)}
			}
			must(w.lib.Upload(w.ctx, w.ada, w.team, library.Package{FileName: name + ".zip", Data: bytes.NewReader(pack(t, name, files))}))(t)
		}
		upload("anomalies", "Examines series.", `[{"query": "Why did turnover drop on Tuesday?", "should_trigger": true},
			{"query": "Bake a marzipan cake", "should_trigger": false}, {"query": "`+strings.Repeat("zeppelin ", 30)+`", "should_trigger": true}]`)
		upload("invoice-maker", "Makes invoices.", "")
		upload("greedy", "Does everything.", `[{"query": "invoice-maker invoice maker", "should_trigger": true}, {"query": "make invoices", "should_trigger": true},
			{"query": "third", "should_trigger": true}, {"query": "fourth", "should_trigger": true}, {"query": "fifth", "should_trigger": true}, {"query": "sixth", "should_trigger": true}]`)
		hits := func(query string) []string {
			return names(must(w.lib.Search(w.ctx, w.bob, query, 0))(t), func(h library.Hit) string { return h.Name })
		}
		wantEqual(t, hits("turnover tuesday"), []string{"anomalies"})
		wantEqual(t, hits("marzipan"), []string{})
		wantEqual(t, hits("zeppelin"), []string{})
		wantEqual(t, hits("fifth"), []string{"greedy"})
		wantEqual(t, hits("sixth"), []string{})
		for _, query := range []string{"invoice-maker", "make invoices"} {
			if got := hits(query); len(got) == 0 || got[0] != "invoice-maker" {
				t.Errorf("%q finds %q", query, got)
			}
		}
	})
}

// Of nearly equal hits, those come first that the user and its groups use most, and
// then those that were updated last. Better hits come before both.
func TestNearlyEqualHitsAreOrderedByUse(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		ids := map[string]string{}
		for _, s := range []struct{ name, description string }{{"ledger-red", "Balances ledgers."}, {"ledger-tan", "Balances ledgers."}, {"ledger-blue", "Balances ledgers."}, {"books", "Balances ledgers and audits books of shops."}} {
			text := "---\nname: " + s.name + "\ndescription: " + s.description + "\n---\nRead.\n"
			ids[s.name] = must(w.lib.Upload(w.ctx, w.ada, w.team, library.Package{FileName: s.name + ".zip", Data: bytes.NewReader(pack(t, s.name, fstest.MapFS{"SKILL.md": {Data: []byte(text)}}))}))(t).ID
		}
		hits := func(p account.Principal, query string) []string {
			return names(must(w.lib.Search(w.ctx, p, query, 3))(t), func(h library.Hit) string { return h.Name })
		}
		wantEqual(t, hits(w.bob, "balance ledgers"), []string{"ledger-blue", "ledger-tan", "ledger-red"})
		now := time.Now()
		mustDo(t, w.db.Usage.Add(w.ctx, store.SkillUsage{SkillID: ids["ledger-tan"], Owner: string(w.bob.User), Loads: 2, LastUsed: now}))
		mustDo(t, w.db.Usage.Add(w.ctx, store.SkillUsage{SkillID: ids["books"], Owner: string(w.bob.User), Loads: 9, LastUsed: now}))
		mustDo(t, w.db.MergeUsage(w.ctx, now))
		wantEqual(t, hits(w.bob, "balance ledgers"), []string{"ledger-tan", "ledger-blue", "ledger-red"})
		wantEqual(t, hits(w.bob, "ledger-red")[0], "ledger-red")
	})
}
