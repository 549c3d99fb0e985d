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

// corpus is a set of skills to search.
type corpus struct {
	catalog *catalog.Catalog
	docs    []bm25.Doc     // the same skills, for the other ways to search
	index   map[string]int // index in docs by name
}

// tasksOrigin is the origin of the skills of tasks. dropHalf never drops them.
const tasksOrigin = "tasks"

// openCorpus reads the skills in the directories. The first directory contains
// the tasks. If keep is not nil, the corpus contains only the skills for which
// it returns true.
func openCorpus(ctx context.Context, dirs []string, keep func(*catalog.Entry) bool) (*corpus, error) {
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
	return newCorpus(ctx, sources, keep)
}

func newCorpus(ctx context.Context, sources []catalog.Source, keep func(*catalog.Entry) bool) (*corpus, error) {
	if keep != nil {
		for i, s := range sources {
			sources[i] = filteredSource{s, keep}
		}
	}
	cat, err := catalog.New(sources, nil)
	if err != nil {
		return nil, err
	}
	if err := cat.Reload(ctx); err != nil {
		return nil, err
	}
	c := &corpus{catalog: cat, index: map[string]int{}}
	for _, e := range cat.Snapshot().Skills() {
		s, _, err := cat.Read(ctx, e)
		if err != nil {
			return nil, err
		}
		c.index[e.Name] = len(c.docs)
		c.docs = append(c.docs, bm25.Doc{Name: e.Name, Description: e.Description, Tags: e.Tags, Body: s.Instructions})
	}
	return c, nil
}

// filteredSource is a source that omits the skills that keep rejects.
type filteredSource struct {
	catalog.Source
	keep func(*catalog.Entry) bool
}

// List implements [catalog.Source].
func (s filteredSource) List(ctx context.Context) (catalog.Listing, error) {
	l, err := s.Source.List(ctx)
	l.Entries = slices.DeleteFunc(l.Entries, func(e *catalog.Entry) bool { return !s.keep(e) })
	return l, err
}

// withoutIndex returns a copy of the corpus whose catalog has no search index
// yet.
func (c *corpus) withoutIndex(ctx context.Context) (*corpus, error) {
	cat, err := catalog.New(c.catalog.Sources(), nil)
	if err != nil {
		return nil, err
	}
	return &corpus{cat, c.docs, c.index}, cat.Reload(ctx)
}

// dropHalf returns a copy of the corpus without a random half of the skills
// that belong to no task.
func (c *corpus) dropHalf(ctx context.Context, seed uint64) (*corpus, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	out := map[string]bool{}
	for _, e := range c.catalog.Snapshot().Skills() { // ordered by name, so that a seed always has the same result
		out[e.Key()] = e.Origin != tasksOrigin && r.IntN(2) == 0
	}
	return newCorpus(ctx, c.catalog.Sources(), func(e *catalog.Entry) bool { return !out[e.Key()] })
}

// taskSkills returns the names of the skills in a task's directory. Other tasks may have skills
// with the same names.
func (c *corpus) taskSkills(task string) map[string]bool {
	names := map[string]bool{}
	for e := range c.catalog.Snapshot().All() {
		if e.Origin == tasksOrigin && strings.HasPrefix(e.Dir, task+"/") {
			names[e.Name] = true
		}
	}
	return names
}

// knownItemQuestions returns a test case for each prompt that a skill's author suggests.
func (c *corpus) knownItemQuestions() []question {
	var out []question
	for _, e := range c.catalog.Snapshot().Skills() {
		for _, p := range readPrompts(e.Path) {
			out = append(out, question{e.Name, []string{p}, map[string]bool{e.Name: true}})
		}
	}
	return out
}

var (
	promptLine = regexp.MustCompile(`(?m)^\s+(?:default_prompt|short_description):\s*(.*)$`)
	usePrefix  = regexp.MustCompile(`(?i)^use \$[a-z0-9:-]+,?( to| for)?`)
	skillName  = regexp.MustCompile(`\$[a-zA-Z0-9:-]+`)
)

// readPrompts returns a skill's suggested prompts, with its name removed.
func readPrompts(folder string) []string {
	data, err := os.ReadFile(filepath.Join(folder, "agents", "openai.yaml"))
	if err != nil {
		return nil // most skills have none
	}
	var out []string
	for _, m := range promptLine.FindAllSubmatch(data, -1) {
		q := strings.Trim(string(m[1]), " \"'")
		q = skillName.ReplaceAllString(usePrefix.ReplaceAllString(q, ""), "")
		if len(strings.Fields(q)) >= 3 {
			out = append(out, q)
		}
	}
	return out
}
