package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/skill"
)

type inspectOutput struct {
	OK       bool            `json:"ok"`
	Skill    *shownSkill     `json:"skill"`
	Problems []skill.Refusal `json:"problems"`
}

func (a *app) inspectCommand() *cobra.Command {
	var anyFolder bool
	cmd := &cobra.Command{
		Use:   "inspect ZIP",
		Short: "Inspect a skill archive without unpacking it",
		Long: `Check an archive as a hub does on upload: its size, entries and paths, and the skill in
it, which must load. Nothing is unpacked or run. Exits with status 1 if the archive is
refused.`,
		Example: `  loadout inspect pdf.zip
  loadout inspect download.zip --any-folder --json`,
		Args: argCount(1, 1, "the path of an archive"),
		RunE: func(_ *cobra.Command, args []string) error {
			out, err := inspectArchive(args[0], anyFolder)
			if err != nil {
				return err
			}
			if a.JSON {
				err = a.PrintJSON(out)
			} else {
				a.printInspected(args[0], out)
			}
			if err == nil && !out.OK {
				return exit.Reported
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&anyFolder, "any-folder", false, "accept a folder name that differs from the archive name")
	return cmd
}

func inspectArchive(file string, anyFolder bool) (*inspectOutput, error) {
	fi, err := os.Stat(file) // check first, because opening a named pipe would block
	switch {
	case err == nil && fi.IsDir():
		return nil, exit.Errorf(exit.Usage, "to check a directory: loadout validate "+console.ShellQuote(file), "%s is a directory", file)
	case err == nil && !fi.Mode().IsRegular():
		return nil, exit.Errorf(exit.Usage, "give the path of a .zip or .skill archive", "%s is not a regular file", file)
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(file)
	}
	if err != nil {
		code, hint := exit.FileHint(err, "the path")
		return nil, exit.Errorf(code, hint, "%s: %w", file, fileerror.Cause(err))
	}
	defer f.Close()
	archive, err := skillcheck.InspectArchive(f, fi.Size(), file, anyFolder)
	if err != nil {
		return nil, err
	}
	out := &inspectOutput{Problems: append([]skill.Refusal{}, archive.Problems...)}
	if archive.Skill != nil {
		shown := newShownSkill(&catalog.Entry{Origin: "archive", Scope: catalog.Project, Path: file}, archive.Skill, archive.Manifest)
		out.OK, out.Skill = true, &shown
	}
	return out, nil
}

func (a *app) printInspected(file string, out *inspectOutput) {
	var b strings.Builder
	if !out.OK {
		fmt.Fprintf(&b, "%s %s:\n", plain(file), a.Red("refused"))
		for _, p := range out.Problems {
			a.WriteWrapped(&b, "  ", fmt.Sprintf("%s [%s]", p.String(), p.Code), console.NoStyle)
		}
		fmt.Fprint(a.Stdout, b.String())
		return
	}
	s := out.Skill
	fmt.Fprintf(&b, "%s contains %s\n", plain(file), a.Bold(plain(s.Name)))
	a.WriteWrapped(&b, "  ", s.Description, console.NoStyle)
	fmt.Fprintf(&b, "%s\n%s, %s\n", s.Digest, console.Pluralize(len(s.Files), "file"), console.FormatSize(skill.Manifest(s.Files).Size()))
	a.writeFileList(&b, s.Files, len(s.Files))
	fmt.Fprint(a.Stdout, b.String())
}
