package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// Grant permits a subject to use a secret. It returns [store.ErrConflict] unless
// digest is the subject's current digest. [upstream.Config.Variables] lists where
// a server would send the secret. The principal's own name and ID can be granted
// without a stored value: see [SecretValues].
//
// For a platform value, target is the hosts or the command of a server, as
// [upstream.Config.TargetWith] returns them; for other secrets it is "". A
// principal can also grant platform values that are not stored, because
// conversations may set them.
func (s *Secrets) Grant(ctx context.Context, p account.Principal, o Owner, name string, to Subject, digest policy.Digest, target string) error {
	_, isVariable := variableName(name)
	var problem string
	switch {
	case strings.HasPrefix(target, "https://"), strings.HasPrefix(target, "wss://"):
		problem = "write a target with TLS without its scheme, for example api.example.com"
	case o.isSession():
		problem = "grant the values of a conversation as your own"
	case isVariable && target == "":
		problem = "a platform value needs a target: the host or command that receives it"
	case !isVariable && target != "":
		problem = "only a platform value has a target"
	case len(target) > maxTarget:
		problem = fmt.Sprintf("target of %d bytes, limit %d", len(target), maxTarget)
	}
	if problem != "" {
		return fmt.Errorf("grant secret %.150q: %w: %s", name, store.ErrInvalid, problem)
	}
	return s.update(ctx, p, account.SecretGrant, o, name, func(a actor) (map[string]any, error) {
		own := o == NamespaceOwner(store.UserNamespace(string(p.User)))
		if !a.isSelf(o, name) && !(own && target != "") {
			if _, err := a.Tables.Secrets.Get(ctx, string(o), name); err != nil {
				return nil, err
			}
		}
		is, err := a.withReadScope().subjectDigest(ctx, to)
		if err != nil {
			return nil, err
		}
		if is != digest {
			return nil, fmt.Errorf("grant secret to %s: %w: digest is now %s", to, store.ErrConflict, is.Short())
		}
		data, err := plainjson.Line(secretGrant{Secret: name, Subject: to.String(), By: string(p.User), Target: target})
		if err != nil {
			return nil, err
		}
		g := store.Grant{ID: grantID(o, name, digest, target), Principal: grantPrincipal(o), Subject: string(digest), Name: name, Data: data}
		details := map[string]any{"granted": to.String(), "digest": digest}
		if target != "" {
			g.Principal = variablePrincipal(o)
			details["target"] = target
		}
		have, err := a.listSecretGrants(ctx, o)
		if err != nil {
			return nil, err
		}
		if len(have) >= MaxSecretGrants && !slices.ContainsFunc(have, func(h store.Grant) bool { return h.ID == g.ID }) {
			return nil, fmt.Errorf("grant secret %s: %w: limit %d grants of one owner; revoke old ones", name, store.ErrTooMany, MaxSecretGrants)
		}
		return details, a.Tables.Grants.Put(ctx, g)
	})
}

// Revoke revokes the grant of a secret to the given digest. For a platform value, it
// revokes the grant for a target, or all of them if target is "". It returns
// [store.ErrNotFound] if there is no such grant.
func (s *Secrets) Revoke(ctx context.Context, p account.Principal, o Owner, name string, digest policy.Digest, target string) error {
	return s.update(ctx, p, account.SecretGrant, o, name, func(a actor) (map[string]any, error) {
		details := map[string]any{"revoked": digest}
		if target != "" {
			details["target"] = target
		}
		if _, ok := variableName(name); !ok || target != "" {
			_, err := a.Tables.Grants.Delete(ctx, grantID(o, name, digest, target))
			return details, err
		}
		grants, err := a.listGrants(ctx, variablePrincipal(o))
		found := false
		for _, g := range grants { // one for each target
			if err == nil && g.Name == name && g.Subject == string(digest) {
				found = true
				_, err = a.Tables.Grants.Delete(ctx, g.ID)
			}
		}
		if err == nil && !found {
			err = fmt.Errorf("grant of %s to %s: %w", name, digest.Short(), store.ErrNotFound)
		}
		return details, err
	})
}

// Grants returns the grants of an owner's secrets, oldest first.
func (s *Secrets) Grants(ctx context.Context, p account.Principal, o Owner) ([]SecretGrant, error) {
	a, err := s.newLister(ctx, p, o)
	if err != nil {
		return nil, err
	}
	found, err := a.listSecretGrants(ctx, o)
	var out []SecretGrant
	for _, g := range found {
		data, err := decodeSecretGrant(g)
		if err != nil {
			return nil, err
		}
		out = append(out, SecretGrant{g.Name, data.Subject, policy.Digest(g.Subject), data.Target, data.By, g.Created})
	}
	return out, err
}

// secretGrant is the data stored with a grant.
type secretGrant struct {
	Secret  string `json:"secret"`
	Subject string `json:"subject"`
	By      string `json:"by"`
	Target  string `json:"target,omitempty"`
}

func grantPrincipal(o Owner) string { return "secret:" + string(o) }

// grantID returns the ID of a grant. target is "" unless name is that of a platform
// value.
func grantID(o Owner, name string, d policy.Digest, target string) string {
	if target != "" {
		name += "\n" + target
	}
	h := sha256.Sum256([]byte(string(o) + "\n" + name + "\n" + string(d)))
	return "secret:" + hex.EncodeToString(h[:])
}

func (a actor) listSecretGrants(ctx context.Context, o Owner) ([]store.Grant, error) {
	secrets, err := a.listGrants(ctx, grantPrincipal(o))
	if err != nil {
		return nil, err
	}
	variables, err := a.listGrants(ctx, variablePrincipal(o))
	return append(secrets, variables...), err
}

func (a actor) listGrants(ctx context.Context, principal string) (out []store.Grant, err error) {
	for after := int64(0); ; {
		found, err := a.Tables.Grants.List(ctx, principal, after)
		if err != nil || len(found) == 0 {
			return out, err
		}
		out, after = append(out, found...), found[len(found)-1].Seq
	}
}

// isSelf reports whether the named secret stands for the actor's own name or ID,
// which need not be stored.
func (a actor) isSelf(o Owner, name string) bool {
	return o == NamespaceOwner(store.UserNamespace(string(a.p.User))) && (name == "name" || name == "id")
}

// SubjectDigest returns a subject's current digest, for [Secrets.Grant]. For a
// skill, it is the digest of the current version.
func (r *Registry) SubjectDigest(ctx context.Context, p account.Principal, subject Subject) (policy.Digest, error) {
	return r.newActor(p).subjectDigest(ctx, subject)
}

func (a actor) subjectDigest(ctx context.Context, subject Subject) (policy.Digest, error) {
	switch subject.Kind {
	case SkillKind:
		s, err := a.findSkill(ctx, account.SkillRead, store.UserNamespace(string(a.p.User)), subject.Name, SkillRef{Namespace: subject.Namespace}, func(string) bool { return true })
		if err != nil {
			return "", err
		}
		return policy.Digest(s.Digest), nil
	case ModelKind:
		k, err := a.getKind(ctx, account.KindRead, subject.Kind, subject.Namespace, subject.Name)
		if err != nil {
			return "", err
		}
		m, err := a.modelChoice(ctx, k)
		if err != nil {
			return "", err
		}
		return m.Digest, nil
	}
	s, err := a.getServer(ctx, subject)
	if err != nil {
		return "", err
	}
	return s.PolicyDigest(), nil
}
