//go:build linux

// Command servedskills measures the skills of MCP servers: the list of 20 servers with 500
// entries each, compared with decoding the same JSON, and a verified read of a file of 15 KB
// from the cache, compared with the same file of a local skill:
//
//	go run ./servedskills
//
// The servers are in the process, so that the table has no cost of a connection. Times are CPU
// times of the process. The program fails if a server was asked for a file before a skill was
// loaded.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/upstream"
)

const (
	servers  = 20
	entries  = 500
	pageSize = 100
	reads    = 200 // in a round
)

func main() {
	rounds := flag.Int("rounds", 7, "number of rounds")
	measure.Main("servedskills", true, func() error { return run(*rounds) })
}

func run(rounds int) error {
	tmp, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	ctx := context.Background()
	var table measure.Table
	decode := table.Row(measure.Row{Name: "baseline: decode the JSON of the lists", Unit: "ms"})
	list := table.Row(measure.Row{Name: "list and check all skills", Unit: "ms", Baseline: decode})
	all := table.Row(measure.Row{Name: "the same, into a catalog, with the lists stored", Unit: "ms", Baseline: decode})
	restart := table.Row(measure.Row{Name: "catalog of a new process, from the stored lists", Unit: "ms", Baseline: decode})
	local := table.Row(measure.Row{Name: "baseline: read a file of 15 KB of a local skill", Unit: "µs"})
	memory := table.Row(measure.Row{Name: "verified read of the same from the cache in memory", Unit: "µs", Baseline: local})
	disk := table.Row(measure.Row{Name: "the same from the cache on disk", Unit: "µs", Baseline: local})
	published := make([]*publisher, servers)
	size := 0
	for i := range published {
		published[i] = newPublisher(entries, pageSize)
		for _, p := range published[i].pages {
			size += len(p)
		}
	}
	for round := range rounds {
		if err := measureLists(ctx, filepath.Join(tmp, fmt.Sprint("lists-", round)), published, decode, list, all, restart); err != nil {
			return err
		}
		if err := measureReads(ctx, filepath.Join(tmp, fmt.Sprint("reads-", round)), local, memory, disk); err != nil {
			return err
		}
	}
	sent := 0
	for _, p := range published {
		sent += p.sent
	}
	if sent > 0 {
		return fmt.Errorf("the servers were asked for %d files before a load, want 0", sent)
	}
	fmt.Println(measure.Environment())
	fmt.Printf("\n%d servers with %d entries of %d bytes each, page size %d, %d rounds, CPU time:\n\n", servers, entries, size/servers/entries, pageSize, rounds)
	table.Print(os.Stdout)
	return nil
}

// measureLists lists the skills of all servers in several ways.
func measureLists(ctx context.Context, dir string, published []*publisher, decode, list, all, restart *measure.Row) error {
	steps := []struct {
		row *measure.Row
		do  func() error
	}{
		{decode, func() error {
			for _, p := range published {
				for _, page := range p.pages {
					var v any
					if err := json.Unmarshal(page, &v); err != nil {
						return err
					}
				}
			}
			return nil
		}},
		{list, func() error {
			for _, p := range published {
				l, err := serverskill.List(ctx, p, upstream.SkillLimits{})
				if err != nil || len(l.Entries) != entries || l.Partial != "" {
					return fmt.Errorf("listed %+v, %w", l, err)
				}
			}
			return nil
		}},
		{all, func() error { return openCatalog(ctx, dir, published) }},
		{restart, func() error { return openCatalog(ctx, dir, published) }},
	}
	for _, s := range steps {
		took, err := measure.RunClean(s.do)
		if err != nil {
			return fmt.Errorf("%s: %w", s.row.Name, err)
		}
		s.row.AddTime(took.CPU)
	}
	return nil
}

func openCatalog(ctx context.Context, dir string, published []*publisher) error {
	var sources []catalog.Source
	for i, p := range published {
		sources = append(sources, p.source(fmt.Sprint("s", i), filepath.Join(dir, fmt.Sprint(i))))
	}
	c, err := catalog.New(sources, nil)
	if err == nil {
		err = c.Reload(ctx)
	}
	if err != nil {
		return err
	}
	if n := len(c.Snapshot().Skills()); n != servers*entries {
		return fmt.Errorf("%d skills in the catalog, want %d", n, servers*entries)
	}
	return nil
}

// measureReads reads a file of a local skill, and the same file of a server's skill from
// the cache. For each read from the cache on disk, the cache in memory is empty.
func measureReads(ctx context.Context, dir string, local, memory, disk *measure.Row) error {
	p := newPublisher(1, 1)
	own := filepath.Join(dir, "own", "skill-0")
	if err := os.MkdirAll(filepath.Join(own, "references"), 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{"SKILL.md": skillText(0), fileName: fileText} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	cache := filepath.Join(dir, "cache")
	src := p.source("docs", cache)
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{src, catalog.NewDir("own", catalog.User, filepath.Join(dir, "own"), nil)}})
	if err != nil {
		return err
	}
	defer rt.Close()
	read := func(ref string) error {
		e, err := rt.Catalog().Snapshot().Get(ref)
		if err != nil {
			return err
		}
		c, err := rt.ReadFile(ctx, e, fileName, 0, 0)
		if err == nil && c.Text != fileText {
			err = fmt.Errorf("read %d bytes of %s, want %d", len(c.Text), ref, len(fileText))
		}
		return err
	}
	many := func(ref string) error {
		for range reads {
			if err := read(ref); err != nil {
				return err
			}
		}
		return nil
	}
	if err := many("mcp.docs/skill-0"); err != nil { // fetches the file
		return err
	}
	if p.sent != 1 {
		return fmt.Errorf("the server sent %d files for %d reads, want 1", p.sent, reads)
	}
	for row, ref := range map[*measure.Row]string{local: "own/skill-0", memory: "mcp.docs/skill-0"} {
		took, err := measure.RunClean(func() error { return many(ref) })
		if err != nil {
			return err
		}
		row.AddTime(took.CPU / reads)
	}
	return measureDisk(ctx, p, cache, disk)
}

// measureDisk measures reads of sources that have read nothing before.
func measureDisk(ctx context.Context, p *publisher, cache string, disk *measure.Row) error {
	total := time.Duration(0)
	for range reads / 10 {
		rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{p.source("docs", cache)}})
		if err != nil {
			return err
		}
		e, err := rt.Catalog().Snapshot().Get("mcp.docs/skill-0")
		if err != nil {
			return err
		}
		took, err := measure.RunClean(func() error { _, err := rt.ReadFile(ctx, e, fileName, 0, 0); return err })
		if err != nil {
			return err
		}
		total += took.CPU
		rt.Close()
	}
	if p.sent != 1 {
		return fmt.Errorf("the server sent %d files, want 1", p.sent)
	}
	disk.AddTime(total / (reads / 10))
	return nil
}
