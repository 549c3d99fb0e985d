package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/skill"
)

type packOutput struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

func (a *app) packCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "pack DIR",
		Short: "Pack a skill into an archive",
		Long: `Pack the skill in DIR into an archive with the single folder of its name. The
same files give the same bytes. A skill that does not load is not packed. The
archive is NAME.zip in the working directory, or beside DIR where you are inside.`,
		Example: `  loadout pack my-skill                  writes my-skill.zip
  loadout pack my-skill -o my-skill.skill`,
		Args: want(1, 1, "the DIR of a skill"),
		RunE: func(_ *cobra.Command, args []string) error { return a.pack(args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the `FILE` to write, or the directory to write it in")
	return cmd
}

func (a *app) pack(dir, out string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fail(exitNotFound, "go to another directory", "find the working directory: %w", reason(err))
	}
	const hint = "give the directory of a skill, which has a SKILL.md"
	if skill.IsFileName(filepath.Base(abs)) {
		abs = filepath.Dir(abs)
	} else if fi, err := os.Stat(abs); err == nil && !fi.IsDir() {
		return fail(exitUsage, hint, "pack %s: it is not a directory", dir)
	}
	b, err := skill.OpenDir(abs)
	if err != nil {
		code, _ := missing(err, "")
		return fail(code, hint, "pack %s: %w", dir, reason(err))
	}
	defer b.Close()
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		code, _ := missing(err, "")
		return fail(code, hint, "pack %s: %w", dir, err)
	}
	for _, d := range ds.Noteworthy() {
		a.note("%s: %s", filepath.Join(abs, skill.FileName), d)
	}
	if s == nil || !ds.Loads() {
		return fail(exitFound, "mend it first: loadout validate "+quoted(dir), "pack %s: the skill does not load", dir)
	}
	if out, err = archivePath(out, abs, s.Name); err != nil {
		return err
	}
	defer a.progress("packing")()
	m, ds, err := writeArchive(out, b, s.Name)
	for _, d := range ds {
		a.note("%s: %s", dir, d)
	}
	if err != nil {
		return err
	}
	fi, err := os.Stat(out)
	if err != nil {
		return err
	}
	p := packOutput{out, s.Name, m.Digest(), len(m), fi.Size()}
	if a.json {
		return a.printJSON(p)
	}
	fmt.Fprintf(a.stdout, "%s: %s, %s\n%s\n", plain(p.Path), counted(p.Files, "file"), sized(p.Bytes), p.Digest)
	return nil
}

// archivePath is the file to write. It must not lie in the skill, whose next
// archive would hold it.
func archivePath(out, dir, name string) (string, error) {
	if out == "" {
		if out = name + ".zip"; within(dir, ".") {
			out = filepath.Join(filepath.Dir(dir), out)
		}
	} else if fi, err := os.Stat(out); err == nil && fi.IsDir() {
		out = filepath.Join(out, name+".zip")
	}
	if within(dir, filepath.Dir(out)) {
		return "", fail(exitUsage, "write it elsewhere: -o "+quoted(filepath.Join(filepath.Dir(dir), filepath.Base(out))), "%s is inside of the skill, and would become a part of it", out)
	}
	return out, nil
}

// within reports whether path is dir or below it, links resolved.
func within(dir, path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(dir, abs)
	return err == nil && filepath.IsLocal(rel)
}

// writeArchive writes the archive beside its place, checks that it would be
// accepted, and moves it there.
func writeArchive(out string, b *skill.Bundle, name string) (skill.Manifest, skill.Diagnostics, error) {
	f, err := os.CreateTemp(filepath.Dir(out), ".loadout-pack-*")
	if err != nil {
		return nil, nil, unwritable(out, err)
	}
	defer os.Remove(f.Name()) // gone after the rename
	m, ds, err := skill.WriteZIP(f, b.FS, name)
	if err == nil {
		err = acceptable(f, name)
	}
	if cerr := f.Close(); err == nil && cerr != nil {
		err = cerr
	}
	switch {
	case isType[*skill.RefusedError](err):
		return nil, ds, fail(exitFound, "leave large files out of the skill; others would refuse it as it is", "pack %s: %w", name, err)
	case err != nil:
		return nil, ds, unwritable(out, err)
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return nil, ds, unwritable(out, err)
	}
	if err := os.Rename(f.Name(), out); err != nil {
		return nil, ds, unwritable(out, err)
	}
	return m, ds, nil
}

func unwritable(out string, err error) error {
	return fail(exitFound, "choose another place with -o FILE", "write %s: %w", out, reason(err))
}

// acceptable refuses an archive that importers would refuse.
func acceptable(f *os.File, name string) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = skill.OpenZIP(f, fi.Size(), name, skill.Limits{})
	return err
}
