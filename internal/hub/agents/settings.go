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
	"github.com/loadout-dev/loadout/internal/store"
)

// HubScope is the scope of settings that are for everybody; the others are groups'.
const HubScope = "hub"

// skillsSetting is the name under which they are kept.
const skillsSetting = "skills"

// Bounds of an allow-list.
const (
	MaxAllow      = 500
	maxAllowBytes = 300 // of one entry
)

// SkillSettings say which skills there are: of a hub for everybody, of a group for what
// is the group's, its agents and skills.
type SkillSettings struct {
	// Disabled is the kill switch: no skill is there, and what runs is stopped.
	Disabled bool `json:"disabled"`
	// Allow, where not empty, are the only skills that are available, as
	// [catalog.Filter] reads them.
	Allow []string `json:"allow,omitempty"`
	// Generation is how often they were changed, 0 for never: it has to be that of what
	// was read when they are changed again.
	Generation int64 `json:"-"`
}

// resolveScope is a scope as it is kept, and what account knows of it.
func (a actor) resolveScope(ctx context.Context, written string) (string, account.Resource, error) {
	if written == HubScope {
		return HubScope, account.Resource{Shared: true}, a.requireSignIn(account.SettingsRead)
	}
	in, err := a.resolveNamespace(ctx, written)
	if err != nil {
		return "", account.Resource{}, err
	}
	if in.Group() == "" {
		return "", account.Resource{}, fmt.Errorf("settings of %.100q: %w: they are the hub's or a group's", written, store.ErrInvalid)
	}
	return string(in), resourceOf(in, ""), nil
}

// SkillSettings returns the settings of a scope, [HubScope] or a group.
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

// SetSkillSettings changes the settings of a scope, in force on all nodes within twice
// [Options.Poll]. One that somebody changed in the meantime is a [store.ErrConflict].
func (r *Registry) SetSkillSettings(ctx context.Context, p account.Principal, scope string, s SkillSettings) error {
	if err := checkAllow(s.Allow); err != nil {
		return err
	}
	err := r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{tx.Tables, p}
		kept, res, err := a.resolveScope(ctx, scope)
		if err == nil {
			err = a.checkAccess(account.SettingsWrite, res, "settings of", scope)
		}
		if err != nil {
			return err
		}
		value, err := encodeJSON(s)
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

// SettingsStream is the stream of the bus on which nodes are told that settings changed,
// with their revision.
const SettingsStream = "hub/settings"

// publishChange wakes this node and others. What is lost is found by their poll.
func (r *Registry) publishChange(ctx context.Context) {
	r.watch.wake()
	if r.opts.Bus == nil {
		return
	}
	revisions, err := r.db.Revisions(ctx)
	if err != nil {
		r.opts.Logger.Warn("other nodes are not told of changed settings, and will find them", "error", err)
		return
	}
	r.opts.Bus.Publish(SettingsStream, revisions[store.SettingsRevision])
}

// getSettings are the settings of a scope, zero where none were made.
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
		return s, fmt.Errorf("settings of %s: %w: %w", kept.Scope, store.ErrCorrupt, err)
	}
	s.Generation = kept.Generation
	return s, checkAllow(s.Allow)
}

// checkAllow says whether an allow-list can be read.
func checkAllow(allow []string) error {
	if len(allow) > MaxAllow {
		return fmt.Errorf("allow-list: %w: more than %d entries", store.ErrInvalid, MaxAllow)
	}
	for _, entry := range allow {
		if len(entry) > maxAllowBytes {
			return fmt.Errorf("allow-list: %w: an entry of more than %d bytes", store.ErrInvalid, maxAllowBytes)
		}
	}
	// A catalog of nothing reads it as the others will.
	if _, err := catalog.New(nil, &catalog.Options{Filter: catalog.Filter{Allow: allow}}); err != nil {
		return fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return nil
}

// Filter is what the settings let through for what belongs to namespaces, as a Bot and
// its Ghost do: those of the hub, and of each group among them. It asks the database.
// Where that cannot answer, nothing is let through.
func (r *Registry) Filter(ctx context.Context, in ...store.Namespace) (catalog.Filter, error) {
	filters, err := r.FilterEach(ctx, append([]store.Namespace{""}, in...)...)
	if err != nil {
		return catalog.Filter{Disabled: true}, err
	}
	return combineFilters(filters, in), nil
}

// combineFilters is what the filters of the hub and of namespaces all let through. That of a
// group has that of the hub in it.
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
		allow, some := intersectAllow(out.Allow, f.Allow)
		out = catalog.Filter{Disabled: out.Disabled || f.Disabled || !some, Allow: allow}
	}
	return out
}

// FilterEach is what the settings of the hub and of a group let through, for each of some
// namespaces by itself; "" is the hub alone.
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
				found[row.Scope] = SkillSettings{Disabled: true} // what cannot be read lets nothing through
				r.opts.Logger.Error("skills are switched off: their settings cannot be read", "scope", row.Scope, "error", err)
			}
		}
		scopes = scopes[n:]
	}
	out := map[store.Namespace]catalog.Filter{}
	for _, n := range in {
		hub, group := found[HubScope], found[string(n)]
		f := catalog.Filter{Disabled: hub.Disabled || group.Disabled}
		var some bool
		if f.Allow, some = intersectAllow(hub.Allow, group.Allow); !some {
			f.Disabled = true
		}
		out[n] = f
	}
	return out, nil
}

// intersectAllow is an allow-list of what two of them let through, of which an empty one lets
// through everything; some is false where nothing is. Of two patterns of which none
// covers the other nothing is let through.
func intersectAllow(a, b []string) (list []string, some bool) {
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

// intersectEntry is the entry for what two entries let through.
func intersectEntry(x, y string) (string, bool) {
	px, cx, _ := strings.Cut(strings.TrimSpace(x), "@")
	py, cy, _ := strings.Cut(strings.TrimSpace(y), "@")
	name := ""
	switch {
	case covers(px, py):
		name = py
	case covers(py, px):
		name = px
	default:
		return "", false
	}
	if constraint := joinConstraints(cx, cy); constraint != "" {
		return name + "@" + constraint, true
	}
	return name, true
}

// covers reports whether each name that narrow matches is matched by wide. It may say
// no where that is so, but for equal patterns and for names.
func covers(wide, narrow string) bool {
	if wide == narrow || wide == "*" && !strings.ContainsAny(narrow, `/[\`) {
		return true
	}
	if strings.ContainsAny(narrow, `?[\`) || strings.Contains(narrow, "*") && strings.ContainsAny(wide, `?[\`) {
		return false
	}
	ok, err := path.Match(wide, narrow) // a star of narrow is matched by one of wide
	return ok && err == nil
}

// joinConstraints is the constraint that asks for what two do, of which each is alternatives of
// conditions.
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
