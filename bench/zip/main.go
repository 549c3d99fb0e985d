//go:build linux

// Command zip measures the validation of an untrusted skill archive: checking the names and
// sizes of all entries, and parsing SKILL.md. It compares the time with the minimum that any
// host must do. It first packs each skill into an archive:
//
//	go run ./zip -skills DIR [-skills DIR]…
//
// Times are CPU times per package, averaged over all packages of a round.
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

func main() {
	dirs := measure.ListFlag("skills", "`directory` with skills to pack (repeatable)")
	rounds := flag.Int("rounds", 15, "number of rounds")
	measure.Main("zip", true, func() error {
		if len(*dirs) == 0 {
			return errors.New("missing -skills")
		}
		return run(context.Background(), *dirs, *rounds)
	})
}

func run(ctx context.Context, dirs []string, rounds int) error {
	tmp, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	files, size, err := packAll(ctx, dirs, tmp)
	if err != nil {
		return err
	}
	packages, refused := splitByCheck(files)
	if len(packages) == 0 {
		return fmt.Errorf("no valid skills found below %s", strings.Join(dirs, ", "))
	}
	var t measure.Table
	baseline := t.Row(measure.Row{Name: "baseline: archive/zip, names, inflate SKILL.md, sha256 of the package", Unit: "ms"})
	check := t.Row(measure.Row{Name: "check: OpenZIP and parse SKILL.md", Unit: "ms", Baseline: baseline})
	whole := t.Row(measure.Row{Name: "the same, inflate and hash every file", Unit: "ms", Baseline: baseline})
	for range rounds {
		for _, step := range []struct {
			row *measure.Row
			do  func(string) error
		}{{baseline, readMinimum}, {check, checkPackage}, {whole, hashFiles}} {
			took, err := measure.RunClean(func() error { return forEach(packages, step.do) })
			if err != nil {
				return fmt.Errorf("%s: %w", step.row.Name, err)
			}
			step.row.AddTime(took.CPU / time.Duration(len(packages)))
		}
	}
	fmt.Println(measure.Environment())
	fmt.Printf("\n%d packages of %.0f KB on average, %d more refused; %d rounds, CPU time a package:\n\n",
		len(packages), float64(size)/float64(len(files))/1e3, len(refused), rounds)
	t.Print(os.Stdout)
	fmt.Println()
	for _, r := range refused {
		fmt.Println("- refused:", r)
	}
	return nil
}

// packAll packs every skill under the directories. It returns the archives and their total
// size.
func packAll(ctx context.Context, dirs []string, into string) (files []string, size int64, err error) {
	var sources []catalog.Source
	for i, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, 0, err
		}
		sources = append(sources, catalog.NewDir(strconv.Itoa(i), catalog.User, dir, nil))
	}
	c, err := catalog.New(sources, nil)
	if err != nil {
		return nil, 0, err
	}
	if err := c.Reload(ctx); err != nil {
		return nil, 0, err
	}
	for e := range c.Snapshot().All() {
		b, err := c.Open(ctx, e)
		if err != nil {
			return nil, 0, err
		}
		var buf bytes.Buffer
		_, _, err = skill.WriteZIP(&buf, b.FS, b.Folder)
		b.Close()
		if errors.Is(err, skill.ErrTooLarge) {
			continue
		}
		dir := filepath.Join(into, strconv.Itoa(len(files))) // skill names may repeat
		file := filepath.Join(dir, b.Folder+".zip")
		if err := errors.Join(err, os.Mkdir(dir, 0o700), os.WriteFile(file, buf.Bytes(), 0o600)); err != nil {
			return nil, 0, err
		}
		files, size = append(files, file), size+int64(buf.Len())
	}
	return files, size, nil
}

// splitByCheck separates the packages that the default limits reject from the others.
func splitByCheck(files []string) (ok, refused []string) {
	for _, f := range files {
		if err := checkPackage(f); err != nil {
			refused = append(refused, filepath.Base(f)+": "+err.Error())
			continue
		}
		ok = append(ok, f)
	}
	return ok, refused
}

func forEach(files []string, do func(string) error) error {
	for _, f := range files {
		if err := do(f); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(f), err)
		}
	}
	return nil
}

// readMinimum reads an archive as fast as the standard library can, without checking the skills.
func readMinimum(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sha256.Sum256(data)
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/"+skill.FileName) || strings.Count(f.Name, "/") > 1 {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		return errors.Join(err, r.Close())
	}
	return errors.New("missing SKILL.md")
}

func checkPackage(file string) error {
	return withBundle(file, func(*skill.Bundle) error { return nil })
}

func hashFiles(file string) error {
	return withBundle(file, func(b *skill.Bundle) error {
		_, _, err := skill.ReadManifest(b.FS)
		return err
	})
}

// withBundle checks a package as `loadout inspect` does and calls fn with its
// files.
func withBundle(file string, fn func(*skill.Bundle) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	b, err := skill.OpenZIP(f, fi.Size(), filepath.Base(file), skill.Limits{})
	if err != nil {
		return err
	}
	defer b.Close()
	if _, _, err := skill.Parse(b.FS, b.Folder); err != nil {
		return err
	}
	return fn(b)
}
