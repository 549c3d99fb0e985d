package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/trust"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// LoadProfiles returns the active profiles: the user's own, followed by those of
// the trusted project. It passes problems to note.
func (s *Setup) LoadProfiles(note func(format string, args ...any)) ([]*profile.Profile, error) {
	out, err := s.loadOwnProfiles(note)
	if err != nil {
		return nil, err
	}
	root := repositoryRoot(s.ConfigInput().WorkDir)
	if root == "" {
		return out, nil
	}
	p, err := s.ReadProject(root)
	if err != nil || !p.Trusted {
		return out, nil
	}
	for _, f := range p.Files {
		if path.Dir(f.Path) != trust.ProfilesDir {
			continue
		}
		file := filepath.Join(p.Dir, filepath.FromSlash(f.Path))
		data, err := configfile.ReadFile(file, 1<<20)
		if err != nil || !p.Covers(file, data) {
			note("%s ignored: it changed since the project was trusted", file)
			continue
		}
		all, findings := profile.Parse(data, f.Path)
		for _, d := range findings {
			if d.Severity == skill.Error || d.Severity == skill.Warning {
				note("%s:%d: %s", f.Path, d.Line, d.Message)
			}
		}
		for _, g := range all {
			g.Owner = projectOwner
			for _, m := range g.MCPServers {
				m.Owner = upstream.ProjectOwner
			}
		}
		out = append(out, all...)
	}
	return out, nil
}

// loadOwnProfiles returns the user's own profiles. It calls note for each
// problem.
func (s *Setup) loadOwnProfiles(note func(format string, args ...any)) ([]*profile.Profile, error) {
	dir := s.profilesDir()
	if dir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil // the directory is optional
	}
	defer root.Close()
	all, problems, err := profile.ReadDir(root.FS())
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "fix it, or omit --profile", "profiles in %s: %w", dir, err)
	}
	for _, p := range problems {
		note("%s: %s", dir, p)
	}
	return all, nil
}

// profilesDir returns the directory of the user's own profiles.
func (s *Setup) profilesDir() string {
	if f := config.UserFile(s.ConfigInput()); f != "" {
		return filepath.Join(filepath.Dir(f), "ghosts")
	}
	return ""
}

// FindProfile returns the profile with the given name, or nil if name is "".
func (s *Setup) FindProfile(name string) (*profile.Profile, error) {
	if name == "" {
		return nil, nil
	}
	all, err := s.LoadProfiles(s.Note)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	hint := "create it in " + s.profilesDir()
	root := repositoryRoot(s.ConfigInput().WorkDir)
	if len(names) > 0 {
		hint = "available profiles: " + strings.Join(names, ", ")
	} else if root != "" && Exists(filepath.Join(root, filepath.FromSlash(trust.ProfilesDir))) {
		hint = "to use the profiles of this project, trust it: loadout trust " + console.ShellQuote(root)
	}
	return nil, exit.Errorf(exit.NotFound, hint, "profile %q not found", name)
}

// ProfilePrompt returns the profile's system prompt, or "" if p is nil.
func ProfilePrompt(p *profile.Profile) string {
	if p == nil {
		return ""
	}
	return p.SystemPrompt
}

// ProfileSkills returns the skills of a profile, or nil if the profile has all
// skills.
func ProfileSkills(p *profile.Profile) []string {
	if p == nil || len(p.Skills) == 0 {
		return nil
	}
	return p.Skills
}

// projectOwner is the owner of profiles defined by a trusted project. Their
// servers receive no environment variables and run in the sandbox.
const projectOwner = string(upstream.ProjectOwner)

// repositoryRoot returns the root of the repository that contains a directory,
// or "".
func repositoryRoot(dir string) string {
	_, root := config.ProjectFile(dir)
	return root
}

// ParseProfileRules returns the rules of a profile. They follow the user's
// rules, so apart from denials they apply only to calls that match no user
// rule. The rules of a project's profile can only deny. If managed is set, only
// the administrator's rules can allow calls.
func ParseProfileRules(p *profile.Profile, managed bool) (policy.Rules, []policy.Problem) {
	if p.Policy == nil {
		return policy.Rules{}, nil
	}
	var stated struct{ Rules []string }
	if err := json.Unmarshal(p.Policy, &stated); err != nil {
		r, _ := policy.ParseRules([]string{"deny"}) // an unreadable policy denies everything
		return r, []policy.Problem{{Where: "policy", Message: "not of the form {rules: [...]}"}}
	}
	if managed {
		stated.Rules = config.WithoutAllowing(stated.Rules)
	}
	rules, problems := policy.ParseRules(stated.Rules)
	if p.Owner == projectOwner {
		rules = rules.Denials()
	}
	return rules, problems
}

// NoteMissingSkills prints a note for each skill of a profile that does not
// exist or is unavailable. rt must contain only the skills of the profile.
func (s *Setup) NoteMissingSkills(ctx context.Context, c *config.Config, p *profile.Profile, rt *loadout.Runtime) {
	if p == nil || isStillReading(rt) || len(MissingSkills(p, rt)) == 0 {
		return
	}
	all, err := s.NewRuntimeWith(ctx, c, false, nil) // all skills, for suggestions
	if err != nil {
		return // it was readable a moment ago
	}
	defer all.Close()
	for _, text := range MissingSkills(p, all) {
		s.Note("profile %s: %s", p.Name, text)
	}
}

// isStillReading reports whether skills may be missing because a directory is
// slow.
func isStillReading(rt *loadout.Runtime) bool {
	return slices.ContainsFunc(rt.Catalog().Snapshot().Problems(), func(p catalog.Problem) bool { return p.Code == "still-reading" })
}

// MissingSkills describes the skills of a profile that do not exist or are
// hidden. It suggests similar names from rt.
func MissingSkills(p *profile.Profile, rt *loadout.Runtime) []string {
	snap := rt.Catalog().Snapshot()
	if snap.Disabled {
		return nil // already reported
	}
	var names, out []string
	for _, e := range snap.Skills() {
		names = append(names, e.Name)
	}
	for _, s := range p.Skills {
		name := skillname.Normalize(strings.TrimSpace(s))
		e, err := snap.Get(name)
		if err == nil && e.Name != name && e.Origin+"/"+e.Name != name {
			out = append(out, fmt.Sprintf("%q selects no skill: write its name, or its origin and name as %s/%s", s, e.Origin, e.Name))
		}
		if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok {
			text := fmt.Sprintf("skill %q not found%s", s, suggestNames(s, names))
			if missing.Reason != "" {
				text = fmt.Sprintf("skill %q is not available: %s", s, missing.Reason)
			}
			out = append(out, text)
		}
	}
	return out
}

// MissingServers describes the servers that a profile names but the user has
// not configured.
func MissingServers(p *profile.Profile, own []*upstream.Config) []string {
	var names, out []string
	for _, s := range own {
		names = append(names, s.Name)
	}
	for _, s := range p.ServerNames {
		if !slices.Contains(names, s) {
			out = append(out, fmt.Sprintf("MCP server %q not found%s", s, suggestNames(s, names)))
		}
	}
	return out
}

// suggestNames returns a message suffix that suggests similar names, or "".
func suggestNames(name string, names []string) string {
	if _, rest, ok := strings.Cut(name, "/"); ok {
		name = rest
	}
	asked := editdistance.Normalize(name)
	most := min(2, (len(asked)+1)/2)
	var like []string
	for _, n := range names {
		if len(like) < 3 && !slices.Contains(like, n) && editdistance.Distance(asked, editdistance.Normalize(n), most) <= most {
			like = append(like, n)
		}
	}
	if len(like) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(like, " or ") + "?"
}
