package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/store"
)

// maxRedacted is the maximum number of values to redact.
const maxRedacted = 5000

// SecretToRedact is a stored secret that a conversation may contain.
type SecretToRedact struct {
	Owner Owner
	Name  string
	Value string // "" if it cannot be decrypted
	// Own is set if the secret belongs to the user or the conversation, rather than to a
	// group or everyone. It includes secrets of the user's own skills and resources.
	Own bool
	// Skills and Servers are the names of those to which the secret is granted, or was:
	// only from them can it have come into a conversation, unless a user typed it.
	Skills, Servers []string
}

// ToRedact returns the secrets that must not appear in a conversation that its user
// shares: those of the conversation, the user, the user's groups and the public
// namespace, and of the skills and resources in them. They include those of the
// namespaces of the conversation's agent and of the given skills, which it used: the
// user need not be a member, or may have left the group since. They include platform
// values only if their names or values indicate that they are secrets. ToRedact fails
// if there are too many to check all of them. The caller must authorize the use of
// the conversation.
func (s *Secrets) ToRedact(ctx context.Context, p account.Principal, conversation string, skills []string) ([]SecretToRedact, error) {
	shared := []store.Namespace{store.Public}
	for _, group := range slices.Sorted(maps.Keys(p.Groups)) {
		shared = append(shared, store.GroupNamespace(string(group)))
	}
	used, err := s.usedNamespaces(ctx, conversation, skills)
	if err != nil {
		return nil, err
	}
	for _, n := range used {
		if n != store.UserNamespace(string(p.User)) && !slices.Contains(shared, n) {
			shared = append(shared, n)
		}
	}
	var out []SecretToRedact
	for own, namespaces := range map[bool][]store.Namespace{true: {store.UserNamespace(string(p.User))}, false: shared} {
		session := ""
		if own {
			session = conversation
		}
		found, err := s.r.db.Secrets.ListByNamespaces(ctx, session, namespaces, maxRedacted+1)
		if err != nil {
			return nil, err
		}
		if len(found) > maxRedacted {
			return nil, fmt.Errorf("redact secrets: %w (limit %d secrets of one user, and %d of their groups)", store.ErrTooMany, maxRedacted, maxRedacted)
		}
		for _, f := range found {
			value := s.decrypted(f)
			if name, ok := variableName(f.Name); ok && !isSecretVariable(name, value) {
				continue
			}
			out = append(out, SecretToRedact{Owner: Owner(f.Owner), Name: f.Name, Value: value, Own: own})
		}
	}
	slices.SortFunc(out, func(a, b SecretToRedact) int {
		return strings.Compare(string(a.Owner)+"\n"+a.Name, string(b.Owner)+"\n"+b.Name)
	})
	return out, s.addReceivers(ctx, p, out)
}

// usedNamespaces returns the namespaces of a conversation's agent, and of skills that
// have not been deleted.
func (s *Secrets) usedNamespaces(ctx context.Context, conversation string, skills []string) ([]store.Namespace, error) {
	var out []store.Namespace
	c, err := s.r.db.Sessions.Get(ctx, conversation)
	if err != nil {
		return nil, err
	}
	if parts := strings.SplitN(c.Agent, "/", 3); len(parts) == 3 {
		out = append(out, store.Namespace(parts[1]))
	}
	for _, id := range skills {
		switch skill, err := s.r.db.Skills.Get(ctx, id); {
		case err == nil:
			out = append(out, skill.Namespace)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	return out, nil
}

// isSecretVariable reports whether a platform value is a secret: by its name, or
// because it is the address of a webhook or an address with credentials. Other values
// are addresses, names and IDs, which a shared conversation may contain.
func isSecretVariable(name, value string) bool {
	return secretVariable.MatchString(name) || webhook.MatchString(value) || len(scan.URLCredentials(value)) > 0 || len(scan.FindSecrets(value)) > 0
}

var (
	// Short parts of names are compared as words, because they occur in other words.
	secretVariable = lazyregexp.New(`(?i)key|token|secret|pass|auth|cred|pwd|hook|cookie|session|sign|private|cert|jwt|bearer|` +
		`(?:^|[^a-z])(?:pat|pin|otp|totp|dsn|sas|pw)(?:[^a-z]|$)`)
	webhook = lazyregexp.New(`(?i)^https?://\S*hook`)
)

// decrypted returns the value of a secret, or "" if it cannot be decrypted.
func (s *Secrets) decrypted(f store.Secret) string {
	if s.r.opts.Cipher == nil {
		return ""
	}
	value, err := s.r.opts.Cipher.Decrypt(string(f.Encrypted), encryption.Label{Owner: f.Owner, Name: f.Name})
	if err != nil {
		return ""
	}
	return string(value)
}

// addReceivers sets the skills and servers to which secrets are granted. It ignores
// models, whose keys are never part of a conversation.
func (s *Secrets) addReceivers(ctx context.Context, p account.Principal, secrets []SecretToRedact) error {
	grants := map[Owner][]store.Grant{}
	for i := range secrets {
		secret := &secrets[i]
		owner := secret.Owner
		if owner.isSession() { // its values are granted as those of its owner
			owner = NamespaceOwner(store.UserNamespace(string(p.User)))
		}
		found, ok := grants[owner]
		if !ok {
			var err error
			if found, err = s.r.newActor(p).listSecretGrants(ctx, owner); err != nil {
				return err
			}
			grants[owner] = found
		}
		for _, g := range found {
			if g.Name != secret.Name {
				continue
			}
			data, err := decodeSecretGrant(g)
			if err != nil {
				return err
			}
			kind, name, _ := strings.Cut(data.Subject, "/")
			name = name[strings.LastIndexByte(name, '/')+1:]
			switch kind {
			case ModelKind:
			case SkillKind:
				secret.Skills = append(secret.Skills, name)
			default:
				secret.Servers = append(secret.Servers, name)
			}
		}
	}
	return nil
}
