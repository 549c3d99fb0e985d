package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
)

// HubScope is the scope of hub-wide settings. Other scopes are group names.
const HubScope = "hub"

// skillsSetting is the name under which skill settings are stored.
const skillsSetting = "skills"

// Allow-list limits.
const (
	MaxAllow      = 500
	maxAllowBytes = 300 // bytes per entry
)

// SkillSettings controls which skills are available, for the whole hub or for a
// group's agents and skills.
type SkillSettings struct {
	// Disabled is the kill switch: no skills are available and running ones stop.
	Disabled bool `json:"disabled"`
	// Allow lists the only available skills, in the syntax of [catalog.Filter]. If
	// it is empty, all skills are available.
	Allow []string `json:"allow,omitempty"`
	// Generation counts the changes. A change must include the current value.
	Generation int64 `json:"-"`
}

// resolveScope returns the name under which a scope is stored, and the resource
// for authorizing access to its settings.
func (a actor) resolveScope(ctx context.Context, name string) (string, account.Resource, error) {
	if name == HubScope {
		return HubScope, account.Resource{Shared: true}, a.requireSignIn(account.SettingsRead)
	}
	in, err := a.resolveNamespace(ctx, name)
	if err != nil {
		return "", account.Resource{}, err
	}
	if in.Group() == "" {
		return "", account.Resource{}, fmt.Errorf("skill settings of %.100q: %w: want hub or the name of a group", name, store.ErrInvalid)
	}
	return string(in), accountResource(in, ""), nil
}

// SkillSettings returns the settings of a scope: [HubScope] or a group.
func (r *Registry) SkillSettings(ctx context.Context, p account.Principal, scope string) (SkillSettings, error) {
	a := r.newActor(p)
	kept, res, err := a.resolveScope(ctx, scope)
	if err == nil {
		err = a.checkAccess(account.SettingsRead, res, "settings of", scope)
	}
	if err != nil {
		return SkillSettings{}, err
	}
	return a.getSettings(ctx, kept)
}

// SetSkillSettings changes the settings of a scope. All nodes apply them within
// two [Options.Poll] intervals. It returns [store.ErrConflict] unless s has the
// current generation.
func (r *Registry) SetSkillSettings(ctx context.Context, p account.Principal, scope string, s SkillSettings) error {
	if err := checkAllowlist(s.Allow); err != nil {
		return err
	}
	err := r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{Tables: tx.Tables, p: p}
		kept, res, err := a.resolveScope(ctx, scope)
		if err == nil {
			err = a.checkAccess(account.SettingsWrite, res, "settings of", scope)
		}
		if err != nil {
			return err
		}
		value, err := plainjson.Line(s)
		if err != nil {
			return err
		}
		if _, err := a.Settings.Set(ctx, store.Setting{Scope: kept, Name: skillsSetting, Value: value, Generation: s.Generation, UpdatedBy: string(p.User)}); err != nil {
			return err
		}
		in := store.Namespace(kept)
		if kept == HubScope {
			in = ""
		}
		return a.recordAllowed(ctx, account.SettingsWrite, in, "settings/"+kept+"/"+skillsSetting, map[string]any{"disabled": s.Disabled, "allow": s.Allow})
	})
	if err != nil {
		return r.recordDenied(ctx, p, account.SettingsWrite, "settings/"+shorten(scope), err)
	}
	r.publishChange(ctx)
	return nil
}

// SettingsStream is the bus stream that announces settings revisions.
const SettingsStream = "hub/settings"

// publishChange notifies all nodes of changed settings. A node that misses the
// notification detects the change when it polls.
func (r *Registry) publishChange(ctx context.Context) {
	r.watch.wake()
	if r.opts.Bus == nil {
		return
	}
	revisions, err := r.db.Revisions(ctx)
	if err != nil {
		r.opts.Logger.Warn("cannot notify other nodes of changed settings; they will poll", "error", err)
		return
	}
	r.opts.Bus.Publish(SettingsStream, revisions[store.SettingsRevision])
}

// getSettings returns the settings of a scope, or the zero value if none are
// stored.
func (a actor) getSettings(ctx context.Context, scope string) (SkillSettings, error) {
	kept, err := a.Settings.Get(ctx, scope, skillsSetting)
	if errors.Is(err, store.ErrNotFound) {
		return SkillSettings{}, nil
	}
	if err != nil {
		return SkillSettings{}, err
	}
	return decodeSettings(kept)
}

func decodeSettings(kept store.Setting) (s SkillSettings, err error) {
	if err := json.Unmarshal(kept.Value, &s); err != nil {
		return s, fmt.Errorf("decode settings of %s: %w: %w", kept.Scope, store.ErrCorrupt, err)
	}
	s.Generation = kept.Generation
	return s, checkAllowlist(s.Allow)
}

// checkAllowlist returns an error if an allowlist is invalid.
func checkAllowlist(allow []string) error {
	if len(allow) > MaxAllow {
		return fmt.Errorf("allowlist: %w: too many entries (%d, limit %d)", store.ErrInvalid, len(allow), MaxAllow)
	}
	for _, entry := range allow {
		if len(entry) > maxAllowBytes {
			return fmt.Errorf("allowlist: %w: entry too long (%d bytes, limit %d)", store.ErrInvalid, len(entry), maxAllowBytes)
		}
	}
	// An empty catalog is enough to parse the list.
	if _, err := catalog.New(nil, &catalog.Options{Filter: catalog.Filter{Allow: allow}}); err != nil {
		return fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return nil
}

// Filter returns a filter for the skills that the settings of the hub and of all
// given groups permit. It reads the database. If that fails, the filter disables
// all skills.
func (r *Registry) Filter(ctx context.Context, in ...store.Namespace) (catalog.Filter, error) {
	filters, err := r.FilterEach(ctx, append([]store.Namespace{""}, in...)...)
	if err != nil {
		return catalog.Filter{Disabled: true}, err
	}
	return combineFilters(filters, in), nil
}

// combineFilters returns the intersection of the filters of the given namespaces.
// A group's filter already includes the hub's.
func combineFilters(filters map[store.Namespace]catalog.Filter, in []store.Namespace) catalog.Filter {
	out, groups := filters[""], 0
	for _, n := range in {
		f := filters[n]
		if n.Group() == "" {
			continue
		}
		if groups++; groups == 1 {
			out = f
			continue
		}
		allow, nonEmpty := intersectAllowlists(out.Allow, f.Allow)
		out = catalog.Filter{Disabled: out.Disabled || f.Disabled || !nonEmpty, Allow: allow}
	}
	return out
}

// FilterEach returns a separate filter for each namespace; "" means the hub.
func (r *Registry) FilterEach(ctx context.Context, in ...store.Namespace) (map[store.Namespace]catalog.Filter, error) {
	scopes := []string{HubScope}
	for _, n := range in {
		if n.Group() != "" {
			scopes = append(scopes, string(n))
		}
	}
	found := map[string]SkillSettings{}
	for len(scopes) > 0 {
		n := min(len(scopes), store.MaxNamespaces)
		rows, err := r.db.Settings.List(ctx, scopes[:n]...)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if row.Name != skillsSetting {
				continue
			}
			if found[row.Scope], err = decodeSettings(row); err != nil {
				found[row.Scope] = SkillSettings{Disabled: true} // unreadable settings disable all skills
				r.opts.Logger.Error("skills are switched off: cannot read settings", "scope", row.Scope, "error", err)
			}
		}
		scopes = scopes[n:]
	}
	out := map[store.Namespace]catalog.Filter{}
	for _, n := range in {
		hub, group := found[HubScope], found[string(n)]
		f := catalog.Filter{Disabled: hub.Disabled || group.Disabled}
		var nonEmpty bool
		if f.Allow, nonEmpty = intersectAllowlists(hub.Allow, group.Allow); !nonEmpty {
			f.Disabled = true
		}
		out[n] = f
	}
	return out, nil
}

// intersectAllowlists returns the intersection of two allowlists. An empty argument
// allows everything; nonEmpty is false if the intersection allows nothing. If two
// patterns overlap but neither covers the other, their intersection is treated as
// empty.
func intersectAllowlists(a, b []string) (list []string, nonEmpty bool) {
	switch {
	case len(a) == 0:
		return b, true
	case len(b) == 0:
		return a, true
	}
	seen := map[string]bool{}
	for _, x := range a {
		for _, y := range b {
			entry, ok := intersectEntry(x, y)
			if ok && !seen[entry] && len(list) < MaxAllow {
				seen[entry] = true
				list = append(list, entry)
			}
		}
	}
	return list, len(list) > 0
}

// intersectEntry returns the entry that allows what both x and y allow, and
// whether such an entry exists.
func intersectEntry(x, y string) (string, bool) {
	px, cx, _ := strings.Cut(strings.TrimSpace(x), "@")
	py, cy, _ := strings.Cut(strings.TrimSpace(y), "@")
	name := ""
	switch {
	case coversPattern(px, py):
		name = py
	case coversPattern(py, px):
		name = px
	default:
		return "", false
	}
	if constraint := joinConstraints(cx, cy); constraint != "" {
		return name + "@" + constraint, true
	}
	return name, true
}

// coversPattern reports whether the pattern wide matches each name that narrow
// matches. It may return false for different patterns even if wide covers narrow.
func coversPattern(wide, narrow string) bool {
	if wide == narrow || wide == "*" && !strings.ContainsAny(narrow, `/[\`) {
		return true
	}
	if strings.ContainsAny(narrow, `?[\`) || strings.Contains(narrow, "*") && strings.ContainsAny(wide, `?[\`) {
		return false
	}
	ok, err := path.Match(wide, narrow) // a star in wide matches a star in narrow
	return ok && err == nil
}

// joinConstraints returns a version constraint that requires both a and b. Both
// a and b may contain alternatives.
func joinConstraints(a, b string) string {
	if a == "" || b == "" || a == b {
		return a + strings.TrimPrefix(b, a)
	}
	var out []string
	for x := range strings.SplitSeq(a, "||") {
		for y := range strings.SplitSeq(b, "||") {
			out = append(out, strings.TrimSpace(x)+", "+strings.TrimSpace(y))
		}
	}
	return strings.Join(out, " || ")
}
