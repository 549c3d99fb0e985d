//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/mcpserver"
)

// call is a kind of call to measure.
type call struct {
	name    string
	method  string
	params  func(i int) any
	minimum func(i int) error // baseline; nil means a tool call that does nothing
}

type args = map[string]any

// measureCalls measures every kind of call over both transports.
func measureCalls(ctx context.Context, tmp, program, self, dir string, n int) (err error) {
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewDir("bench", catalog.Project, dir, nil)}})
	if err != nil {
		return err
	}
	defer rt.Close()
	if err := rt.Catalog().Warm(ctx); err != nil { // as the command does after it starts
		return err
	}
	server := mcpserver.New(rt, nil)
	defer server.Close()
	child, err := startServer(tmp, program, "mcp", "--skills", dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.Close()) }()
	measure.WaitIdle(child.PID())
	empty, err := startServer(tmp, self, "-serve-empty")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	bareSDK := newEmptyServer()
	nothing := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return bareSDK }, &mcp.StreamableHTTPOptions{Stateless: true})
	ways := []*way{
		{name: "stdio", to: child, nothing: empty},
		{name: "HTTP handler", to: handler{server.Handler(nil)}, nothing: handler{nothing}},
	}
	r := &report{}
	const pageCount = 20
	if err := warmFiles(rt.Catalog().Snapshot(), pageCount*60); err != nil { // more than the pages contain
		return err
	}
	pages, err := measureColdPages(r, ways, dir, pageCount)
	if err != nil {
		return err
	}
	for _, c := range newCalls(rt, pages, n) {
		if err := r.measure(c, ways, n); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	fmt.Printf("\n%d skills, %d calls of each kind, %d pages of skills/list:\n\n", len(rt.Catalog().Snapshot().Skills()), n, len(pages))
	r.Print(os.Stdout)
	return nil
}

// page is a page of skills/list: its cursor, and the files whose hashes it contains.
type page struct {
	cursor string
	files  []string
}

// measureColdPages pages through skills/list for the first time.
func measureColdPages(r *report, ways []*way, dir string, n int) (pages []page, err error) {
	var cost []*costs
	for _, w := range ways {
		cost = append(cost, r.addRows("skills/list, a page, first time", w.name))
	}
	next := make([]string, len(ways))
	for range n {
		p := page{cursor: next[0]}
		for k, w := range ways {
			took, res, err := w.to.Measure("skills/list", args{"cursor": next[k]})
			if err != nil {
				return nil, err
			}
			cost[k].addSample(took)
			if p.files, next[k], err = readPage(res, dir); err != nil {
				return nil, err
			}
		}
		took, err := measure.Run(func() error { return hashEach(p.files) })
		if err != nil {
			return nil, err
		}
		for _, c := range cost {
			c.baseline.AddTime(took.CPU)
		}
		pages = append(pages, p)
		if next[0] == "" {
			break
		}
	}
	return pages, nil
}

// readPage returns the files listed in a page and its next cursor.
func readPage(res json.RawMessage, dir string) (files []string, next string, err error) {
	var list struct {
		Skills     []struct{ Resources []struct{ URI string } }
		NextCursor string
	}
	if err := json.Unmarshal(res, &list); err != nil {
		return nil, "", err
	}
	for _, s := range list.Skills {
		for _, f := range s.Resources {
			rel, err := url.PathUnescape(strings.TrimPrefix(f.URI, "skill://"))
			if err != nil {
				return nil, "", err
			}
			files = append(files, filepath.Join(dir, rel))
		}
	}
	return files, list.NextCursor, nil
}

// warmFiles reads all files of the first n skills into the page cache.
func warmFiles(s *catalog.Snapshot, n int) error {
	for e := range s.All() {
		if n--; n < 0 {
			break
		}
		if err := hashTree(e.Path); err != nil {
			return err
		}
	}
	return nil
}

// newCalls returns the kinds of calls to measure. They alternate between up to n skills of
// about 15 KB.
func newCalls(rt *loadout.Runtime, pages []page, n int) []call {
	var chosen []*catalog.Entry
	for _, e := range rt.Catalog().Snapshot().Skills() {
		if fi, err := os.Stat(e.Path + "/SKILL.md"); err == nil && fi.Size() > 13_000 && fi.Size() < 17_000 && len(chosen) < n {
			chosen = append(chosen, e)
		}
	}
	skill := func(i int) *catalog.Entry { return chosen[i%len(chosen)] }
	md := func(i int) string { return filepath.Join(skill(i).Path, "SKILL.md") }
	uri := func(i int) string { return "skill://" + skill(i).Name + "/SKILL.md" }
	tool := func(name string, arguments func(i int) args) func(int) any {
		return func(i int) any { return args{"name": name, "arguments": arguments(i)} }
	}
	query := func(i int) string {
		words := strings.Fields(skill(i).Description)
		return strings.Join(words[:min(len(words), 5)], " ")
	}
	return []call{
		{name: "skills/list, a page, again", method: "skills/list",
			params:  func(i int) any { return args{"cursor": pages[i%len(pages)].cursor} },
			minimum: func(i int) error { return statEach(pages[i%len(pages)].files) }},
		{name: "skills/get, first time", method: "skills/get",
			params:  func(i int) any { return args{"uri": uri(i)} },
			minimum: func(i int) error { return hashTree(skill(i).Path) }},
		{name: "skills/get, again", method: "skills/get",
			params:  func(i int) any { return args{"uri": uri(i)} },
			minimum: func(i int) error { return statTree(skill(i).Path) }},
		{name: "resources/read of a 15 KB SKILL.md", method: "resources/read",
			params:  func(i int) any { return args{"uri": uri(i)} },
			minimum: func(i int) error { _, err := readFile(md(i)); return err }},
		{name: "load_skill of 15 KB, first time", method: "tools/call",
			params:  tool(toolname.LoadSkill, func(i int) args { return args{"name": skill(i).Name} }),
			minimum: func(i int) error { return hashFile(md(i)) }},
		{name: "load_skill of 15 KB, again", method: "tools/call",
			params:  tool(toolname.LoadSkill, func(i int) args { return args{"name": skill(i).Name} }),
			minimum: func(i int) error { return hashFile(md(i)) }},
		{name: "read_skill_file of 15 KB", method: "tools/call",
			params:  tool(toolname.ReadSkillFile, func(i int) args { return args{"skill": skill(i).Name, "path": "SKILL.md"} }),
			minimum: func(i int) error { return hashFile(md(i)) }},
		{name: "search_skills, 5 words, 10 hits", method: "tools/call",
			params: tool(toolname.SearchSkills, func(i int) args { return args{"query": query(i)} })},
		{name: "tools/list", method: "tools/list", params: func(int) any { return args{} }},
	}
}
