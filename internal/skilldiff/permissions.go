package skilldiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/requestedbounds"
	"github.com/loadout-dev/loadout/policy"
)

// PermissionChanges holds the differences between the permissions that two
// versions of a skill request.
type PermissionChanges struct {
	// More lists permissions that the new version adds or changes. The user
	// should review them before accepting the version.
	More []PermissionChange `json:"more"`
	// Less lists permissions that only the old version requests.
	Less []PermissionChange `json:"less"`
}

// Kinds of [PermissionChange].
const (
	Scripts    = "scripts"   // runnable code in a skill that had none, or the reverse
	Provider   = "provider"  // code that provides tools: a command, a class or a module
	Network    = "network"   // a host pattern
	Secret     = "secret"    // the name of a secret
	Inject     = "inject"    // a secret that the proxy adds to requests to a host
	Workspace  = "workspace" // write access to the agent's working directory
	Limit      = "limit"     // memory_mb, seconds, processes, disk_mb: a higher limit or none
	Isolation  = "isolation" // min_tier: the sandbox's minimum isolation
	Server     = "server"    // an MCP server: its command or URLs, or the name of a server on the host
	Variable   = "variable"  // a variable in a server configuration, and the target of its value
	Tool       = "tool"      // a pattern in allowed-tools: matching tools need no approval while the skill is active
	Package    = "package"   // a package for a script, as "pypi:NAME" or "npm:NAME"
	Dependency = "needs"     // another skill
	Model      = "model"     // another model while the skill is active
)

// PermissionChange is a permission that differs between two versions, or that
// only one of them requests. Each string is on one line, truncated to
// [MaxValueBytes], and safe to print on a terminal.
type PermissionChange struct {
	Kind string `json:"kind"`
	Name string `json:"name"` // for example a host, a name or a pattern
	// Old and New contain details: a server's command, a package's version
	// range, or a number. If both are set, the value changed from Old to New.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// permission is a requested permission without details.
type permission struct{ kind, name string }

// maxRequests is the maximum number of requested permissions read from a
// version.
const maxRequests = 20_000

// requests holds the permissions that a version requests.
type requests struct {
	isMissing bool // the version does not exist
	bounds    policy.Bounds
	other     map[permission][]string // details by permission, without duplicates
	seen      map[request]bool
	full      bool // the version has more than maxRequests
}

// request is a permission with a single detail.
type request struct {
	permission
	detail string
}

// add adds a permission. It combines the details of repeated permissions.
func (w *requests) add(kind, name, how string) {
	s := request{permission{kind, name}, how}
	switch {
	case w.seen[s]:
	case len(w.seen) == maxRequests:
		w.full = true
	default:
		w.seen[s] = true
		w.other[s.permission] = append(w.other[s.permission], how)
	}
}

// details returns the sorted details of a permission.
func (w *requests) details(key permission) string {
	all := slices.DeleteFunc(slices.Clone(w.other[key]), func(s string) bool { return s == "" })
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// comparePermissions compares the permissions that the two versions request.
func (c *comparison) comparePermissions() error {
	old, err := c.readRequests(&c.old, "old version")
	if err != nil {
		return err
	}
	new, err := c.readRequests(&c.new, "new version")
	if err != nil {
		return err
	}
	more, less := compareLists(old.bounds, new.bounds)
	moreLimits, lessLimits := compareLimits(old, new)
	more, less = append(more, moreLimits...), append(less, lessLimits...)
	for key := range new.other {
		was, how := old.details(key), new.details(key)
		if _, ok := old.other[key]; !ok || was != how {
			more = append(more, PermissionChange{key.kind, key.name, was, how})
		}
	}
	for key := range old.other {
		if _, ok := new.other[key]; !ok {
			less = append(less, PermissionChange{key.kind, key.name, old.details(key), ""})
		}
	}
	c.diff.Permissions = PermissionChanges{c.prepareChanges(more), c.prepareChanges(less)}
	return nil
}

// prepareChanges sorts, truncates and escapes changes for display.
func (c *comparison) prepareChanges(all []PermissionChange) []PermissionChange {
	slices.SortFunc(all, func(a, b PermissionChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if len(all) > MaxPermissions {
		c.addProblem("%d permissions omitted (limit %d)", len(all)-MaxPermissions, MaxPermissions)
		all = all[:MaxPermissions]
	}
	for i, a := range all {
		all[i] = PermissionChange{a.Kind, escapeText(a.Name, MaxValueBytes), escapeText(a.Old, MaxValueBytes), escapeText(a.New, MaxValueBytes)}
	}
	return all
}

// readRequests collects the permissions that a version requests.
func (c *comparison) readRequests(s *versionFiles, name string) (*requests, error) {
	w := &requests{isMissing: s.fsys == nil, other: map[permission][]string{}, seen: map[request]bool{}}
	if w.isMissing {
		return w, nil
	}
	if s.version().Scripts > 0 {
		w.add(Scripts, "run", "")
	}
	front, err := s.skill.FrontmatterJSON()
	if err != nil && len(s.skill.Frontmatter) > 0 {
		c.addProblem("%s: sandbox permissions cannot be read: %v", name, err)
	}
	var problems []policy.Problem
	w.bounds, problems = requestedbounds.Parse(front)
	for _, p := range problems {
		c.addProblem("%s: invalid request: %s", name, p)
	}
	for _, in := range requestedbounds.ParseInjections(front) {
		w.add(Inject, fmt.Sprintf("%s to %s", in.Secret, in.Pattern()), in.Header)
	}
	for _, t := range s.skill.AllowedTools {
		w.add(Tool, t, "")
	}
	for _, d := range s.skill.Dependencies {
		other, constraint, _ := strings.Cut(d, "@")
		w.add(Dependency, strings.TrimSpace(other), strings.TrimSpace(constraint))
	}
	if p := s.skill.Provider; p != nil {
		w.add(Provider, "run", cmp.Or(quoteCommand(p.Command), p.WASM, strings.TrimPrefix(p.Module+"."+p.Class+p.Function, ".")))
	}
	if s.skill.Model != "" {
		w.add(Model, s.skill.Model, "")
	}
	c.addServers(s, w, name)
	err = c.addPackages(s, w, name)
	if w.full {
		c.addProblem("%s: only the first %d permissions were compared", name, maxRequests)
	}
	return w, err
}

// quoteCommand formats a command for display. It quotes words with spaces.
func quoteCommand(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \t\"'\\") {
			words[i] = strconv.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

// compareLists compares the requested hosts, secrets and workspace access. A
// host that matches a pattern of the other version is not reported as a change.
func compareLists(old, new policy.Bounds) (more, less []PermissionChange) {
	for _, side := range []struct {
		to   *[]PermissionChange
		a, b policy.Bounds
	}{{&more, old, new}, {&less, new, old}} {
		has := side.a.Permissions()
		add := func(kind, name string) { *side.to = append(*side.to, PermissionChange{Kind: kind, Name: name}) }
		for _, h := range side.b.Network {
			if !has.Covers(policy.Permissions{Network: []string{h}}) {
				add(Network, h)
			}
		}
		for _, s := range side.b.Secrets {
			if !slices.Contains(has.Secrets, s) {
				add(Secret, s)
			}
		}
		if side.b.WorkspaceWrite && !has.WorkspaceWrite {
			add(Workspace, "write")
		}
	}
	return more, less
}

// compareLimits compares the requested limits. more contains the limits that
// let the skill use more. If one version is missing, the result contains all
// limits of the other version.
func compareLimits(old, new *requests) (more, less []PermissionChange) {
	for _, l := range []numberChange{
		limitChange("memory_mb", old.bounds.MemoryMB, new.bounds.MemoryMB),
		limitChange("seconds", old.bounds.Seconds, new.bounds.Seconds),
		limitChange("processes", old.bounds.Processes, new.bounds.Processes),
		limitChange("disk_mb", old.bounds.DiskMB, new.bounds.DiskMB),
		{Isolation, "min_tier", old.bounds.MinTier, new.bounds.MinTier, new.bounds.MinTier < old.bounds.MinTier},
	} {
		if l.old == l.new {
			continue
		}
		ask := PermissionChange{l.kind, l.name, formatNumber(l.old), formatNumber(l.new)}
		if old.isMissing || l.wider && !new.isMissing {
			more = append(more, ask)
		} else {
			less = append(less, ask)
		}
	}
	return more, less
}

// numberChange holds the values of a numeric limit in two versions; 0 means
// unspecified.
type numberChange struct {
	kind, name string
	old, new   int
	wider      bool // the new version allows more
}

// limitChange compares the values of a limit. If a limit is unspecified, the
// host chooses it.
func limitChange(name string, old, new int) numberChange {
	return numberChange{Limit, name, old, new, new == 0 || old != 0 && new > old}
}

// formatNumber formats a number. It returns "" for 0.
func formatNumber(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// decodeStrings returns the strings in a JSON string or list of strings.
func decodeStrings(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var all []string
	_ = json.Unmarshal(raw, &all) // other JSON types are not commands or addresses
	return all
}
