//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
)

// bench holds the measurements for one directory.
type bench struct {
	dir, tmp string
	names    []string // of the skill directories
	skills   int
	text     int // total size of names and descriptions in bytes

	peers []*peer
	table measure.Table
	read, parse, stat, scan, saved, restart, rescan,
	full, bounded, body, load, first *measure.Row
}

func newBench(dir string) (*bench, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, skills: len(entries)}
	for _, e := range entries {
		b.names = append(b.names, e.Name())
	}
	if b.tmp, err = os.MkdirTemp("", "loadout-bench-*"); err != nil {
		return nil, err
	}
	b.addRows()
	return b, nil
}

func (b *bench) close() (err error) {
	for _, p := range b.peers {
		err = errors.Join(err, p.close())
	}
	return errors.Join(err, os.RemoveAll(b.tmp))
}

// addRows fills the table.
func (b *bench) addRows() {
	row := func(r measure.Row) *measure.Row {
		if r.Unit == "" {
			r.Unit = "ms"
		}
		return b.table.Row(r)
	}
	b.read = row(measure.Row{Name: "baseline: open, read 4 KiB, close each SKILL.md"})
	b.parse = row(measure.Row{Name: "baseline: the same, and find name and description"})
	b.stat = row(measure.Row{Name: "baseline: stat each SKILL.md"})
	b.scan = row(measure.Row{Name: "first scan", Baseline: b.parse})
	b.saved = row(measure.Row{Name: "first scan and saving the index", Baseline: b.parse})
	b.restart = row(measure.Row{Name: "restart from the saved index", Baseline: b.stat})
	b.rescan = row(measure.Row{Name: "scan again after one change", Baseline: b.stat})
	b.full = row(measure.Row{Name: "catalog text of everything"})
	b.bounded = row(measure.Row{Name: "catalog text in 2,000 characters"})
	b.body = row(measure.Row{Name: "baseline: read a SKILL.md of about 15 KB", Unit: "µs"})
	b.load = row(measure.Row{Name: "activation of it, with known token count", Unit: "µs", Baseline: b.body})
	b.first = row(measure.Row{Name: "activation of it for the first time", Unit: "µs", Baseline: b.body})
}

func (b *bench) runRound(ctx context.Context) error {
	index := filepath.Join(b.tmp, "index")
	if err := os.RemoveAll(index); err != nil {
		return err
	}
	var c *catalog.Catalog
	steps := []struct {
		row *measure.Row
		do  func() error
	}{
		{b.read, b.readHeads},
		{b.parse, func() error { _, err := b.parseAll(); return err }},
		{b.stat, b.statAll},
		{b.scan, func() error { _, err := b.openCatalog(ctx, ""); return err }},
		{b.saved, func() error { _, err := b.openCatalog(ctx, index); return err }},
		{b.restart, func() (err error) { c, err = b.openCatalog(ctx, index); return err }},
	}
	for _, s := range steps {
		took, err := measure.RunClean(s.do)
		if err != nil {
			return fmt.Errorf("%s: %w", s.row.Name, err)
		}
		s.row.AddTime(took.CPU)
	}
	for _, p := range b.peers {
		if err := p.measureScan(b.skills); err != nil {
			return err
		}
	}
	if n := len(c.Snapshot().Skills()); n != b.skills {
		return fmt.Errorf("wrong number of skills in %s: want %d, got %d", b.dir, b.skills, n)
	}
	if err := b.measureRescan(ctx, c); err != nil {
		return err
	}
	if err := b.measureTexts(c.Snapshot().ForModel()); err != nil {
		return err
	}
	return b.measureActivation(ctx, c)
}

func (b *bench) openCatalog(ctx context.Context, index string) (*catalog.Catalog, error) {
	c, err := catalog.New([]catalog.Source{catalog.NewDir("bench", catalog.User, b.dir, &catalog.DirOptions{IndexFile: index})}, nil)
	if err != nil {
		return nil, err
	}
	return c, c.Reload(ctx)
}

// measureRescan edits one skill, rescans the catalog and restores the skill.
func (b *bench) measureRescan(ctx context.Context, c *catalog.Catalog) (err error) {
	file := filepath.Join(b.dir, b.names[len(b.names)/2], "SKILL.md")
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	defer func() {
		if restored := os.WriteFile(file, old, 0o644); err == nil {
			err = restored
		}
	}()
	if err := os.WriteFile(file, append(slices.Clone(old), '\n'), 0o644); err != nil {
		return err
	}
	took, err := measure.RunClean(func() error { return c.Reload(ctx) })
	b.rescan.AddTime(took.CPU)
	return err
}

func (b *bench) measureTexts(all []*catalog.Entry) error {
	b.text = 0
	for _, e := range all {
		b.text += len(e.Name) + len(e.Description)
	}
	for _, t := range []struct {
		row  *measure.Row
		opts catalog.FormatOptions
	}{{b.full, catalog.FormatOptions{}}, {b.bounded, catalog.FormatOptions{Characters: 2000}}} {
		took, err := measure.RunClean(func() error { catalog.Format(all, t.opts); return nil })
		if err != nil {
			return err
		}
		t.row.AddTime(took.CPU)
	}
	return nil
}

// measureActivation loads a different skill of about 15 KB each time. As a baseline, it reads the
// same files with plain system calls.
func (b *bench) measureActivation(ctx context.Context, c *catalog.Catalog) error {
	rt, err := loadout.New(ctx, &loadout.Options{Sources: c.Sources()})
	if err != nil {
		return err
	}
	defer rt.Close()
	var chosen []*catalog.Entry
	for _, e := range c.Snapshot().Skills() {
		if fi, err := os.Stat(e.Path + "/SKILL.md"); err == nil && fi.Size() > 13_000 && fi.Size() < 17_000 && len(chosen) < 400 {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no SKILL.md of 13,000 to 17,000 bytes found in %s", b.dir)
	}
	fetch := func(e *catalog.Entry) error { _, err := rt.Fetch(ctx, e.Name); return err }
	buf := make([]byte, 64<<10)
	read := func(e *catalog.Entry) error { return readWhole(e.Path+"/SKILL.md", buf) }
	for _, step := range []struct {
		row *measure.Row
		do  func(*catalog.Entry) error
	}{{nil, read}, {b.body, read}, {b.first, fetch}, {b.load, fetch}} {
		took, err := measure.RunClean(func() error {
			for _, e := range chosen {
				if err := step.do(e); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if step.row != nil {
			step.row.AddTime(took.CPU / time.Duration(len(chosen)))
		}
	}
	for _, p := range b.peers {
		if err := p.measureLoads(chosen); err != nil {
			return err
		}
	}
	return nil
}
