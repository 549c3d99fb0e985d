package catalog_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// countedLists is a source that counts how often it is listed.
type countedLists struct {
	*memory
	lists int
}

func (c *countedLists) List(ctx context.Context) (catalog.Listing, error) {
	c.lists++
	return c.memory.List(ctx)
}

// listSource is a source whose values cannot be compared.
type listSource struct{ names []string }

func (s listSource) Origin() string       { return "list" }
func (s listSource) Scope() catalog.Scope { return catalog.User }
func (s listSource) List(context.Context) (catalog.Listing, error) {
	return catalog.Listing{Entries: source("list", catalog.User, s.names...).entries}, nil
}
func (s listSource) Open(context.Context, *catalog.Entry) (*skill.Bundle, error) {
	return nil, fmt.Errorf("open")
}

func TestSetSources(t *testing.T) {
	kept := &countedLists{memory: source("kept", catalog.User, "pdf", "both")}
	c := open(t, kept, source("old", catalog.Project, "both", "gone"))
	must(t, c.SetSources(t.Context(), []catalog.Source{source("new", catalog.Project, "csv"), kept, listSource{[]string{"one"}}}))
	if got := keys(c.Snapshot().Skills()); !slices.Equal(got, []string{"kept/both", "new/csv", "list/one", "kept/pdf"}) {
		t.Errorf("skills %q", got)
	}
	if kept.lists != 1 {
		t.Errorf("the source that was kept was read %d times", kept.lists)
	}
	// Another source with the same label is a new source.
	must(t, c.SetSources(t.Context(), []catalog.Source{source("new", catalog.Project, "xml"), kept, listSource{[]string{"two"}}}))
	if got := keys(c.Snapshot().Skills()); !slices.Equal(got, []string{"kept/both", "kept/pdf", "list/two", "new/xml"}) {
		t.Errorf("skills %q", got)
	}
	for _, label := range []string{"kept", "Upper case"} {
		before := c.Snapshot()
		if err := c.SetSources(t.Context(), []catalog.Source{kept, source(label, catalog.User, "no")}); err == nil {
			t.Errorf("the label %q is accepted", label)
		}
		if c.Snapshot() != before || len(c.Sources()) != 3 {
			t.Errorf("the label %q: the catalog changed", label)
		}
	}
	must(t, c.SetSources(t.Context(), nil))
	if got := c.Snapshot().Skills(); len(got) > 0 {
		t.Errorf("without sources there are %q", keys(got))
	}
}

func TestSetSourcesBeforeReload(t *testing.T) {
	c, err := catalog.New(nil, nil)
	must(t, err)
	src := &countedLists{memory: source("new", catalog.User, "pdf")}
	must(t, c.SetSources(t.Context(), []catalog.Source{src}))
	if src.lists > 0 || c.Snapshot().Version != 0 {
		t.Errorf("read %d times, version %d", src.lists, c.Snapshot().Version)
	}
	must(t, c.Reload(t.Context()))
	if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"pdf"}) {
		t.Errorf("skills %q", got)
	}
}

// The result of a source that was removed while it was read is not used.
func TestSourceRemovedWhileRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stays := source("stays", catalog.User, "pdf")
		c, err := catalog.New([]catalog.Source{slow("slow", release, "late"), stays}, &catalog.Options{Wait: time.Second})
		must(t, err)
		must(t, c.Reload(t.Context()))
		must(t, c.SetSources(t.Context(), []catalog.Source{stays}))
		if got := problemCodes(c.Snapshot()); len(got) > 0 {
			t.Errorf("problems %q", got)
		}
		version := c.Snapshot().Version
		close(release)
		synctest.Wait()
		if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"pdf"}) || c.Snapshot().Version != version {
			t.Errorf("skills %q, version %d, was %d", got, c.Snapshot().Version, version)
		}
	})
}

// A catalog that keeps itself up to date follows the new sources and no longer
// those that were removed.
func TestNewSourcesAreFollowed(t *testing.T) {
	t.Parallel()
	first, second := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", "")}), tree(t, map[string]string{"csv/SKILL.md": doc("csv", "")})
	var latest atomic.Pointer[memory]
	latest.Store(source("events", catalog.User, "one"))
	events := &watched{memory: source("events", catalog.User), change: make(chan struct{})}
	events.list = func(ctx context.Context) (catalog.Listing, error) { return latest.Load().List(ctx) }
	polled := source("polled", catalog.User, "two")
	at := func(origin, root string) catalog.Source { return catalog.NewDir(origin, catalog.Project, root, nil) }
	f := follow(t, &catalog.Options{Poll: time.Millisecond}, at("first", first), events, polled)
	must(t, f.SetSources(t.Context(), []catalog.Source{at("second", second), events, polled}))
	f.untilNames(t, "the new source", "csv", "one", "two")
	write(t, first, map[string]string{"gone/SKILL.md": doc("gone", "")})
	write(t, second, map[string]string{"xml/SKILL.md": doc("xml", "")})
	f.untilNames(t, "a skill in the new source", "csv", "one", "two", "xml")
	latest.Store(source("events", catalog.User, "one", "three"))
	events.change <- struct{}{}
	f.untilNames(t, "an event of the source that was kept", "csv", "one", "three", "two", "xml")
	if e := get(t, f.Snapshot(), "xml"); !strings.HasPrefix(e.Path, filepath.Clean(second)) {
		t.Errorf("xml is in %s", e.Path)
	}
}

// Whoever sees a snapshot that lacks the skills of a source that was not read can
// tell that they are missing.
func TestNewSourcesAreReportedUntilRead(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second} {
		stays := source("stays", catalog.User, "pdf")
		c, err := catalog.New([]catalog.Source{stays, source("old", catalog.Project, "gone")}, &catalog.Options{Wait: wait})
		must(t, err)
		must(t, c.Reload(t.Context()))
		var seen [][]string
		c.Subscribe(func(_, now *catalog.Snapshot) {
			seen = append(seen, append(names(now.Skills()), problemCodes(now)...))
		})
		must(t, c.SetSources(t.Context(), []catalog.Source{stays, source("empty", catalog.Project), source("new", catalog.Project, "csv")}))
		want := [][]string{{"pdf", "empty still-reading", "new still-reading"}, {"csv", "pdf"}}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("wait %v: (-want +got):\n%s", wait, diff)
		}
	}
}

// A change of the filter while new sources are read does not hide that they are.
func TestFilterChangesWhileNewSourcesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := open(t, source("stays", catalog.User, "pdf"))
		go func() { _ = c.SetSources(context.Background(), append(c.Sources(), slow("new", release, "csv"))) }()
		synctest.Wait()
		must(t, c.SetFilter(catalog.Filter{Allow: []string{"*"}}))
		if got := problemCodes(c.Snapshot()); !slices.Equal(got, []string{"new still-reading"}) {
			t.Errorf("problems %q", got)
		}
		close(release)
		synctest.Wait()
		if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"csv", "pdf"}) || len(problemCodes(c.Snapshot())) > 0 {
			t.Errorf("skills %q, problems %q", got, problemCodes(c.Snapshot()))
		}
	})
}

// What was read before the context was done is published.
func TestReloadStoppedAfterChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c, err := catalog.New(nil, &catalog.Options{Wait: time.Hour})
		must(t, err)
		must(t, c.Reload(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_ = c.SetSources(ctx, []catalog.Source{source("fast", catalog.User, "pdf"), slow("slow", release, "late")})
		}()
		synctest.Wait() // one is read
		cancel()
		synctest.Wait()
		if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"pdf"}) {
			t.Errorf("skills %q", got)
		}
		close(release)
		synctest.Wait()
	})
}

// Sources that are set during the first reload are read too.
func TestSetSourcesDuringFirstReload(t *testing.T) {
	began, set := make(chan struct{}), make(chan error)
	first := source("first", catalog.User, "pdf")
	c, err := catalog.New([]catalog.Source{first}, nil)
	must(t, err)
	first.list = func(context.Context) (catalog.Listing, error) {
		close(began)
		for len(c.Sources()) == 1 {
			runtime.Gosched()
		}
		return catalog.Listing{Entries: slices.Clone(first.entries)}, nil
	}
	go func() {
		<-began
		set <- c.SetSources(t.Context(), append(c.Sources(), source("new", catalog.User, "csv")))
	}()
	must(t, c.Reload(t.Context()))
	must(t, <-set)
	if got := names(c.Snapshot().Skills()); !slices.Equal(got, []string{"csv", "pdf"}) {
		t.Errorf("skills %q", got)
	}
}

func TestSourcesInAnotherOrder(t *testing.T) {
	c := open(t, source("one", catalog.User, "pdf"), source("two", catalog.User, "pdf"))
	all := c.Sources()
	slices.Reverse(all)
	must(t, c.SetSources(t.Context(), all))
	if got := keys(c.Snapshot().Skills()); !slices.Equal(got, []string{"two/pdf"}) {
		t.Errorf("skills %q", got)
	}
}
