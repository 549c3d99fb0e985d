package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/skill"
)

type newOptions struct{ dir, description, from string }

func (a *app) newCommand() *cobra.Command {
	var o newOptions
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a new skill that validates",
		Long: `Make the directory NAME with a SKILL.md that is valid as it stands, to be
filled in. With --from it is made from a Python file that declares a skill as
SKILL_MANIFEST; the file is read as text and never run.`,
		Example: `  loadout new release-notes --description "Write release notes from merged changes. Use before a release."
  loadout new --from chrome_skill.py
  loadout validate release-notes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return a.new(name, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", ".", "make it in this `DIR`")
	f.StringVar(&o.description, "description", "", "what it does and when to use it")
	f.StringVar(&o.from, "from", "", "a Python `FILE` with SKILL_MANIFEST, or its directory")
	return cmd
}

func (a *app) new(name string, o newOptions) error {
	draft := skill.Draft{Name: name, Description: o.description}
	if o.from != "" {
		d, err := readManifest(o.from)
		if err != nil {
			return err
		}
		draft = *d
		if name != "" {
			draft.Name = name
		}
		if o.description != "" {
			draft.Description = o.description
		}
	}
	if draft.Name == "" {
		return fail(exitUsage, "as: loadout new release-notes", "give the skill a name")
	}
	if !skill.PortableName(draft.Name) {
		if o.from == "" || name != "" {
			return fail(exitUsage, "for example: loadout new "+skill.Slug(draft.Name), "%q is not a name of 1 to 64 lower-case letters, digits and single hyphens", draft.Name)
		}
		draft.Name = skill.Slug(draft.Name)
	}
	dir := filepath.Join(o.dir, draft.Name)
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return fail(exitFound, "choose another place with --dir", "make %s: %w", o.dir, reason(err))
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fail(exitFound, "choose another name, or remove it first", "%s is there already", dir)
		}
		return fail(exitFound, "choose another place with --dir", "make %s: %w", dir, reason(err))
	}
	file := filepath.Join(dir, skill.FileName)
	if err := os.WriteFile(file, draft.Render(), 0o644); err != nil {
		return fail(exitFound, "choose another place with --dir", "write %s: %w", file, reason(err))
	}
	if a.json {
		return a.printJSON(map[string]string{"name": draft.Name, "path": dir})
	}
	fmt.Fprintf(a.stdout, "Made %s\nEdit it, then check it: loadout validate %s\n", safe(file), safe(dir))
	return nil
}

// readManifest reads the declaration of a skill from a Python file, or from
// the files of a directory.
func readManifest(from string) (*skill.Draft, error) {
	fi, err := os.Stat(from)
	if err != nil {
		return nil, fail(exitNotFound, "check the path given with --from", "%s: %w", from, reason(err))
	}
	files := []string{from}
	if fi.IsDir() {
		if files, err = filepath.Glob(filepath.Join(escapeGlob(from), "*.py")); err != nil {
			return nil, err
		}
	}
	var last error
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, fail(exitFound, "check that you have the right to read it", "%s: %w", f, reason(err))
		}
		d, err := skill.DraftFromPython(b)
		if err == nil {
			return d, nil
		}
		last = fmt.Errorf("%s: %w", f, err)
	}
	if last == nil {
		last = fmt.Errorf("%s has no Python files", from)
	}
	return nil, fail(exitFound, "write the skill by hand: loadout new NAME", "%w", last)
}

func escapeGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}
