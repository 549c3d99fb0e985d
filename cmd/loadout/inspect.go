package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
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
		Short: "Look into a skill archive without unpacking it",
		Long: `Check an archive as a hub would on upload: its size, entries and paths, and
the skill in it. Nothing is unpacked or run. Exits with 1 if it is refused.`,
		Example: `  loadout inspect pdf.zip
  loadout inspect download.zip --any-folder --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			out, err := inspect(args[0], anyFolder)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(out)
			} else {
				a.printInspected(args[0], out)
			}
			if err == nil && !out.OK {
				return errFound
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&anyFolder, "any-folder", false, "accept a folder whose name is not the archive's")
	return cmd
}

func inspect(file string, anyFolder bool) (*inspectOutput, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fail(exitNotFound, "check the path", "%s: %w", file, reason(err))
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.IsDir() {
		return nil, fail(exitUsage, "to check a directory: loadout validate "+file, "%s is a directory", file)
	}
	out := &inspectOutput{Problems: []skill.Refusal{}}
	b, err := skill.OpenZIP(f, fi.Size(), file, skill.Limits{AnyFolder: anyFolder})
	if refusals, ok := skill.IsRefused(err); ok {
		out.Problems = refusals
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		return nil, err
	}
	for _, d := range ds {
		if d.Severity == skill.Error {
			out.Problems = append(out.Problems, skill.Refusal{Entry: skill.FileName, Code: d.Code, Message: d.Message})
		}
	}
	if s == nil || !ds.Loads() {
		return out, nil
	}
	m, _, err := skill.ReadManifest(b.FS)
	if err != nil {
		out.Problems = append(out.Problems, skill.Refusal{Code: "damaged", Message: err.Error()})
		return out, nil
	}
	shown := shown(&catalog.Entry{Origin: "archive", Scope: catalog.Project, Path: file}, s, m)
	out.OK, out.Skill = true, &shown
	return out, nil
}

func (a *app) printInspected(file string, out *inspectOutput) {
	if !out.OK {
		fmt.Fprintf(a.stdout, "%s is refused:\n", safe(file))
		for _, p := range out.Problems {
			fmt.Fprintf(a.stdout, "  %s [%s]\n", safe(p.String()), p.Code)
		}
		return
	}
	s := out.Skill
	fmt.Fprintf(a.stdout, "%s holds %s: %s\n%s\n", safe(file), a.bold(safe(s.Name)), clip(s.Description, 200), s.Digest)
	for _, f := range s.Files {
		kind := ""
		if f.Script {
			kind = "  script"
		}
		fmt.Fprintf(a.stdout, "  %s %s\n", safe(f.Path), a.faint(fmt.Sprintf("%d bytes%s", f.Size, kind)))
	}
}
