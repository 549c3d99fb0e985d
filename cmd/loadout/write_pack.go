package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/skillpath"
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
		Long: `Pack the skill in DIR into an archive with a single folder named after the skill. The
same files always produce the same archive. A skill that does not load is refused. The
archive is NAME.zip in the current directory, or next to DIR if you are inside DIR.`,
		Example: `  loadout pack my-skill                  writes my-skill.zip
  loadout pack my-skill -o my-skill.skill`,
		Args: argCount(1, 1, "the DIR of a skill"),
		RunE: func(_ *cobra.Command, args []string) error { return a.packSkill(args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the archive to `FILE`, or into a directory")
	return cmd
}

func (a *app) packSkill(dir, out string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return exit.Errorf(exit.NotFound, "change to another directory", "find the working directory: %w", fileerror.Cause(err))
	}
	const hint = "give the directory of a skill, which contains a SKILL.md"
	if skillpath.IsSkillFile(filepath.Base(abs)) {
		abs = filepath.Dir(abs)
	} else if fi, err := os.Stat(abs); err == nil && !fi.IsDir() {
		return exit.Errorf(exit.Usage, hint, "pack %s: not a directory", dir)
	}
	b, err := skill.OpenDir(abs)
	if err != nil {
		code, _ := exit.FileHint(err, "")
		return exit.Errorf(code, hint, "pack %s: %w", dir, fileerror.Cause(err))
	}
	defer b.Close()
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		code, _ := exit.FileHint(err, "")
		return exit.Errorf(code, hint, "pack %s: %w", dir, err)
	}
	for _, d := range ds.Problems() {
		a.Note("%s: %s", filepath.Join(abs, skill.FileName), d)
	}
	if s == nil || !ds.Loads() {
		return exit.Errorf(exit.Failure, "fix it first: loadout validate "+console.ShellQuote(dir), "pack %s: the skill does not load", dir)
	}
	if out, err = archivePath(out, abs, s.Name); err != nil {
		return err
	}
	defer a.ShowProgress("packing")()
	m, ds, err := writeArchive(out, b, s.Name)
	for _, d := range ds {
		a.Note("%s: %s", dir, d)
	}
	if err != nil {
		return err
	}
	fi, err := os.Stat(out)
	if err != nil {
		return err
	}
	p := packOutput{out, s.Name, m.Digest(), len(m), fi.Size()}
	if a.JSON {
		return a.PrintJSON(p)
	}
	fmt.Fprintf(a.Stdout, "%s: %s, %s\n%s\n", plain(p.Path), console.Pluralize(p.Files, "file"), console.FormatSize(p.Bytes), p.Digest)
	return nil
}

// archivePath returns the path of the archive to write. It must be outside the
// skill's directory, or the next archive would contain it.
func archivePath(out, dir, name string) (string, error) {
	if out == "" {
		if out = name + ".zip"; setup.IsInside(dir, ".") {
			out = filepath.Join(filepath.Dir(dir), out)
		}
	} else if fi, err := os.Stat(out); err == nil && fi.IsDir() {
		out = filepath.Join(out, name+".zip")
	}
	if setup.IsInside(dir, filepath.Dir(out)) {
		return "", exit.Errorf(exit.Usage, "write it elsewhere: -o "+console.ShellQuote(filepath.Join(filepath.Dir(dir), filepath.Base(out))), "output file %s is inside of the skill, and would become part of it", out)
	}
	return out, nil
}

// writeArchive writes a temporary archive, checks it, and renames it to out.
func writeArchive(out string, b *skill.Bundle, name string) (skill.Manifest, skill.Diagnostics, error) {
	f, err := os.CreateTemp(filepath.Dir(out), ".loadout-pack-*")
	if err != nil {
		return nil, nil, writeError(out, err)
	}
	defer os.Remove(f.Name()) // fails after the rename, which is fine
	m, ds, err := skill.WriteZIP(f, b.FS, name)
	if err == nil {
		err = checkArchive(f, name)
	}
	if cerr := f.Close(); err == nil && cerr != nil {
		err = cerr
	}
	switch {
	case isType[*skill.RefusedError](err):
		return nil, ds, exit.Errorf(exit.Failure, "remove large files from the skill; importers would refuse the archive", "pack %s: %w", name, err)
	case err != nil:
		return nil, ds, writeError(out, err)
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return nil, ds, writeError(out, err)
	}
	if err := os.Rename(f.Name(), out); err != nil {
		return nil, ds, writeError(out, err)
	}
	return m, ds, nil
}

func writeError(out string, err error) error {
	return exit.Errorf(exit.Failure, "choose another location with -o FILE", "write %s: %w", out, fileerror.Cause(err))
}

// checkArchive returns an error if importers would reject the archive.
func checkArchive(f *os.File, name string) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = skill.OpenZIP(f, fi.Size(), name, skill.Limits{})
	return err
}
