package main

import (
	"errors"
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
same files give the same bytes. A skill that does not load is not packed.`,
		Example: `  loadout pack my-skill                  writes my-skill.zip
  loadout pack my-skill -o my-skill.skill`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.pack(args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the `FILE` to write; default NAME.zip")
	return cmd
}

func (a *app) pack(dir, out string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	b, err := skill.OpenDir(abs)
	if err != nil {
		return fail(exitNotFound, "give the directory of a skill", "pack %s: %w", dir, reason(err))
	}
	defer b.Close()
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		return fail(exitNotFound, "give the directory of a skill, which has a SKILL.md", "pack %s: %w", dir, err)
	}
	for _, d := range ds.Noteworthy() {
		a.note("%s: %s", filepath.Join(dir, skill.FileName), d)
	}
	if s == nil || !ds.Loads() {
		return fail(exitFound, "mend it first: loadout validate "+dir, "pack %s: the skill does not load", dir)
	}
	if out == "" {
		out = s.Name + ".zip"
	}
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
	fmt.Fprintf(a.stdout, "%s: %d files, %d bytes\n%s\n", safe(p.Path), p.Files, p.Bytes, p.Digest)
	return nil
}

// writeArchive writes the archive beside its place, checks that it would be
// accepted, and moves it there.
func writeArchive(out string, b *skill.Bundle, name string) (skill.Manifest, skill.Diagnostics, error) {
	f, err := os.CreateTemp(filepath.Dir(out), ".loadout-pack-*")
	if err != nil {
		return nil, nil, fail(exitFound, "choose another place with -o FILE", "write %s: %w", out, reason(err))
	}
	defer os.Remove(f.Name()) // gone after the rename
	m, ds, err := skill.WriteZIP(f, b.FS, name)
	if err == nil {
		err = acceptable(f, name)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, ds, err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return nil, ds, err
	}
	return m, ds, os.Rename(f.Name(), out)
}

// acceptable warns an author of what importers would refuse.
func acceptable(f *os.File, name string) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = skill.OpenZIP(f, fi.Size(), name, skill.Limits{})
	return err
}
