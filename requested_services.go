package loadout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// RequestedService is a server or a provider of a skill: the command to start
// or the addresses to connect to when the skill is loaded.
type RequestedService struct {
	Name    string   `json:"name"` // name of the server; "provider" for the provider
	Command []string `json:"command,omitempty"`
	// Hosts are the hosts of its addresses. A command can reach the hosts that
	// the skill requests.
	Hosts []string `json:"hosts,omitempty"`
	// Env are the names of the variables that the skill sets for the command.
	Env []string `json:"env,omitempty"`
	// Variables are the variables in its configuration.
	Variables []RequestedVariable `json:"variables,omitempty"`
	// NeedsInstall is set if npx or uvx starts it: its package must be
	// installed before the approval. Package is that package, or nil if it is
	// not installed yet: see [Runtime.InstallPackages].
	NeedsInstall bool     `json:"fetches,omitempty"`
	Package      *Package `json:"package,omitempty"`
	// ProviderSkill is the skill of the provider, if it is another skill. The
	// provider runs with the approval of that skill and gets Tools, each with
	// its configuration from this skill.
	ProviderSkill string         `json:"lender,omitempty"`
	Tools         map[string]any `json:"tools,omitempty"`
	// RefusedReason says why the service cannot be started, even if the skill
	// is approved.
	RefusedReason string `json:"refused,omitempty"`
}

// CheckCommand sets NeedsInstall and RefusedReason according to the command.
func (w *RequestedService) CheckCommand() {
	if len(w.Command) == 0 {
		return
	}
	c := &service{asked: Service{Command: w.Command}}
	if err := c.check(); err != nil {
		w.RefusedReason = err.Error()
	} else {
		w.NeedsInstall = c.fetch != nil
	}
}

// RequestedVariable is a variable in the configuration of a server, with the
// recipient of its value.
type RequestedVariable struct {
	Kind     string `json:"kind"` // secret, user, env, input, path or unknown
	Name     string `json:"name"`
	Location string `json:"where"`  // position in the configuration, for example "header Authorization"
	Target   string `json:"target"` // hosts or command that receive the value
	// HasValue is set for the kinds secret and user, the only ones whose values
	// skills can get.
	HasValue bool `json:"given"`
}

// ServersError is returned if the servers of a skill cannot be read. They are
// not started, and the skill cannot be approved.
type ServersError struct {
	Skill  string
	Reason string
}

func (e *ServersError) Error() string {
	return fmt.Sprintf("skill %s: its MCP servers cannot be used: %s", e.Skill, e.Reason)
}

// ErrNoServers is returned by a runtime that starts no servers of skills.
var ErrNoServers = errors.New("this program starts no MCP servers of skills: it was given no way to read them")

// maxServices is the number of servers that a skill may define; a user cannot
// review more.
const maxServices = 64

// requestedServices returns the services of a skill, sorted by name, with the
// provider last. The error is a [*ServersError], or [ErrNoServers] together
// with the provider.
func (r *Runtime) requestedServices(e *catalog.Entry, s *skill.Skill) ([]RequestedService, error) {
	var all []RequestedService
	var unread error
	switch {
	case s.MCPServers.Configs == nil:
	case r.scripts == nil || r.scripts.ReadServers == nil:
		unread = fmt.Errorf("skill %s: %w", e.Name, ErrNoServers)
	default:
		found, err := r.scripts.ReadServers(s.MCPServers.Configs, e.File())
		if err == nil && len(found) > maxServices {
			err = fmt.Errorf("there are %d, and at most %d can be looked at", len(found), maxServices)
		}
		if err != nil {
			return nil, &ServersError{e.Name, err.Error()}
		}
		for _, w := range found {
			all = append(all, filterVariables(w))
		}
		slices.SortStableFunc(all, func(a, b RequestedService) int { return strings.Compare(a.Name, b.Name) })
	}
	if p := s.Provider; p != nil {
		w := RequestedService{Name: "provider", Command: p.Command}
		switch {
		case p.WASM != "":
			w.Command = []string{p.WASM}
		case p.Class != "":
			w.Command = []string{"python3", strings.ReplaceAll(p.Module, ".", "/") + ".py", p.Class}
		}
		all = append(all, w)
	}
	for i := range all {
		all[i].CheckCommand()
	}
	return all, unread
}

// borrowedProviders returns the providers of needed skills, each with the tools
// that s declares for it.
func borrowedProviders(s *skill.Skill, needs []*catalog.Loaded) []RequestedService {
	var out []RequestedService
	for _, l := range needs {
		owner := l.Skill
		if owner.Provider == nil {
			continue
		}
		w := RequestedService{ProviderSkill: l.Entry.Name, Tools: map[string]any{}}
		for _, t := range s.Tools {
			own := t.Provider == "" || s.Provider != nil && t.Provider == s.Name
			if taken := slices.ContainsFunc(out, func(w RequestedService) bool { return w.Name == t.Provider }); own || taken || !provider.Offers(owner, t.Provider) {
				continue
			}
			w.Name = t.Provider
			w.Tools[t.Name] = nil
			if config, err := provider.Settings(s, t); err == nil && len(config) > 0 {
				w.Tools[t.Name] = config
			}
		}
		if w.Name != "" {
			out = append(out, w)
		}
	}
	return out
}

// filterVariables removes the variables that are always known, such as the
// skill's directory, and sets HasValue of the others.
func filterVariables(w RequestedService) RequestedService {
	vars := w.Variables
	w.Variables = nil
	for _, v := range vars {
		text := "${" + v.Name + "}"
		if v.Kind == "env" && skillDirNames.Replace(text) != text || v.Kind == "path" && (v.Name == "/" || v.Name == "pathSeparator") {
			continue
		}
		v.HasValue = v.Kind == "secret" || v.Kind == "user"
		w.Variables = append(w.Variables, v)
	}
	return w
}

// forEachPackage calls f for each service that npx or uvx starts, with a job
// that knows what to install.
func (r *Runtime) forEachPackage(e *catalog.Entry, all []RequestedService, f func(*job, *RequestedService) error) error {
	if r.scripts == nil {
		return nil
	}
	var errs []error
	for i := range all {
		w := &all[i]
		j := &job{rt: r, scripts: r.scripts, entry: e, service: &service{asked: Service{Command: w.Command}}}
		if !w.NeedsInstall || j.service.check() != nil {
			continue
		}
		err := j.planPackage()
		if err == nil {
			err = f(j, w)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("server %s: %w", w.Name, err))
		}
	}
	return errors.Join(errs...)
}

// InstallPackages installs the packages that npx and uvx start for a skill's
// servers, in the sandbox of the build step. The packages can then be part of
// an [ApprovalRequest] and its approval. It runs none of them and needs no
// approval.
func (r *Runtime) InstallPackages(ctx context.Context, ref string, progress func(what string)) error {
	e, err := r.catalog.Resolve(ctx, ref)
	if err != nil {
		return err
	}
	s, _, err := r.catalog.Read(ctx, e)
	if err != nil {
		return err
	}
	all, err := r.requestedServices(e, s)
	if err != nil && !errors.Is(err, ErrNoServers) {
		return err
	}
	return r.forEachPackage(e, all, func(j *job, _ *RequestedService) error {
		j.run.Progress = progress
		j.progress("installing %s", j.service.fetch.asked())
		p, err := j.installPackages(ctx)
		if err == nil {
			_, _, err = j.service.fetch.resolve(p)
		}
		return err
	})
}

// installedPackages sets the installed packages of services, and returns them
// as dependencies for an approval.
func (r *Runtime) installedPackages(e *catalog.Entry, all []RequestedService) []policy.Need {
	var needs []policy.Need
	_ = r.forEachPackage(e, all, func(j *job, w *RequestedService) error {
		b, err := j.packageBuilder()
		if err != nil {
			return err
		}
		var p *packages.Packages
		if p, err = b.Lookup(j.scriptPlan.Needs, j.service.fetch.files, j.scriptPlan); err != nil {
			return err // starting the service will report it
		}
		if w.Package, _, err = j.service.fetch.resolve(p); err == nil {
			needs = append(needs, w.Package.need())
		}
		return err
	})
	return needs
}

// need returns the package as a dependency for an approval.
func (p *Package) need() policy.Need {
	return policy.Need{Name: p.Registry + ":" + p.Name + "@" + p.Version, Digest: policy.Digest(p.Integrity)}
}

func isPackage(n policy.Need) bool {
	return strings.HasPrefix(n.Name, "npm:") || strings.HasPrefix(n.Name, "pypi:")
}

// approvedPackages returns the packages in the grant for this skill, if the
// skill has servers from packages. The installed packages are compared with
// them when a server starts, because they may not be installed now.
func (j *job) approvedPackages(ctx context.Context) []policy.Need {
	all, err := j.rt.requestedServices(j.entry, j.skill)
	// Servers that cannot be read are not started, so the approval of the
	// scripts remains valid.
	if !errors.Is(err, ErrNoServers) && !slices.ContainsFunc(all, func(w RequestedService) bool { return w.NeedsInstall }) {
		return nil
	}
	g, err := j.grants().Find(ctx, j.run.Principal, policy.Digest(j.digest()), j.run.Session)
	if err != nil || g == nil {
		return nil // the decision reports it
	}
	return slices.DeleteFunc(slices.Clone(g.Needs), func(n policy.Need) bool { return !isPackage(n) })
}

// checkApprovedPackage returns an error if the installed package is not in the
// grant.
func (j *job) checkApprovedPackage(p *Package) error {
	if j.granted == nil || slices.Contains(j.granted.Needs, p.need()) {
		return nil
	}
	reason := fmt.Sprintf("%s %s was not installed when the skill was approved", p.Name, p.Version)
	for _, n := range j.granted.Needs {
		if strings.HasPrefix(n.Name, p.Registry+":"+p.Name+"@") {
			reason = fmt.Sprintf("approved was %s, and installed is %s with another content or version", strings.TrimPrefix(n.Name, p.Registry+":"), p.Version)
		}
	}
	return &CommandError{j.service.fetch.by + " " + p.Requested, reason + ": a person can look at it and approve it with `loadout approve " + j.entry.Name + "`"}
}
