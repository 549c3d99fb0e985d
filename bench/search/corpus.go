//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bm25"
)

// corpus is what is searched.
type corpus struct {
	catalog *catalog.Catalog
	docs    []bm25.Doc     // the same skills for the other ways
	place   map[string]int // of each name in docs
}

// tasksOrigin is the source that is never halved.
const tasksOrigin = "tasks"

// open reads the skills of the directories, the first of which are the tasks.
// With keep, only some of them are taken.
func open(ctx context.Context, dirs []string, keep func(*catalog.Entry) bool) (*corpus, error) {
	var sources []catalog.Source
	for i, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		origin := tasksOrigin
		if i > 0 {
			origin = "pool" + strconv.Itoa(i)
		}
		sources = append(sources, catalog.NewDir(origin, catalog.User, dir, nil))
	}
	return index(ctx, sources, keep)
}

func index(ctx context.Context, sources []catalog.Source, keep func(*catalog.Entry) bool) (*corpus, error) {
	if keep != nil {
		for i, s := range sources {
			sources[i] = some{s, keep}
		}
	}
	cat, err := catalog.New(sources, nil)
	if err != nil {
		return nil, err
	}
	if err := cat.Reload(ctx); err != nil {
		return nil, err
	}
	c := &corpus{catalog: cat, place: map[string]int{}}
	for _, e := range cat.Snapshot().Skills() {
		s, _, err := cat.Read(ctx, e)
		if err != nil {
			return nil, err
		}
		c.place[e.Name] = len(c.docs)
		c.docs = append(c.docs, bm25.Doc{Name: e.Name, Description: e.Description, Tags: e.Tags, Body: s.Instructions})
	}
	return c, nil
}

// some is a source without the skills that are not kept.
type some struct {
	catalog.Source
	keep func(*catalog.Entry) bool
}

func (s some) List(ctx context.Context) (catalog.Listing, error) {
	l, err := s.Source.List(ctx)
	l.Entries = slices.DeleteFunc(l.Entries, func(e *catalog.Entry) bool { return !s.keep(e) })
	return l, err
}

// again is the corpus with a catalog that has not been searched.
func (c *corpus) again(ctx context.Context) (*corpus, error) {
	cat, err := catalog.New(c.catalog.Sources(), nil)
	if err != nil {
		return nil, err
	}
	return &corpus{cat, c.docs, c.place}, cat.Reload(ctx)
}

// half is the corpus with about half of its pools left out.
func (c *corpus) half(ctx context.Context, seed uint64) (*corpus, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	out := map[string]bool{}
	for _, e := range c.catalog.Snapshot().Skills() { // in order of name, so the same for a seed
		out[e.Key()] = e.Origin != tasksOrigin && r.IntN(2) == 0
	}
	return index(ctx, c.catalog.Sources(), func(e *catalog.Entry) bool { return !out[e.Key()] })
}

// namesBelow are the names of the skills in a task's folder, also of those
// that another task has as well.
func (c *corpus) namesBelow(task string) map[string]bool {
	names := map[string]bool{}
	for e := range c.catalog.Snapshot().All() {
		if e.Origin == tasksOrigin && strings.HasPrefix(e.Dir, task+"/") {
			names[e.Name] = true
		}
	}
	return names
}

// knownItems asks for each skill what its author says people ask for.
func (c *corpus) knownItems() []question {
	var out []question
	for _, e := range c.catalog.Snapshot().Skills() {
		for _, p := range prompts(e.Path) {
			out = append(out, question{e.Name, []string{p}, map[string]bool{e.Name: true}})
		}
	}
	return out
}

var (
	prompt  = regexp.MustCompile(`(?m)^\s+(?:default_prompt|short_description):\s*(.*)$`)
	opening = regexp.MustCompile(`(?i)^use \$[a-z0-9:-]+,?( to| for)?`)
	named   = regexp.MustCompile(`\$[a-zA-Z0-9:-]+`)
)

func prompts(folder string) []string {
	data, err := os.ReadFile(filepath.Join(folder, "agents", "openai.yaml"))
	if err != nil {
		return nil // most have none
	}
	var out []string
	for _, m := range prompt.FindAllSubmatch(data, -1) {
		q := strings.Trim(string(m[1]), " \"'")
		q = named.ReplaceAllString(opening.ReplaceAllString(q, ""), "")
		if len(strings.Fields(q)) >= 3 {
			out = append(out, q)
		}
	}
	return out
}
