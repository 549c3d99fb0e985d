package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// ErrNoKey means that the hub has no encryption key for secrets.
var ErrNoKey = errors.New("no encryption key configured for secrets")

// MaxSecrets is the maximum number of secrets per owner.
const MaxSecrets = 200

// MaxSecretGrants is the maximum number of grants per owner.
const MaxSecretGrants = 2000

// Owner identifies the owner of a secret: a namespace, a skill, a resource or a
// conversation.
type Owner string

// NamespaceOwner returns the owner of a namespace's secrets.
func NamespaceOwner(in store.Namespace) Owner { return Owner(in) }

// SkillOwner returns the owner of a skill's secrets.
func SkillOwner(id string) Owner { return Owner(skillPrefix + id) }

const skillPrefix = "skill:"

// ServerOwner returns the owner of a resource's secrets. id identifies an
// MCPServer, Ghost, Bot or Model.
func ServerOwner(id string) Owner { return Owner(resourcePrefix + id) }

const resourcePrefix = "server:"

// sessionPrefix is the prefix of owners that are conversations.
const sessionPrefix = "session:"

// SessionOwner returns the owner of a conversation's platform values. It owns no
// other secrets and has no grants.
func SessionOwner(id string) Owner { return Owner(sessionPrefix + id) }

func (o Owner) isSession() bool { return strings.HasPrefix(string(o), sessionPrefix) }

func (o Owner) isSkill() bool { return strings.HasPrefix(string(o), skillPrefix) }

// isResource reports whether o owns the secrets of a resource, and not of a
// namespace.
func (o Owner) isResource() bool { return strings.HasPrefix(string(o), resourcePrefix) }

// Subject identifies the recipient of a secret or the subject of a review: a
// skill, a Model, an MCPServer, or a server of a Ghost or Bot.
type Subject struct {
	Kind      string
	Namespace string // as written in documents
	Name      string
	Server    string // only for a server of a Ghost or Bot
}

func (s Subject) String() string {
	parts := []string{s.Kind, s.Namespace, s.Name, s.Server}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "/")
}

// Secret describes a stored secret. It does not contain the value.
type Secret struct {
	Name      string    `json:"name"`
	UpdatedBy string    `json:"updatedBy"`
	Updated   time.Time `json:"updated"`
}

// SecretGrant permits a subject to use a secret.
type SecretGrant struct {
	Secret  string        `json:"secret"`
	Subject string        `json:"subject" doc:"Who may use it, as named at the time of the grant"`
	Digest  policy.Digest `json:"digest" doc:"Digest of the item that may use the secret; a change invalidates the grant"`
	Target  string        `json:"target,omitempty" doc:"Hosts or command to which it may be sent; only for a platform value"`
	By      string        `json:"by"`
	Created time.Time     `json:"created"`
}

// Secrets manages values that users can set but not read. A subject receives only
// the secrets granted to its current digest. Secrets is safe for concurrent use.
type Secrets struct {
	r  *Registry
	tx *store.Tx // if not nil, changes are part of this transaction
}

// Secrets returns the secret store of the hub.
func (r *Registry) Secrets() *Secrets { return &Secrets{r: r} }

// ownerResource returns an owner's namespace, and the resource for authorizing
// access to the owner's secrets.
func (a actor) ownerResource(ctx context.Context, o Owner) (store.Namespace, account.Resource, error) {
	in, by := store.Namespace(o), ""
	if id, ok := strings.CutPrefix(string(o), skillPrefix); ok {
		s, err := a.Skills.Get(ctx, id)
		if err != nil {
			return "", account.Resource{}, err
		}
		in, by = s.Namespace, s.CreatedBy
	} else if id, ok := strings.CutPrefix(string(o), resourcePrefix); ok {
		k, err := a.Kinds.Get(ctx, id)
		if err != nil {
			return "", account.Resource{}, err
		}
		in, by = k.Namespace, k.CreatedBy
	} else if id, ok := strings.CutPrefix(string(o), sessionPrefix); ok {
		s, err := a.Sessions.Get(ctx, id)
		if err != nil {
			return "", account.Resource{}, err
		}
		in, by = store.UserNamespace(s.Owner), s.Owner
	} else if in != store.Public && in.User() == "" && in.Group() == "" {
		return "", account.Resource{}, fmt.Errorf("secret owner %.100q: %w", string(o), store.ErrInvalid)
	}
	return in, accountResource(in, by), nil
}

// update authorizes a change to an owner's secrets and calls change in a
// transaction that also stores the audit record. change returns the details for
// that record. Within s.tx, denials are not recorded.
func (s *Secrets) update(ctx context.Context, p account.Principal, action account.Action, o Owner, name string, change func(actor) (map[string]any, error)) error {
	subject := "secret/" + string(o) + "/" + name
	authorized := func(tx *store.Tx) error {
		a := actor{Tables: tx.Tables, p: p}
		in, res, err := a.ownerResource(ctx, o)
		if err == nil {
			err = a.checkAccess(action, res, "secret", name)
		}
		if err != nil {
			return err
		}
		details, err := change(a)
		if err != nil {
			return err
		}
		return a.recordAllowed(ctx, action, in, subject, details)
	}
	if s.tx != nil {
		return authorized(s.tx)
	}
	return s.r.recordDenied(ctx, p, action, subject, s.r.db.Tx(ctx, authorized))
}

// Set stores a value of up to [encryption.MaxValue] bytes, replacing any previous
// value. Existing grants of the secret remain valid. Set returns a
// [*quota.ExceededError] if the owner's namespace may not store the value.
func (s *Secrets) Set(ctx context.Context, p account.Principal, o Owner, name, value string) error {
	if s.r.opts.Cipher == nil {
		return ErrNoKey
	}
	err := checkSecret(name, value)
	_, isVariable := variableName(name)
	switch {
	case err != nil:
	case o.isSession() && !isVariable:
		err = errors.New("invalid name: the secrets of a conversation are platform values, such as variable.task_token")
	case o.isSkill() && isVariable:
		err = errors.New("a skill cannot have platform values; set them for its group")
	}
	if err != nil {
		return fmt.Errorf("set secret %.150q: %w: %w", name, store.ErrInvalid, err)
	}
	sealed, err := s.r.opts.Cipher.Encrypt([]byte(value), encryption.Label{Owner: string(o), Name: name})
	if err != nil {
		return fmt.Errorf("set secret %s: %w: %w", name, store.ErrInvalid, err)
	}
	return s.update(ctx, p, account.SecretWrite, o, name, func(a actor) (map[string]any, error) {
		have, err := a.Tables.Secrets.List(ctx, string(o))
		if err != nil {
			return nil, err
		}
		most := MaxSecrets
		if o.isSession() {
			most = MaxSessionVariables
		}
		if len(have) >= most && !slices.ContainsFunc(have, func(s store.Secret) bool { return s.Name == name }) {
			return nil, fmt.Errorf("set secret %s: %w: limit %d secrets", name, store.ErrTooMany, most)
		}
		if err := s.checkQuota(ctx, a, o, name, len(sealed)); err != nil {
			return nil, err
		}
		return nil, a.Tables.Secrets.Put(ctx, store.Secret{Owner: string(o), Name: name, Encrypted: []byte(sealed), KeyID: s.r.opts.Cipher.KeyID(), UpdatedBy: string(p.User)})
	})
}

// checkQuota returns a [*quota.ExceededError] if the namespace of an owner may not
// store an encrypted value of the given size.
func (s *Secrets) checkQuota(ctx context.Context, a actor, o Owner, name string, size int) error {
	in, _, err := a.ownerResource(ctx, o)
	if err != nil {
		return err
	}
	old, err := a.Tables.Secrets.Get(ctx, string(o), name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return s.r.opts.Quotas.Check(ctx, &a.Tables, in, quota.Amounts{Bytes: int64(size - len(old.Encrypted))})
}

// newLister returns an actor that may list the secrets of an owner.
func (s *Secrets) newLister(ctx context.Context, p account.Principal, o Owner) (actor, error) {
	a := s.r.newActor(p)
	_, res, err := a.ownerResource(ctx, o)
	if err == nil {
		err = a.checkAccess(account.SecretList, res, "secrets of", string(o))
	}
	return a, err
}

// List describes an owner's secrets, without their values.
func (s *Secrets) List(ctx context.Context, p account.Principal, o Owner) ([]Secret, error) {
	a, err := s.newLister(ctx, p, o)
	if err != nil {
		return nil, err
	}
	found, err := a.Tables.Secrets.List(ctx, string(o))
	var out []Secret
	for _, f := range found {
		out = append(out, Secret{f.Name, f.UpdatedBy, f.Updated})
	}
	return out, err
}

// Delete deletes a secret and its grants.
func (s *Secrets) Delete(ctx context.Context, p account.Principal, o Owner, name string) error {
	return s.update(ctx, p, account.SecretWrite, o, name, func(a actor) (map[string]any, error) {
		if err := a.Tables.Secrets.Delete(ctx, string(o), name); err != nil {
			return nil, err
		}
		grants, err := a.listSecretGrants(ctx, o)
		for _, g := range grants {
			if err == nil && g.Name == name {
				_, err = a.Tables.Grants.Delete(ctx, g.ID)
			}
		}
		return map[string]any{"deleted": true}, err
	})
}

// SecretValues holds the secret values granted to a subject.
type SecretValues struct{ user, secret map[string]string }

// User returns the value of ${{user.NAME}}: a secret granted by the acting user,
// or that user's name or ID.
func (g *SecretValues) User(name string) (string, bool) { v, ok := g.user[name]; return v, ok }

// Secret returns the value of ${{secrets.NAME}}.
func (g *SecretValues) Secret(name string) (string, bool) { v, ok := g.secret[name]; return v, ok }

// GrantedValues returns the values that the resource with digest d, in the given
// namespace, may use on behalf of a principal. The principal's own secrets take
// precedence over those of the resource, which take precedence over those of its
// namespace. If only is not "", all secrets belong to this owner instead; the
// principal's own name and ID are always included. The caller must authorize the
// use of the resource.
func (s *Secrets) GrantedValues(ctx context.Context, p account.Principal, d policy.Digest, resource Owner, namespace store.Namespace, only Owner) (*SecretValues, error) {
	a := s.r.newActor(p)
	if err := a.requireSignIn(account.KindUse); err != nil {
		return nil, err
	}
	own := NamespaceOwner(store.UserNamespace(string(p.User)))
	owners := []Owner{NamespaceOwner(namespace), resource, own} // later owners take precedence
	if only != "" {
		owners = []Owner{only}
		if only != own {
			owners = append(owners, own) // for the principal's own name and ID
		}
	}
	out := &SecretValues{map[string]string{}, map[string]string{}}
	for _, o := range owners {
		if o == "" {
			continue
		}
		grants, err := a.Tables.Grants.Find(ctx, grantPrincipal(o), string(d), "", time.Now())
		if err != nil {
			return nil, err
		}
		for _, g := range grants {
			if only != "" && o != only && !a.isSelf(o, g.Name) {
				continue
			}
			value, err := s.decryptSecret(ctx, a, o, g.Name)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if o == own {
				out.user[g.Name] = value
			}
			if !a.isSelf(o, g.Name) {
				out.secret[g.Name] = value
			}
		}
	}
	return out, nil
}

// decryptSecret returns the plaintext value of a secret.
func (s *Secrets) decryptSecret(ctx context.Context, a actor, o Owner, name string) (string, error) {
	kept, err := a.Tables.Secrets.Get(ctx, string(o), name)
	if errors.Is(err, store.ErrNotFound) && a.isSelf(o, name) {
		if name == "id" {
			return string(a.p.User), nil
		}
		return a.p.Name, nil
	}
	if err != nil {
		return "", err
	}
	if s.r.opts.Cipher == nil {
		return "", fmt.Errorf("decrypt secret %s: %w", name, ErrNoKey)
	}
	value, err := s.r.opts.Cipher.Decrypt(string(kept.Encrypted), encryption.Label{Owner: string(o), Name: name})
	if err != nil {
		return "", fmt.Errorf("decrypt secret %s: %w", name, err)
	}
	return string(value), nil
}

// ServerVariables returns the values for [upstream.Config.Resolve] when a server is
// used on behalf of a principal, in the given conversation or, if session is "",
// outside of conversations. The principal must be allowed to use the server.
func (s *Secrets) ServerVariables(ctx context.Context, p account.Principal, server Server, session string) (upstream.Variables, error) {
	in, thing := server.In, Owner("")
	if strings.HasPrefix(server.ID, trialPrefix) {
		return upstream.Variables{}, fmt.Errorf("MCP server %s: its values apply after you save the agent: %w", server.Name, store.ErrNotFound)
	}
	if server.ID == "" {
		in = store.Public
	} else {
		k, err := s.r.db.Kinds.Get(ctx, server.ID)
		if err == nil {
			err = s.r.newActor(p).checkAccess(account.KindUse, accountResource(k.Namespace, k.CreatedBy), k.Kind, k.Name)
		}
		if err != nil {
			return upstream.Variables{}, err
		}
		thing = ServerOwner(server.ID)
	}
	v, _, err := s.Variables(ctx, p, server.PolicyDigest(), thing, in, PlatformScope{Owners: []Owner{NamespaceOwner(in), thing}, Session: session})
	if err != nil {
		return upstream.Variables{}, fmt.Errorf("get values for MCP server %s: %w", server.Name, err)
	}
	return v, nil
}

// HowToSet returns instructions for setting a server variable on a hub. Use it
// as HowToSet in [upstream.Variables].
func HowToSet(owner upstream.Owner, kind, name string) string {
	if kind == upstream.FromPlatform {
		name = VariablePrefix + name
		document := "a Ghost or Bot" // that uses the skill
		if _, _, ok := owner.Skill(); !ok {
			document = "an MCPServer"
			if kind, _, ok := strings.Cut(string(owner), " "); ok && kind != ServerKind {
				document = "a " + kind
			}
		}
		return fmt.Sprintf("PUT /api/v1/secrets/%s?owner=OWNER, where OWNER is a group, server:ID of %s, or session:ID, then POST /api/v1/secrets/%s/grants with the same owner, or without one for a session", name, document, name)
	}
	return fmt.Sprintf("PUT /api/v1/secrets/%s, then POST /api/v1/secrets/%s/grants", name, name)
}

// ModelKey returns a model's API key, or "" if it needs none. It returns
// [policy.ErrNotGranted] if the key is not granted to the model.
func (s *Secrets) ModelKey(ctx context.Context, p account.Principal, m *ModelChoice) (string, error) {
	name, ok := parseSecretRef(m.Key)
	if !ok {
		return "", nil
	}
	k, err := s.r.db.Kinds.Get(ctx, m.ID)
	if err == nil {
		err = s.r.newActor(p).checkAccess(account.KindUse, accountResource(k.Namespace, k.CreatedBy), ModelKind, m.Name)
	}
	if err != nil {
		return "", err
	}
	g, err := s.GrantedValues(ctx, p, m.Digest, ServerOwner(m.ID), m.In, "")
	if err != nil {
		return "", fmt.Errorf("get key of Model %q: %w", m.Name, err)
	}
	if value, ok := g.Secret(name); ok {
		return value, nil
	}
	return "", fmt.Errorf("get key of Model %q: secret %s: %w", m.Name, name, policy.ErrNotGranted)
}
