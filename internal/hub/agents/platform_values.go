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
		return errors.New("invalid name of a platform value: want, for example, variable.task_data.region")
	}
	return secretname.Check(name)
}

// variablePrincipal returns the principal of the grants of an owner's platform
// values. Older versions of the hub do not read these grants.
func variablePrincipal(o Owner) string { return "variable:" + string(o) }

// PlatformScope lists the owners whose platform values a setup may use.
type PlatformScope struct {
	Owners  []Owner // in order of increasing precedence
	Session string  // the conversation, or ""
}

// PlatformValues holds the platform values of one owner, and the targets to which
// the item with a digest may send them.
type PlatformValues struct {
	owner  Owner // who granted the values; "" if there are none
	grants map[platformGrant]bool
	// mayGrant reports whether the principal may see where the values would go.
	mayGrant bool
	values   map[string]string
}

type platformGrant struct{ name, target string }

// platformValues returns the platform values for the item with digest d. All of
// them have the same owner, so that no owner decides where the values of another
// one go. This is the owner with the highest precedence that has granted a value:
// the principal, with the values of the conversation, and then those of the scope.
// If no owner has, the values without grants are those of the owner with the
// highest precedence. Namespaces that are not visible to the principal do not
// count.
func (s *Secrets) platformValues(ctx context.Context, p account.Principal, d policy.Digest, scope PlatformScope) (*PlatformValues, error) {
	own := NamespaceOwner(store.UserNamespace(string(p.User)))
	visible := s.r.newActor(p).visibleNamespaces()
	found := &PlatformValues{}
	for _, o := range slices.Backward(append(slices.Clone(scope.Owners), own)) {
		if !o.isResource() && !slices.Contains(visible, store.Namespace(o)) {
			continue
		}
		stored := []Owner{o}
		if o == own && scope.Session != "" {
			stored = append(stored, SessionOwner(scope.Session))
		}
		values, err := s.decryptVariables(ctx, p, stored)
		if err != nil {
			return nil, err
		}
		grants, err := s.variableGrants(ctx, o, d, values)
		if err != nil {
			return nil, err
		}
		if len(grants) > 0 {
			found = &PlatformValues{owner: o, values: values, grants: grants}
			break
		}
		if found.owner == "" && len(values) > 0 {
			found = &PlatformValues{owner: o, values: values}
		}
	}
	if found.owner != "" {
		_, res, err := s.r.newActor(p).ownerResource(ctx, found.owner)
		if err != nil {
			return nil, err
		}
		found.mayGrant = account.Can(p, account.SecretList, res)
	}
	return found, nil
}

// decryptVariables returns the platform values of owners. Later owners take
// precedence.
func (s *Secrets) decryptVariables(ctx context.Context, p account.Principal, owners []Owner) (map[string]string, error) {
	out := map[string]string{}
	for _, o := range owners {
		stored, err := s.r.db.Secrets.List(ctx, string(o))
		if err != nil {
			return nil, err
		}
		for _, f := range stored {
			name, ok := variableName(f.Name)
			if !ok {
				continue
			}
			value, err := s.decryptSecret(ctx, s.r.newActor(p), o, f.Name)
			if errors.Is(err, store.ErrNotFound) { // deleted meanwhile
				continue
			}
			if err != nil {
				return nil, err
			}
			out[name] = value
		}
	}
	return out, nil
}

// variableGrants returns the grants of an owner to the item with digest d, as far
// as the owner has the values.
func (s *Secrets) variableGrants(ctx context.Context, o Owner, d policy.Digest, values map[string]string) (map[platformGrant]bool, error) {
	if len(values) == 0 {
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
		if _, ok := values[name]; ok {
			out[platformGrant{name, data.Target}] = true
		}
	}
	return out, nil
}

// addTo adds the platform values to v.
func (v *PlatformValues) addTo(to *upstream.Variables) {
	to.Platform = func(name string) (string, bool) { value, ok := v.values[name]; return value, ok }
	to.CheckPlatform = func(name, target string) error {
		if v.grants[platformGrant{name, target}] {
			return nil
		}
		if !v.mayGrant {
			return fmt.Errorf("may not be sent there: ask who manages the secrets of %s to grant it", v.owner)
		}
		return fmt.Errorf("may not be sent to %s: POST /api/v1/secrets/%s%s/grants?owner=%s with this target", target, VariablePrefix, name, v.owner)
	}
}

// grantedNames returns the names of the values that the item may use.
func (v *PlatformValues) grantedNames() []string {
	names := map[string]bool{}
	for g := range v.grants {
		names[g.name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// PlatformStamp returns a string that changes when a platform value or a grant of
// one changes, and reports whether the conversation with the given ID has values.
// If it has, no other conversation has the same stamp.
func (s *Secrets) PlatformStamp(ctx context.Context, session string) (stamp string, hasValues bool, err error) {
	revisions, err := s.r.db.Revisions(ctx)
	if err != nil {
		return "", false, err
	}
	stamp = fmt.Sprint(revisions[store.PlatformRevision])
	if session == "" {
		return stamp, false, nil
	}
	stored, err := s.r.db.Secrets.List(ctx, string(SessionOwner(session)))
	for _, v := range stored {
		stamp += fmt.Sprintf("\n%q %q %d", v.Owner, v.Name, v.Updated.UnixNano())
	}
	return stamp, len(stored) > 0, err
}

// Variables returns the values that the item with digest d may use on behalf of a
// principal: secrets, as in [Secrets.GrantedValues], and platform values. An item
// to which platform values are granted gets only secrets of the same owner. The
// caller must authorize the use of the item and of the owners' resources.
func (s *Secrets) Variables(ctx context.Context, p account.Principal, d policy.Digest, resource Owner, namespace store.Namespace, scope PlatformScope) (upstream.Variables, error) {
	values, err := s.platformValues(ctx, p, d, scope)
	if err != nil {
		return upstream.Variables{}, err
	}
	only := Owner("")
	if len(values.grants) > 0 {
		only = values.owner
	}
	g, err := s.grantedValues(ctx, p, d, resource, namespace, only)
	if err != nil {
		return upstream.Variables{}, err
	}
	v := upstream.Variables{User: g.User, Secret: g.Secret, HowToSet: HowToSet, Names: func(kind string) []string {
		switch kind {
		case upstream.FromUser:
			return slices.Sorted(maps.Keys(g.user))
		case upstream.FromSecret:
			return slices.Sorted(maps.Keys(g.secret))
		case upstream.FromPlatform:
			return values.grantedNames()
		}
		return nil
	}}
	values.addTo(&v)
	return v, nil
}

// decodeSecretGrant decodes the data stored with a grant.
func decodeSecretGrant(g store.Grant) (data secretGrant, err error) {
	if err := json.Unmarshal(g.Data, &data); err != nil {
		return data, fmt.Errorf("decode grant of secret %s: %w", g.Name, store.ErrCorrupt)
	}
	return data, nil
}
