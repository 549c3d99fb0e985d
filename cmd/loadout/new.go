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
		Example: `  loadout new release-notes
  loadout new release-notes --description "Write release notes. Use before a release."
  loadout new --from chrome_skill.py
  loadout validate release-notes`,
		Args: want(0, 1, "one NAME"),
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
		if cut, ok := cutDescription(d.Description); ok && o.description == "" {
			a.note("%s: the description has more than %d characters; the rest is left out", o.from, maxDescription)
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
		return fail(exitUsage, "as: loadout new release-notes", "new needs the NAME of the skill")
	}
	if !skill.PortableName(draft.Name) {
		if o.from == "" || name != "" {
			return fail(exitUsage, "for example: loadout new "+skill.Slug(draft.Name), "%q is not a name of 1 to 64 lower-case letters, digits and single hyphens", draft.Name)
		}
		draft.Name = skill.Slug(draft.Name)
	}
	text, err := a.render(draft, o)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.dir, draft.Name)
	if err := makeSkill(o.dir, dir, text); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"name": draft.Name, "path": dir})
	}
	fmt.Fprintf(a.stdout, "Made %s\nEdit it, then check it: loadout validate %s\n", plain(filepath.Join(dir, skill.FileName)), quoted(dir))
	return nil
}

// render is the new SKILL.md, once it is known to be valid.
func (a *app) render(draft skill.Draft, o newOptions) ([]byte, error) {
	text := draft.Render()
	_, ds, _ := skill.ParseHead(text, true, skill.FileName, draft.Name)
	if ds.Valid() {
		return text, nil
	}
	for _, d := range ds {
		if d.Rule > 0 && o.description != "" {
			return nil, fail(exitUsage, d.Fix, "--description: %s", d.Message)
		}
		if d.Rule > 0 {
			a.note("%s: %s (%s)", o.from, d.Message, d.Fix)
		}
	}
	return text, nil
}

// maxDescription is how many characters a description may have.
const maxDescription = 1024

// cutDescription shortens a description that is too long at the end of a word.
func cutDescription(s string) (string, bool) {
	r := []rune(s)
	if len(r) <= maxDescription {
		return s, false
	}
	s = string(r[:maxDescription-1])
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		s = s[:i]
	}
	return s + "…", true
}

// makeSkill makes the directory of a skill, or leaves nothing behind.
func makeSkill(parent, dir string, text []byte) error {
	const hint = "choose another place with --dir"
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fail(exitFound, hint, "make %s: %w", parent, reason(err))
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fail(exitFound, "choose another name, or remove it first", "%s is there already", dir)
		}
		return fail(exitFound, hint, "make %s: %w", dir, reason(err))
	}
	file := filepath.Join(dir, skill.FileName)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		os.Remove(file)
		os.Remove(dir)
		return fail(exitFound, hint, "write %s: %w", file, reason(err))
	}
	return nil
}

// readManifest reads the declaration of a skill from a Python file, or from
// the files of a directory.
func readManifest(from string) (*skill.Draft, error) {
	fi, err := os.Stat(from)
	if err != nil {
		code, hint := missing(err, "the path given with --from")
		return nil, fail(code, hint, "%s: %w", from, reason(err))
	}
	files := []string{from}
	if fi.IsDir() {
		if files, err = filepath.Glob(filepath.Join(escapeGlob(from), "*.py")); err != nil {
			return nil, err
		}
	}
	var wrong error
	for _, f := range files {
		b, err := readSmall(f, 1<<20)
		if err == nil {
			var d *skill.Draft
			if d, err = skill.DraftFromPython(b); err == nil {
				return d, nil
			}
		}
		if wrong == nil || errors.Is(wrong, skill.ErrNoManifest) {
			wrong = fmt.Errorf("%s: %w", f, err)
		}
	}
	switch {
	case wrong == nil:
		wrong = fmt.Errorf("%s has no Python files", from)
	case fi.IsDir() && errors.Is(wrong, skill.ErrNoManifest):
		wrong = fmt.Errorf("none of the Python files in %s has SKILL_MANIFEST = … at the top level", from)
	}
	return nil, fail(exitFound, "write the skill by hand: loadout new NAME", "%w", wrong)
}

func escapeGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}
