package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/secretname"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// VariablePrefix is the prefix of the name under which a platform value is stored
// among the secrets of its owner: ${{task_token}} is the secret
// variable.task_token.
const VariablePrefix = store.PlatformPrefix

// MaxVariable is the maximum size of a platform value in bytes.
const MaxVariable = 8 << 10

// MaxSessionVariables is the maximum number of platform values of a conversation.
const MaxSessionVariables = 64

// maxTarget is the maximum length of a grant's target in bytes.
const maxTarget = 1000

// variableName returns the name of the platform value that a secret holds. ok is
// false for other secrets.
func variableName(secret string) (name string, ok bool) {
	name, ok = strings.CutPrefix(secret, VariablePrefix)
	return name, ok && secretname.IsVariable(name)
}

// checkSecret returns an error if a secret or platform value may not be stored.
func checkSecret(name, value string) error {
	switch _, isVariable := variableName(name); {
	case value == "":
		return errors.New("empty value")
	case isVariable && len(value) > MaxVariable:
		return fmt.Errorf("%d bytes, limit %d", len(value), MaxVariable)
	case isVariable:
		return nil
	case strings.HasPrefix(name, VariablePrefix):
		return errors.New("invalid name of a platform value (an example of a valid name is variable.task_data.region)")
	}
	return secretname.Check(name)
}

// variablePrincipal returns the principal of the grants of an owner's platform
// values. Older versions of the hub do not read these grants.
func variablePrincipal(o Owner) string { return "variable:" + string(o) }

// PlatformScope lists the owners whose platform values a setup may use.
type PlatformScope struct {
	Owners  []Owner // in order of increasing precedence
	Session string  // a conversation of the principal, or ""
}

// platformSource is the owner of an item's platform values.
type platformSource struct {
	owner  Owner            // "" if there are no values
	stored map[string]Owner // owner or conversation that stores a value, by name
	grants map[platformGrant]bool
}

type platformGrant struct{ name, target string }

// grantedNames returns the names of the values that the item may use.
func (f *platformSource) grantedNames() []string {
	names := map[string]bool{}
	for g := range f.grants {
		names[g.name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// platformSource returns the source of the platform values for the item with
// digest d. All of them have the same owner, so that no owner decides where the
// values of another one go. This is the owner with the highest precedence that has
// granted a value: the principal, with the values of the conversation, and then
// those of the scope. If no owner has, the source has no grants and is the owner
// with the highest precedence that has values. Namespaces that are not visible to
// the principal do not count.
func (s *Secrets) platformSource(ctx context.Context, p account.Principal, d policy.Digest, scope PlatformScope) (*platformSource, error) {
	own := NamespaceOwner(store.UserNamespace(string(p.User)))
	visible := s.r.newActor(p).visibleNamespaces()
	found := &platformSource{}
	for _, o := range slices.Backward(append(slices.Clone(scope.Owners), own)) {
		if !o.isResource() && !slices.Contains(visible, store.Namespace(o)) {
			continue
		}
		places := []Owner{o}
		if o == own && scope.Session != "" {
			places = append(places, SessionOwner(scope.Session))
		}
		from := &platformSource{owner: o}
		var err error
		if from.stored, err = s.listVariables(ctx, places); err != nil {
			return nil, err
		}
		if from.grants, err = s.variableGrants(ctx, o, d, from.stored); err != nil {
			return nil, err
		}
		if len(from.grants) > 0 {
			return from, nil
		}
		if found.owner == "" && len(from.stored) > 0 {
			found = from
		}
	}
	return found, nil
}

// listVariables returns which of the owners stores each platform value, by name.
// Later owners take precedence.
func (s *Secrets) listVariables(ctx context.Context, owners []Owner) (map[string]Owner, error) {
	out := map[string]Owner{}
	for _, o := range owners {
		stored, err := s.r.db.Secrets.List(ctx, string(o))
		if err != nil {
			return nil, err
		}
		for _, f := range stored {
			if name, ok := variableName(f.Name); ok {
				out[name] = o
			}
		}
	}
	return out, nil
}

// variableGrants returns the grants of an owner to the item with digest d, as far
// as the values are stored.
func (s *Secrets) variableGrants(ctx context.Context, o Owner, d policy.Digest, stored map[string]Owner) (map[platformGrant]bool, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	grants, err := s.r.db.Grants.Find(ctx, variablePrincipal(o), string(d), "", time.Now())
	if err != nil {
		return nil, err
	}
	out := map[platformGrant]bool{}
	for _, g := range grants {
		data, err := decodeSecretGrant(g)
		if err != nil {
			return nil, err
		}
		name, _ := variableName(g.Name)
		if _, ok := stored[name]; ok {
			out[platformGrant{name, data.Target}] = true
		}
	}
	return out, nil
}

// PlatformOwner returns the owner of the platform values that are granted to the
// item with digest d, or "" if there are none.
func (s *Secrets) PlatformOwner(ctx context.Context, p account.Principal, d policy.Digest, scope PlatformScope) (Owner, error) {
	from, err := s.platformSource(ctx, p, d, scope)
	if err != nil || len(from.grants) == 0 {
		return "", err
	}
	return from.owner, nil
}

// platformValues holds the platform values of a source.
type platformValues struct {
	*platformSource
	values map[string]string
	// showTarget reports whether errors contain the hosts in values without a
	// grant: the principal may list the owner's secrets.
	showTarget bool
}

// withheldValue replaces a value that must not affect errors, because it is not
// granted to the item and the principal may not see where it would go. It is valid
// wherever a value is, and never sent.
const withheldValue = "https://withheld.invalid"

// platformValues returns the values of a source.
func (s *Secrets) platformValues(ctx context.Context, p account.Principal, from *platformSource) (*platformValues, error) {
	v := &platformValues{platformSource: from, values: map[string]string{}}
	if from.owner == "" {
		return v, nil
	}
	a := s.r.newActor(p)
	_, res, err := a.ownerResource(ctx, from.owner)
	if err != nil {
		return nil, err
	}
	v.showTarget = account.Can(p, account.SecretList, res)
	granted := from.grantedNames()
	for name, o := range from.stored {
		if !v.showTarget && !slices.Contains(granted, name) {
			v.values[name] = withheldValue
			continue
		}
		value, err := s.decryptSecret(ctx, a, o, VariablePrefix+name)
		if errors.Is(err, store.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		v.values[name] = value
	}
	return v, nil
}

// addTo adds the platform values to a server's variables.
func (v *platformValues) addTo(to *upstream.Variables) {
	to.Platform = func(name string) (string, bool) { value, ok := v.values[name]; return value, ok }
	to.CheckPlatform = func(name, target string) error {
		if v.grants[platformGrant{name, target}] {
			return nil
		}
		if !v.showTarget {
			return fmt.Errorf("may not be sent to this address; the maintainers of %s can grant it", v.owner)
		}
		return fmt.Errorf("may not be sent to %s: POST /api/v1/secrets/%s%s/grants?owner=%s with this target", target, VariablePrefix, name, v.owner)
	}
}

// PlatformStamp returns a string that changes when a platform value in the scope,
// or a grant of one, changes. It also reports whether the conversation of the
// scope has values. If it has, no other conversation has the same stamp.
func (s *Secrets) PlatformStamp(ctx context.Context, p account.Principal, scope PlatformScope) (stamp string, hasValues bool, err error) {
	revisions, err := s.r.db.Revisions(ctx)
	if err != nil {
		return "", false, err
	}
	if revisions[store.PlatformRevision] > 0 {
		var owners, principals []string
		for _, n := range s.r.newActor(p).visibleNamespaces() {
			owners = append(owners, string(n))
		}
		for _, o := range scope.Owners {
			if o.isResource() {
				owners = append(owners, string(o))
			}
		}
		for _, o := range owners {
			principals = append(principals, variablePrincipal(Owner(o)))
		}
		if stamp, err = s.r.db.Secrets.PlatformState(ctx, owners, principals); err != nil {
			return "", false, err
		}
	}
	if scope.Session == "" {
		return stamp, false, nil
	}
	stored, err := s.r.db.Secrets.List(ctx, string(SessionOwner(scope.Session)))
	for _, v := range stored {
		stamp += fmt.Sprintf("\n%q %q %d", v.Owner, v.Name, v.Updated.UnixNano())
	}
	return stamp, len(stored) > 0, err
}

// Variables returns the values that the item with digest d may use on behalf of a
// principal: secrets, as in [Secrets.GrantedValues], and platform values. It also
// returns the owner of the platform values that are granted to the item, or "". If
// there is one, all secrets belong to the same owner. The caller must authorize the
// use of the item and of the owners' resources.
func (s *Secrets) Variables(ctx context.Context, p account.Principal, d policy.Digest, resource Owner, namespace store.Namespace, scope PlatformScope) (upstream.Variables, Owner, error) {
	from, err := s.platformSource(ctx, p, d, scope)
	if err != nil {
		return upstream.Variables{}, "", err
	}
	values, err := s.platformValues(ctx, p, from)
	if err != nil {
		return upstream.Variables{}, "", err
	}
	owner := Owner("")
	if len(from.grants) > 0 {
		owner = from.owner
	}
	g, err := s.GrantedValues(ctx, p, d, resource, namespace, owner)
	if err != nil {
		return upstream.Variables{}, "", err
	}
	v := upstream.Variables{User: g.User, Secret: g.Secret, HowToSet: HowToSet, Names: func(kind string) []string {
		switch kind {
		case upstream.FromUser:
			return slices.Sorted(maps.Keys(g.user))
		case upstream.FromSecret:
			return slices.Sorted(maps.Keys(g.secret))
		case upstream.FromPlatform:
			return from.grantedNames()
		}
		return nil
	}}
	values.addTo(&v)
	return v, owner, nil
}

func decodeSecretGrant(g store.Grant) (data secretGrant, err error) {
	if err := json.Unmarshal(g.Data, &data); err != nil {
		return data, fmt.Errorf("decode grant of secret %s: %w", g.Name, store.ErrCorrupt)
	}
	return data, nil
}
