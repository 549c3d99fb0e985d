package trust

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/internal/requestedserver"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// ProfilesDir is the directory of a project's profiles.
const ProfilesDir = ".loadout/ghosts"

// maxFileBytes is the maximum size of a file that configures servers or
// profiles.
const maxFileBytes = 1 << 20

// Effects describes what changes while a project is trusted.
type Effects struct {
	Applied []string      // settings, servers and profiles, as text
	Ignored []config.Note // parts of the files that have no effect even in a trusted project
	// Problems are invalid rules. They would block all tool calls, so the
	// project cannot be trusted.
	Problems []string
}

// User holds the user's own configuration, which takes precedence over a
// project's.
type User struct {
	Config   config.Input
	Servers  func(*config.Config) map[string]string // returns the files of the user's servers, by server name
	Profiles []string                               // profile names
}

// Effects returns the effects of a project's configuration. If the user's own
// configuration is invalid, it returns none, because then no command works.
func (p *Project) Effects(user User) *Effects {
	out := &Effects{Applied: []string{}, Ignored: []config.Note{}, Problems: []string{}}
	in := user.Config
	in.WorkDir, in.Flags = p.Dir, nil
	file, root := config.ProjectFile(p.Dir)
	in.Trusted = func(string, []byte) bool { return false }
	without, err := config.Load(in)
	if err != nil {
		return out
	}
	in.Trusted = func(f string, data []byte) bool { return f == file && p.Covers(f, data) }
	with, err := config.Load(in)
	if err != nil {
		return out
	}
	v := &effectCollector{p: p, out: out, trusted: with, user: user, serverOwners: map[string]string{}}
	for name, from := range user.Servers(with) {
		v.serverOwners[name] = "you have a server of the same name, in " + from
	}
	v.compareSettings(without)
	for _, f := range with.Servers.Project {
		out.Applied = append(out.Applied, "servers in: "+f)
		v.addServers(f)
	}
	out.Ignored = append(out.Ignored, with.Notes...)
	v.addProfiles(root)
	return out
}

// effectCollector computes the effects of a project's configuration.
type effectCollector struct {
	p       *Project
	out     *Effects
	trusted *config.Config // configuration that applies if the project is trusted
	user    User
	// serverOwners maps server names to a description of the owner. Server
	// names must be unique, because they identify tools.
	serverOwners map[string]string
}

// compareSettings adds the settings that the project changes.
func (v *effectCollector) compareSettings(without *config.Config) {
	before := map[string]string{}
	for _, s := range without.Values() {
		before[s.Key] = s.Text()
	}
	for _, s := range v.trusted.Values() {
		if before[s.Key] != s.Text() {
			v.out.Applied = append(v.out.Applied, s.Key+": "+s.Text())
		}
	}
	v.checkRules("policy.rules", slices.DeleteFunc(slices.Clone(v.trusted.Policy.Rules), func(r string) bool { return slices.Contains(without.Policy.Rules, r) }))
}

func (v *effectCollector) addIgnored(where, format string, args ...any) {
	v.out.Ignored = append(v.out.Ignored, config.Note{Where: where, Message: fmt.Sprintf(format, args...)})
}

// checkRules records the invalid rules among those that the project adds. where
// describes the origin of the rules in messages.
func (v *effectCollector) checkRules(where string, texts []string) {
	for _, text := range texts {
		_, problems := policy.ParseRules([]string{text})
		for _, p := range problems {
			v.out.Problems = append(v.out.Problems, fmt.Sprintf("%s: %.100q: %s", where, text, p.Message))
		}
	}
	if _, problems := policy.ParseRules(v.trusted.Policy.Rules); len(problems) > 0 && len(v.out.Problems) == 0 && len(texts) > 0 {
		v.out.Problems = append(v.out.Problems, fmt.Sprintf("%s: %s", where, problems[len(problems)-1]))
	}
}

// addServers adds the servers configured in a file, or in the files of a
// directory.
func (v *effectCollector) addServers(name string) {
	files, err := configfile.ListFiles(name)
	if err != nil {
		v.addIgnored(name, "cannot be read: %v", fileerror.Cause(err))
		return
	}
	for _, file := range files {
		data, err := configfile.ReadFile(file, maxFileBytes)
		switch {
		case err != nil:
			v.addIgnored(file, "cannot be read: %v", fileerror.Cause(err))
			continue
		case !v.p.Covers(file, data):
			v.addIgnored(file, "not among the trusted files, so its servers are ignored")
			continue
		}
		f, findings := upstream.Parse(data, upstream.ParseOptions{Name: file})
		v.out.addFindings(file, findings)
		for _, s := range f.Servers {
			if v.addServer("", file, s) {
				v.serverOwners[s.Name] = file + " has a server of the same name"
			}
		}
	}
}

// addServer adds a server's effect, or the reason why it is ignored. Messages
// begin with prefix. It reports whether the server is used.
func (v *effectCollector) addServer(prefix, file string, s *upstream.Config) bool {
	if whose := v.serverOwners[s.Name]; whose != "" {
		v.addIgnored(fmt.Sprintf("%s:%d", file, s.Line), "%sserver %s ignored: %s", prefix, s.Name, whose)
		return false
	}
	if s.Disabled {
		v.out.Applied = append(v.out.Applied, prefix+"server "+s.Name+": disabled")
		return true
	}
	v.out.Applied = append(v.out.Applied, describeServer(prefix, s, v.trusted.CommandsDisabledBy())...)
	return true
}

// addProfiles adds the effects of the project's profiles. Profiles only apply
// at the root of a repository.
func (v *effectCollector) addProfiles(root string) {
	first := map[string]string{}
	for _, name := range v.user.Profiles {
		first[name] = "you have a profile of the same name"
	}
	for _, f := range v.p.Files {
		if path.Dir(f.Path) != ProfilesDir {
			continue
		}
		if root != v.p.Dir {
			v.addIgnored(f.Path, "ignored: profiles of a project apply only at the root of its repository")
			continue
		}
		file := filepath.Join(v.p.Dir, filepath.FromSlash(f.Path))
		data, err := configfile.ReadFile(file, maxFileBytes)
		if err != nil || !v.p.Covers(file, data) {
			continue // reported when the file is displayed
		}
		all, findings := profile.Parse(data, f.Path)
		v.out.addFindings(f.Path, findings)
		for _, g := range all {
			if owner := first[g.Name]; owner != "" {
				v.addIgnored(fmt.Sprintf("%s:%d", f.Path, g.Line), "profile %s ignored: %s", g.Name, owner)
				continue
			}
			first[g.Name] = f.Path + " has a profile of the same name"
			v.addProfile(f.Path, g)
		}
	}
}

// addProfile adds the effects of one of the project's profiles.
func (v *effectCollector) addProfile(file string, g *profile.Profile) {
	of := "profile " + g.Name + ": "
	add := func(text string) { v.out.Applied = append(v.out.Applied, of+text) }
	if len(g.Skills) > 0 {
		add("only the skills " + strings.Join(g.Skills, ", "))
	}
	if g.SystemPrompt != "" {
		add("systemPrompt is the first instruction for the model")
	}
	if len(g.ServerNames) > 0 {
		add("only these other MCP servers: " + strings.Join(g.ServerNames, ", "))
	}
	var stated struct{ Rules []string }
	if g.Policy != nil && json.Unmarshal(g.Policy, &stated) != nil {
		v.out.Problems = append(v.out.Problems, of+"policy is not {rules: [...]}")
	}
	var denials []string
	for _, r := range stated.Rules {
		if isDenyRule(r) {
			denials = append(denials, r)
		} else {
			v.addIgnored(file, "%srule %.100q ignored: a project's profile can only deny", of, r)
		}
	}
	if len(denials) > 0 {
		add(fmt.Sprintf("rules %q", denials))
	}
	v.checkRules("policy of profile "+g.Name, stated.Rules)
	for _, s := range g.MCPServers {
		v.addServer(of, file, s)
	}
}

// isDenyRule reports whether a rule starts with the word deny.
func isDenyRule(rule string) bool {
	word := strings.FieldsFunc(strings.ToLower(rule), func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == ':' })
	return len(word) > 0 && word[0] == policy.Deny
}

// addFindings adds the errors in a file to the ignored parts.
func (o *Effects) addFindings(file string, findings []skill.Diagnostic) {
	for _, d := range findings {
		if d.Severity == skill.Error {
			o.Ignored = append(o.Ignored, config.Note{Where: fmt.Sprintf("%s:%d:%d", file, d.Line, d.Column), Message: d.Message})
		}
	}
}

// describeServer lists the hosts or the command of a project's server, and its
// variables. The server receives only user variables and paths in the project.
// off is the reason why commands are disabled, or "".
func describeServer(prefix string, c *upstream.Config, off string) []string {
	w := requestedserver.Describe(c, upstream.Variables{})
	text := prefix + "server " + c.Name + ": "
	out := []string{text + strings.Join(w.Hosts, ", ")}
	if len(w.Command) > 0 {
		out = []string{text + describeCommand(w, off)}
	}
	for i, v := range w.Variables {
		w.Variables[i].HasValue = v.Kind == upstream.FromUser || v.Kind == upstream.FromPath && v.Name != "userHome"
	}
	for _, v := range review.DescribeVariables(w.Variables) {
		out = append(out, text+v)
	}
	return out
}

// describeCommand describes how the command of a project's server is started.
func describeCommand(w loadout.RequestedService, off string) string {
	line := strings.Join(w.Command, " ")
	installs, err := execution.CheckCommand(w.Command)
	switch {
	case err != nil:
		return "not started: " + line + " (" + err.Error() + ")"
	case off != "":
		return "not started: " + line + " (" + off + ")"
	case installs:
		return "installed, then started in the sandbox with read access to the project and no network: " + line
	}
	return "started in the sandbox with read access to the project and no network: " + line
}
