package loadout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// WishedService is a server or a provider that a skill brings: what is started,
// or spoken to, when it is loaded.
type WishedService struct {
	Name    string   `json:"name"` // of the server; "provider" for the provider
	Command []string `json:"command,omitempty"`
	// Hosts are those of its addresses; a command reaches what the skill asks for.
	Hosts []string `json:"hosts,omitempty"`
	// Variables are the names of those in its environment and headers, and those
	// that its values are made of, as secrets.TOKEN.
	Variables []string `json:"variables,omitempty"`
	// Package is what npx or uvx would start, nil where it was not installed yet:
	// see [Runtime.Prepare].
	Package *Package `json:"package,omitempty"`
	// Refused says why it will not be started, whatever is approved.
	Refused string `json:"refused,omitempty"`
}

// maxServices bounds what is read of one skill.
const maxServices = 64

// placeholder is a variable in a value.
var placeholder = regexp.MustCompile(`\$\{\{\s*([^{}]{1,200}?)\s*\}\}|\$\{([^{}]{1,200})\}`)

// services are what a skill brings, in the order of their names, the provider
// last. What is written in another way than anybody does is passed over: it
// starts nothing either.
func services(s *skill.Skill) []WishedService {
	var all []WishedService
	var configs map[string]json.RawMessage
	if json.Unmarshal(s.MCPServers.Configs, &configs) == nil {
		for _, name := range slices.Sorted(maps.Keys(configs)) {
			if len(all) == maxServices {
				break
			}
			if w, ok := wished(name, configs[name]); ok {
				all = append(all, w)
			}
		}
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
		if len(all[i].Command) > 0 {
			if err := (&service{asked: Service{Command: all[i].Command}}).check(); err != nil {
				all[i].Refused = err.Error()
			}
		}
	}
	return all
}

// wished reads one server.
func wished(name string, text json.RawMessage) (WishedService, bool) {
	w := WishedService{Name: name}
	var doc map[string]any
	if json.Unmarshal(text, &doc) != nil {
		return w, false
	}
	w.Command = append(words(doc["command"]), words(doc["args"])...)
	for _, u := range append(words(doc["url"]), words(doc["urls"])...) {
		host := u // one that is a variable is shown as it is
		if parsed, err := url.Parse(u); err == nil && parsed.Host != "" {
			host = parsed.Host
		}
		w.Hosts = append(w.Hosts, host)
	}
	seen := map[string]bool{}
	for _, key := range []string{"env", "headers"} {
		m, _ := doc[key].(map[string]any)
		for k := range m {
			seen[k] = true
		}
	}
	gather(doc, seen)
	w.Variables = slices.Sorted(maps.Keys(seen))
	return w, true
}

// words are a string, or a list of them.
func words(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			} else {
				out = append(out, fmt.Sprint(e))
			}
		}
		return out
	}
	return nil
}

// gather collects the variables of all values. Those for the folder of the skill
// are none.
func gather(v any, seen map[string]bool) {
	switch v := v.(type) {
	case string:
		for _, m := range placeholder.FindAllStringSubmatch(folders.Replace(v), -1) {
			name := m[1] + m[2]
			name, _, _ = strings.Cut(name, ":-")
			seen[strings.TrimPrefix(name, "env:")] = true
		}
	case []any:
		for _, e := range v {
			gather(e, seen)
		}
	case map[string]any:
		for _, e := range v {
			gather(e, seen)
		}
	}
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
		if len(w.Command) == 0 || j.service.check() != nil || j.service.fetch == nil {
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
	return r.packaged(e, services(s), func(j *job, _ *WishedService) error {
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
	fetches := slices.ContainsFunc(services(j.skill), func(w WishedService) bool {
		s := &service{asked: Service{Command: w.Command}}
		return len(w.Command) > 0 && s.check() == nil && s.fetch != nil
	})
	if !fetches {
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
