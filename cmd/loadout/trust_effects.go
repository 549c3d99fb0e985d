package main

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/profile"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

// trustView works out what would count of a project's configuration.
type trustView struct {
	*app
	p    *project
	out  *trustOutput
	with *config.Config // what would be in force
	// taken says whose a server of a name is already; tools go by that.
	taken map[string]string
}

// effects works out what of a project's configuration would count. Where the
// person's own is at fault, that is not known: no command works then.
func (a *app) effects(p *project, out *trustOutput) {
	in := a.configInput()
	in.WorkDir, in.Flags = p.dir, nil
	file, root := config.ProjectFile(p.dir)
	in.Trusted = func(string, []byte) bool { return false }
	without, err := config.Load(in)
	if err != nil {
		return
	}
	in.Trusted = func(f string, data []byte) bool { return f == file && a.coversFile(p, f, data) }
	with, err := config.Load(in)
	if err != nil {
		return
	}
	v := &trustView{app: a, p: p, out: out, with: with, taken: a.takenNames(with)}
	before := map[string]string{}
	for _, v := range without.Values() {
		before[v.Key] = v.Text()
	}
	for _, v := range with.Values() {
		if before[v.Key] != v.Text() {
			out.Effects = append(out.Effects, v.Key+": "+v.Text())
		}
	}
	v.rules("policy.rules", slices.DeleteFunc(slices.Clone(with.Policy.Rules), func(r string) bool { return slices.Contains(without.Policy.Rules, r) }))
	for _, f := range with.Servers.Project {
		out.Effects = append(out.Effects, "servers in: "+f)
		v.servers(f)
	}
	out.Ignored = append(out.Ignored, with.Notes...)
	v.ghosts(root)
}

// takenNames are the names of the person's own servers.
func (a *app) takenNames(c *config.Config) map[string]string {
	mine := *c
	mine.Servers.Project = nil
	own, _, _ := a.servers(&mine, nil) // what is wrong with them is not about the project
	out := map[string]string{}
	for _, s := range own {
		out[s.Name] = "you have one of that name, in " + s.File
	}
	return out
}

func (v *trustView) ignored(where, format string, args ...any) {
	v.out.Ignored = append(v.out.Ignored, config.Note{Where: where, Message: fmt.Sprintf(format, args...)})
}

// rules notes what is wrong with rules that would be added.
func (v *trustView) rules(of string, texts []string) {
	for _, text := range texts {
		_, problems := policy.ParseRules([]string{text})
		for _, p := range problems {
			v.out.Problems = append(v.out.Problems, fmt.Sprintf("%s: %.100q: %s", of, text, p.Message))
		}
	}
	if _, problems := policy.ParseRules(v.with.Policy.Rules); len(problems) > 0 && len(v.out.Problems) == 0 && len(texts) > 0 {
		v.out.Problems = append(v.out.Problems, fmt.Sprintf("%s: %s", of, problems[len(problems)-1]))
	}
}

// servers lists the servers of a file, or the files of a directory, that the
// project's own names.
func (v *trustView) servers(name string) {
	files, err := serverFilesIn(name)
	if err != nil {
		v.ignored(name, "it cannot be read: %v", reason(err))
		return
	}
	for _, file := range files {
		data, err := readSmall(file, 1<<20)
		switch {
		case err != nil:
			v.ignored(file, "it cannot be read: %v", reason(err))
			continue
		case !v.coversFile(v.p, file, data):
			v.ignored(file, "its servers do not count, as it is not among the files that are trusted")
			continue
		}
		f, findings := upstream.Parse(data, upstream.ParseOptions{Name: file})
		v.out.ignore(file, findings)
		for _, s := range f.Servers {
			if v.counts("", file, s) {
				v.taken[s.Name] = file + " has one of that name"
			}
		}
	}
}

// counts says what a server of the project does, or that it is passed over.
func (v *trustView) counts(of, file string, s *upstream.Config) bool {
	if whose := v.taken[s.Name]; whose != "" {
		v.ignored(fmt.Sprintf("%s:%d", file, s.Line), "%sserver %s is passed over: %s", of, s.Name, whose)
		return false
	}
	if s.Disabled {
		v.out.Effects = append(v.out.Effects, of+"server "+s.Name+": disabled, and not used")
		return true
	}
	v.out.Effects = append(v.out.Effects, projectServer(of, s, scriptsOff(v.with))...)
	return true
}

// ghosts lists what the project's profiles have. They count at the root of a
// repository only.
func (v *trustView) ghosts(root string) {
	first := map[string]string{}
	own, _ := v.ownGhosts(func(string, ...any) {})
	for _, g := range own {
		first[g.Name] = "you have one of that name"
	}
	for _, f := range v.p.files {
		if path.Dir(f.Path) != projectGhosts {
			continue
		}
		if root != v.p.dir {
			v.ignored(f.Path, "profiles of a project count at the root of its repository only")
			continue
		}
		file := filepath.Join(v.p.dir, filepath.FromSlash(f.Path))
		data, err := readSmall(file, 1<<20)
		if err != nil || !v.coversFile(v.p, file, data) {
			continue // it is said where the file is shown
		}
		all, findings := profile.Parse(data, f.Path)
		v.out.ignore(f.Path, findings)
		for _, g := range all {
			if whose := first[g.Name]; whose != "" {
				v.ignored(fmt.Sprintf("%s:%d", f.Path, g.Line), "profile %s is passed over: %s", g.Name, whose)
				continue
			}
			first[g.Name] = f.Path + " has one of that name"
			v.ghost(f.Path, g)
		}
	}
}

// ghost lists what a profile of the project has.
func (v *trustView) ghost(file string, g *profile.Profile) {
	of := "profile " + g.Name + ": "
	add := func(text string) { v.out.Effects = append(v.out.Effects, of+text) }
	if len(g.Skills) > 0 {
		add("only the skills " + strings.Join(g.Skills, ", "))
	}
	if g.SystemPrompt != "" {
		add("its systemPrompt is what a model is told first")
	}
	if len(g.ServerNames) > 0 {
		add("of the other MCP servers only " + strings.Join(g.ServerNames, ", "))
	}
	var stated struct{ Rules []string }
	if g.Policy != nil && json.Unmarshal(g.Policy, &stated) != nil {
		v.out.Problems = append(v.out.Problems, of+"policy is not {rules: [...]}")
	}
	var denials []string
	for _, r := range stated.Rules {
		if denies(r) {
			denials = append(denials, r)
		} else {
			v.ignored(file, "%srule %.100q: a project's profile may only deny", of, r)
		}
	}
	if len(denials) > 0 {
		add(fmt.Sprintf("rules %q", denials))
	}
	v.rules("policy of profile "+g.Name, stated.Rules)
	for _, s := range g.MCPServers {
		v.counts(of, file, s)
	}
}

// denies reports whether a rule begins with the word deny.
func denies(rule string) bool {
	word := strings.FieldsFunc(strings.ToLower(rule), func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == ':' })
	return len(word) > 0 && word[0] == policy.Deny
}

// ignore notes what of a file is left out.
func (o *trustOutput) ignore(file string, findings []skill.Diagnostic) {
	for _, d := range findings {
		if d.Severity == skill.Error {
			o.Ignored = append(o.Ignored, config.Note{Where: fmt.Sprintf("%s:%d:%d", file, d.Line, d.Column), Message: d.Message})
		}
	}
}

// scriptsOff says which setting keeps commands of skills and projects from being
// started, "" where none does.
func scriptsOff(c *config.Config) string {
	if c.Sandbox.Enabled {
		return ""
	}
	for _, v := range c.Values() {
		if v.Key == "sandbox.enabled" {
			return "sandbox.enabled is false, by " + v.From
		}
	}
	return "sandbox.enabled is false"
}

// projectServer says what a server of a project reaches, and what it is told: of
// variables only those of the person and of places in the project. off is why no
// command is started, or "".
func projectServer(of string, c *upstream.Config, off string) []string {
	w := wishedOf(c)
	text := of + "server " + c.Name + ": "
	out := []string{text + strings.Join(w.Hosts, ", ")}
	if len(w.Command) > 0 {
		out = []string{text + commandText(w, off)}
	}
	for i, v := range w.Variables {
		w.Variables[i].Given = v.Kind == upstream.FromUser || v.Kind == upstream.FromPath && v.Name != "userHome"
	}
	for _, v := range variableTexts(w.Variables) {
		out = append(out, text+v)
	}
	return out
}

// commandText says how the command of a project's server is started.
func commandText(w loadout.WishedService, off string) string {
	line := strings.Join(w.Command, " ")
	switch w.Judge(); {
	case w.Refused != "":
		return "not started: " + line + " (" + w.Refused + ")"
	case off != "":
		return "not started: " + line + " (" + off + ")"
	case w.Fetches:
		return "installed, and started in the sandbox with the project to read and no network: " + line
	}
	return "started in the sandbox with the project to read and no network: " + line
}
