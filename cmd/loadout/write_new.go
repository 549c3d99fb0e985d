package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/pythonskill"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
)

type newOptions struct{ dir, description, from string }

func (a *app) newCommand() *cobra.Command {
	var o newOptions
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a new skill",
		Long: `Create the directory NAME with a valid SKILL.md to fill in. With --from, convert a
Python file that declares the skill in SKILL_MANIFEST. The file is parsed as text and
never run.`,
		Example: `  loadout new release-notes
  loadout new release-notes --description "Write release notes. Use before a release."
  loadout new --from chrome_skill.py
  loadout validate release-notes`,
		Args: argCount(0, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return a.createSkill(cmd.Context(), name, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", ".", "create the skill in `DIR`")
	f.StringVar(&o.description, "description", "", "`TEXT` that says what the skill does and when to use it")
	f.StringVar(&o.from, "from", "", "convert the Python `FILE`, or the one in a directory")
	return cmd
}

func (a *app) createSkill(ctx context.Context, name string, o newOptions) error {
	draft := skill.Draft{Name: name, Description: o.description}
	if o.from != "" {
		d, err := readManifest(o.from)
		if err != nil {
			return err
		}
		draft = *d
		if cut, ok := pythonskill.TruncateDescription(d.Description); ok && o.description == "" {
			a.Note("%s: description truncated to %d characters", o.from, pythonskill.MaxDescription)
			draft.Description = cut
		}
		if name != "" {
			draft.Name = name
		}
		if o.description != "" {
			draft.Description = o.description
		}
	}
	if name == "" && o.from == "" {
		return exit.Errorf(exit.Usage, "loadout new release-notes", "no name given")
	}
	switch normal := skillname.Normalize(draft.Name); {
	case skillname.IsValid(normal):
		draft.Name = normal
	case o.from == "" || name != "":
		return exit.Errorf(exit.Usage, "for example: loadout new "+skillname.Slug(draft.Name), "invalid skill name %q: want 1 to 64 lower-case letters, digits and single hyphens", draft.Name)
	default:
		draft.Name = skillname.Slug(draft.Name)
	}
	if !skillname.IsPortable(draft.Name) {
		a.Note("%s: many programs accept only a-z, 0-9 and - in names", draft.Name)
	}
	text, err := a.renderDraft(draft, o)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.dir, draft.Name)
	if err := writeSkillDir(o.dir, dir, text); err != nil {
		return err
	}
	if in, err := filepath.Abs(o.dir); err == nil && a.Caller().IsUser() { // a skill that an agent creates is pending
		a.RecordListed(ctx, in, []string{draft.Name})
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"name": draft.Name, "path": dir})
	}
	fmt.Fprintf(a.Stdout, "Created %s\nEdit it, then check it: loadout validate %s\n", plain(filepath.Join(dir, skill.FileName)), console.ShellQuote(dir))
	return nil
}

// renderDraft returns the new SKILL.md, and prints problems that would make it
// invalid.
func (a *app) renderDraft(draft skill.Draft, o newOptions) ([]byte, error) {
	text := draft.Render()
	_, ds, _ := skill.ParseHead(text, true, skill.FileName, draft.Name)
	if ds.Valid() {
		return text, nil
	}
	for _, d := range ds {
		if d.Rule > 0 && o.description != "" {
			return nil, exit.Errorf(exit.Usage, d.Fix, "--description: %s", d.Message)
		}
		if d.Rule > 0 {
			a.Note("%s: %s (%s)", o.from, d.Message, d.Fix)
		}
	}
	return text, nil
}

// writeSkillDir creates a skill's directory. On failure it removes what it
// created.
func writeSkillDir(parent, dir string, text []byte) error {
	const hint = "choose another directory with --dir"
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return exit.Errorf(exit.Failure, hint, "create %s: %w", parent, fileerror.Cause(err))
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return exit.Errorf(exit.Failure, "choose another name, or remove it first", "%s already exists", dir)
		}
		return exit.Errorf(exit.Failure, hint, "create %s: %w", dir, fileerror.Cause(err))
	}
	file := filepath.Join(dir, skill.FileName)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		os.Remove(file)
		os.Remove(dir)
		return exit.Errorf(exit.Failure, hint, "write %s: %w", file, fileerror.Cause(err))
	}
	return nil
}

// readManifest reads the skill declaration from a Python file, or from a
// directory with one.
func readManifest(from string) (*skill.Draft, error) {
	fi, err := os.Stat(from)
	if err != nil {
		code, hint := exit.FileHint(err, "the path given with --from")
		return nil, exit.Errorf(code, hint, "%s: %w", from, fileerror.Cause(err))
	}
	files := []string{from}
	if fi.IsDir() {
		if files, err = filepath.Glob(filepath.Join(escapeGlob(from), "*.py")); err != nil {
			return nil, err
		}
	}
	var wrong error
	for _, f := range files {
		b, err := configfile.ReadFile(f, 1<<20)
		if err == nil {
			var d *skill.Draft
			if d, err = pythonskill.ReadDraft(b); err == nil {
				return d, nil
			}
		}
		if wrong == nil || errors.Is(wrong, pythonskill.ErrNoManifest) {
			wrong = fmt.Errorf("%s: %w", f, err)
		}
	}
	switch {
	case wrong == nil:
		wrong = fmt.Errorf("no Python files in %s", from)
	case fi.IsDir() && errors.Is(wrong, pythonskill.ErrNoManifest):
		wrong = fmt.Errorf("no Python file in %s defines SKILL_MANIFEST at the top level", from)
	}
	return nil, exit.Errorf(exit.Failure, "create the skill by hand: loadout new NAME", "%w", wrong)
}

func escapeGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}
