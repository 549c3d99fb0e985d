package loadout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// RequestedService is a server or provider that a skill defines. It describes
// the command that is started or the addresses that are contacted when the
// skill is loaded.
type RequestedService struct {
	Name    string   `json:"name"` // name of the server; "provider" for the provider
	Command []string `json:"command,omitempty"`
	// Hosts are the hosts in the server's addresses. A command can reach the
	// hosts that the skill requests.
	Hosts []string `json:"hosts,omitempty"`
	// Env lists the names of the environment variables that the skill sets for
	// the command.
	Env []string `json:"env,omitempty"`
	// Variables are the variables in the server's configuration.
	Variables []RequestedVariable `json:"variables,omitempty"`
	// NeedsInstall is set if npx or uvx starts the service, so that its
	// package must be installed before the approval. Package is that package,
	// or nil if it is not installed yet: see [Runtime.InstallPackages].
	NeedsInstall bool     `json:"fetches,omitempty"`
	Package      *Package `json:"package,omitempty"`
	// ProviderSkill is the skill that defines the provider, if it is another
	// skill. The provider runs with the approval of that skill. It receives
	// Tools, each with its configuration from this skill.
	ProviderSkill string         `json:"lender,omitempty"`
	Tools         map[string]any `json:"tools,omitempty"`
	// RefusedReason is the reason why the service cannot be started, even if
	// the skill is approved. It is "" if the service can be started.
	RefusedReason string `json:"refused,omitempty"`
}

// checkCommand sets NeedsInstall and RefusedReason according to the command. It
// changes nothing if the service has no command.
func (w *RequestedService) checkCommand() {
	if len(w.Command) == 0 {
		return
	}
	installs, err := execution.CheckCommand(w.Command)
	if err != nil {
		w.RefusedReason = err.Error()
	} else {
		w.NeedsInstall = installs
	}
}

// Package is an installed package that npx or uvx starts for a skill. It does
// not change until it is removed.
type Package struct {
	Registry  string `json:"registry"` // npm or pypi
	Requested string `json:"asked"`    // as written in the skill, with the version if it has one
	Name      string `json:"name"`
	Version   string `json:"version"` // installed version
	// Integrity is "sha256:" and a hash of the package and its dependencies.
	// For npm, the hash covers the registry's integrity value of each package;
	// for PyPI, the file list of each package.
	Integrity string `json:"integrity"`
}

func newPackage(p *execution.Package) *Package { return (*Package)(p) }

// RequestedVariable describes a variable in a server's configuration and the
// recipient of its value.
type RequestedVariable struct {
	Kind     string `json:"kind"` // secret, user, platform, env, input, path or unknown
	Name     string `json:"name"`
	Location string `json:"where"`  // position in the configuration, for example "header Authorization"
	Target   string `json:"target"` // hosts or command that receive the value
	// HasValue is set for the kinds secret and user, and for platform values
	// that are set. Skills get no values of other kinds.
	HasValue bool `json:"given"`
}

// errNoServers is returned by a runtime that does not start skill servers.
var errNoServers = execution.ErrNoServers

// maxServices is the maximum number of servers in a skill. Users could not
// review more than that.
const maxServices = 64

// requestedServices returns a skill's servers, sorted by name, followed by its
// provider. The error is an [*execution.ServersError], or [errNoServers]
// together with the provider.
func (r *Runtime) requestedServices(e *catalog.Entry, s *skill.Skill) ([]RequestedService, error) {
	var all []RequestedService
	var unread error
	switch {
	case s.MCPServers.Configs == nil:
	case r.scripts == nil || r.scripts.ReadServers == nil:
		unread = fmt.Errorf("skill %s: %w", e.Name, errNoServers)
	default:
		found, err := r.scripts.ReadServers(s.MCPServers.Configs, e.File())
		if err == nil && len(found) > maxServices {
			err = fmt.Errorf("too many servers (%d, limit %d)", len(found), maxServices)
		}
		if err != nil {
			return nil, &execution.ServersError{Skill: e.Name, Reason: err.Error()}
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
		case p.ModuleFile() != "":
			w.Command = []string{"python3", p.ModuleFile(), p.Class + p.Function} // one of them is empty
		}
		all = append(all, w)
	}
	for i := range all {
		all[i].checkCommand()
	}
	return all, unread
}

// borrowedProviders returns the providers that dependencies of s define. Each
// is listed with the tools that s declares for it.
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

// filterVariables removes the variables that always have a value, such as the
// skill's directory, and sets HasValue of the others.
func filterVariables(w RequestedService) RequestedService {
	vars := w.Variables
	w.Variables = nil
	for _, v := range vars {
		text := "${" + v.Name + "}"
		if v.Kind == "env" && execution.ReplaceSkillDir(text) != text || v.Kind == "path" && (v.Name == "/" || v.Name == "pathSeparator") {
			continue
		}
		v.HasValue = v.Kind == "secret" || v.Kind == "user" || v.Kind == "platform" && v.HasValue
		w.Variables = append(w.Variables, v)
	}
	return w
}

// variableNeeds returns a dependency to list in an approval for each platform
// value that a service receives. The dependency names the value and its target.
func variableNeeds(all []RequestedService) []policy.Need {
	var needs []policy.Need
	for _, w := range all {
		for _, v := range w.Variables {
			if n := decision.VariableNeed(v.Name, v.Target); v.Kind == "platform" && v.HasValue && w.RefusedReason == "" && !slices.Contains(needs, n) {
				needs = append(needs, n)
			}
		}
	}
	return needs
}

// InstallPackages installs the packages that npx and uvx start for a skill's
// servers. It runs the installers in the sandbox, but not the packages, unless
// [Packages.AllowSource] is set. Afterwards an [ApprovalRequest] can include
// the packages. InstallPackages needs no approval.
//
// progress receives progress messages; it may be nil. If the installation for a
// server fails, InstallPackages continues with the other servers; the error
// joins those of all servers. No package is installed if the skill's servers
// cannot be read. If [Options.Scripts] is nil, InstallPackages does nothing.
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
	if err != nil && !errors.Is(err, errNoServers) {
		return err
	}
	if r.scripts == nil {
		return nil
	}
	var errs []error
	for _, w := range all {
		if !w.NeedsInstall {
			continue
		}
		if err := r.Runner().InstallPackage(ctx, e, w.Command, progress); err != nil {
			errs = append(errs, fmt.Errorf("server %s: %w", w.Name, err))
		}
	}
	return errors.Join(errs...)
}

// setPackages sets Package of each service whose package is installed, and
// returns these packages as dependencies to list in an approval. It ignores
// errors, because starting a service reports them.
func (r *Runtime) setPackages(e *catalog.Entry, all []RequestedService) []policy.Need {
	if r.scripts == nil {
		return nil
	}
	var needs []policy.Need
	for i := range all {
		if !all[i].NeedsInstall {
			continue
		}
		if p, err := r.Runner().InstalledPackage(e, all[i].Command); err == nil && p != nil {
			all[i].Package, needs = newPackage(p), append(needs, p.Need())
		}
	}
	return needs
}
