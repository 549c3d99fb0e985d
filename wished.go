package loadout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/provider"
	"github.com/loadout-dev/loadout/skill"
)

// WishedService is a server or a provider that a skill brings: what is started,
// or spoken to, when it is loaded.
type WishedService struct {
	Name    string   `json:"name"` // of the server; "provider" for the provider
	Command []string `json:"command,omitempty"`
	// Hosts are those of its addresses; a command reaches what the skill asks for.
	Hosts []string `json:"hosts,omitempty"`
	// Env are the names of the variables that the skill sets for the command.
	Env []string `json:"env,omitempty"`
	// Variables are those that its configuration asks for.
	Variables []WishedVariable `json:"variables,omitempty"`
	// Fetches says that npx or uvx starts it, of which the package has to be
	// installed before it is approved, and Package is what they would start, nil
	// where it was not installed yet: see [Runtime.Prepare].
	Fetches bool     `json:"fetches,omitempty"`
	Package *Package `json:"package,omitempty"`
	// Lender is the skill whose provider it is, where that is another one: it runs as
	// that was approved, and is told Tools, each with its configuration from here.
	Lender string         `json:"lender,omitempty"`
	Tools  map[string]any `json:"tools,omitempty"`
	// Refused says why it will not be started, whatever is approved.
	Refused string `json:"refused,omitempty"`
}

// Judge fills in Fetches and Refused, by the command.
func (w *WishedService) Judge() {
	if len(w.Command) == 0 {
		return
	}
	c := &service{asked: Service{Command: w.Command}}
	if err := c.check(); err != nil {
		w.Refused = err.Error()
	} else {
		w.Fetches = c.fetch != nil
	}
}

// WishedVariable is a variable in the configuration of a server, and who gets its
// value.
type WishedVariable struct {
	Kind   string `json:"kind"` // secret, user, env, input, path or unknown
	Name   string `json:"name"`
	Where  string `json:"where"`  // where it stands, as in: header Authorization
	Target string `json:"target"` // the hosts or the command that its value goes to
	// Given says that it has a value, if there is one: skills get those of the
	// kinds secret and user, and no others.
	Given bool `json:"given"`
}

// ServersError says that what servers a skill brings cannot be told, so that they
// are not started, and the skill cannot be approved.
type ServersError struct {
	Skill  string
	Reason string
}

func (e *ServersError) Error() string {
	return fmt.Sprintf("skill %s: its MCP servers cannot be used: %s", e.Skill, e.Reason)
}

// ErrNoServers says that this runtime starts no servers that skills define.
var ErrNoServers = errors.New("this program starts no MCP servers of skills: it was given no way to read them")

// maxServices bounds the servers of one skill: nobody looks at more.
const maxServices = 64

// services are what a skill brings, in the order of their names, the provider
// last. The error is a [*ServersError], or [ErrNoServers] with what there is
// besides servers.
func (r *Runtime) services(e *catalog.Entry, s *skill.Skill) ([]WishedService, error) {
	var all []WishedService
	var unread error
	switch {
	case s.MCPServers.Configs == nil:
	case r.scripts == nil || r.scripts.Servers == nil:
		unread = fmt.Errorf("skill %s: %w", e.Name, ErrNoServers)
	default:
		found, err := r.scripts.Servers(s.MCPServers.Configs, e.File())
		if err == nil && len(found) > maxServices {
			err = fmt.Errorf("there are %d, and at most %d can be looked at", len(found), maxServices)
		}
		if err != nil {
			return nil, &ServersError{e.Name, err.Error()}
		}
		for _, w := range found {
			all = append(all, wished(w))
		}
		slices.SortStableFunc(all, func(a, b WishedService) int { return strings.Compare(a.Name, b.Name) })
	}
	if p := s.Provider; p != nil {
		w := WishedService{Name: "provider", Command: p.Command}
		switch {
		case p.WASM != "":
			w.Command = []string{p.WASM}
		case p.Class != "":
			w.Command = []string{"python3", strings.ReplaceAll(p.Module, ".", "/") + ".py", p.Class}
		}
		all = append(all, w)
	}
	for i := range all {
		all[i].Judge()
	}
	return all, unread
}

// borrowed are the providers of skills that it needs, for the tools of them that it
// declares.
func (r *Runtime) borrowed(ctx context.Context, s *skill.Skill, needs []*catalog.Entry) []WishedService {
	var out []WishedService
	for _, e := range needs {
		owner, _, err := r.catalog.Read(ctx, e)
		if err != nil || owner.Provider == nil {
			continue
		}
		w := WishedService{Lender: e.Name, Tools: map[string]any{}}
		for _, t := range s.Tools {
			own := t.Provider == "" || s.Provider != nil && t.Provider == s.Name
			if taken := slices.ContainsFunc(out, func(w WishedService) bool { return w.Name == t.Provider }); own || taken || !provider.Offers(owner, t.Provider) {
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

// wished leaves out the variables that are no question, as the folder of the
// skill, and says which of the others have a value.
func wished(w WishedService) WishedService {
	vars := w.Variables
	w.Variables = nil
	for _, v := range vars {
		text := "${" + v.Name + "}"
		if v.Kind == "env" && folders.Replace(text) != text || v.Kind == "path" && (v.Name == "/" || v.Name == "pathSeparator") {
			continue
		}
		v.Given = v.Kind == "secret" || v.Kind == "user"
		w.Variables = append(w.Variables, v)
	}
	return w
}

// packaged calls f for each of the services that npx or uvx starts, with a job
// that knows what to install.
func (r *Runtime) packaged(e *catalog.Entry, all []WishedService, f func(*job, *WishedService) error) error {
	if r.scripts == nil {
		return nil
	}
	var errs []error
	for i := range all {
		w := &all[i]
		j := &job{rt: r, scripts: r.scripts, entry: e, service: &service{asked: Service{Command: w.Command}}}
		if !w.Fetches || j.service.check() != nil {
			continue
		}
		err := j.planFetch()
		if err == nil {
			err = f(j, w)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("server %s: %w", w.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Prepare installs what npx and uvx of a skill's servers would start, in the
// sandbox of the build step, so that a [Wish] can show it and an approval holds
// for it. Nothing of it is run. It needs no leave.
func (r *Runtime) Prepare(ctx context.Context, ref string, progress func(what string)) error {
	e, err := r.catalog.Resolve(ctx, ref)
	if err != nil {
		return err
	}
	s, _, err := r.catalog.Read(ctx, e)
	if err != nil {
		return err
	}
	all, err := r.services(e, s)
	if err != nil && !errors.Is(err, ErrNoServers) {
		return err
	}
	return r.packaged(e, all, func(j *job, _ *WishedService) error {
		j.run.Progress = progress
		j.progress("installing %s", j.service.fetch.asked())
		p, err := j.install(ctx)
		if err == nil {
			_, _, err = j.service.fetch.resolve(p)
		}
		return err
	})
}

// installed fills in the packages that are there, and returns them as an approval
// names them.
func (r *Runtime) installed(e *catalog.Entry, all []WishedService) []policy.Need {
	var needs []policy.Need
	_ = r.packaged(e, all, func(j *job, w *WishedService) error {
		b, err := j.builder()
		if err != nil {
			return err
		}
		var p *install.Packages
		if p, err = b.Lookup(j.how.Needs, j.service.fetch.files, j.how); err != nil {
			return err // it will be said when it is started
		}
		if w.Package, _, err = j.service.fetch.resolve(p); err == nil {
			needs = append(needs, w.Package.need())
		}
		return err
	})
	return needs
}

// need is the package as an approval names it.
func (p *Package) need() policy.Need {
	return policy.Need{Name: p.Registry + ":" + p.Name + "@" + p.Version, Digest: policy.Digest(p.Integrity)}
}

func isPackage(n policy.Need) bool {
	return strings.HasPrefix(n.Name, "npm:") || strings.HasPrefix(n.Name, "pypi:")
}

// approved are the packages that the grant for this skill names, if the skill has
// servers of packages: what they are is compared when one is started, as they may
// not be installed here now.
func (j *job) approved(ctx context.Context) []policy.Need {
	all, err := j.rt.services(j.entry, j.skill)
	// Those that cannot be read here are not started either, and the approval of
	// the scripts holds nevertheless.
	if !errors.Is(err, ErrNoServers) && !slices.ContainsFunc(all, func(w WishedService) bool { return w.Fetches }) {
		return nil
	}
	g, err := j.grants().Find(ctx, j.run.Principal, policy.Digest(j.digest()), j.run.Session)
	if err != nil || g == nil {
		return nil // the decision says so
	}
	return slices.DeleteFunc(slices.Clone(g.Needs), func(n policy.Need) bool { return !isPackage(n) })
}

// sameAsApproved reports whether what was installed is what a grant names.
func (j *job) sameAsApproved(p *Package) error {
	if j.granted == nil || slices.Contains(j.granted.Needs, p.need()) {
		return nil
	}
	reason := fmt.Sprintf("%s %s was not installed when the skill was approved", p.Name, p.Version)
	for _, n := range j.granted.Needs {
		if strings.HasPrefix(n.Name, p.Registry+":"+p.Name+"@") {
			reason = fmt.Sprintf("approved was %s, and installed is %s with another content or version", strings.TrimPrefix(n.Name, p.Registry+":"), p.Version)
		}
	}
	return &CommandError{j.service.fetch.by + " " + p.Asked, reason + ": a person can look at it and approve it with `loadout approve " + j.entry.Name + "`"}
}
