package agents

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// AvailableModel is a Model that the user is allowed to select.
type AvailableModel struct {
	*ModelChoice
	Namespace string // as written in documents
	// NeedsKey reports whether the model refers to an API key. HasKey reports
	// whether the user has that key.
	NeedsKey, HasKey bool
}

// Host returns the host in the model's address, or "" if the vendor's is used.
func (m *Model) Host() string {
	u, err := url.Parse(m.BaseURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// ReadsImages reports whether the model reads images, according to its document or
// else to its name.
func (m *ModelChoice) ReadsImages() bool {
	if m.Images != nil {
		return *m.Images
	}
	return vendors.ReadsImages(m.ReportedName())
}

// SecretName returns the name of the secret that contains the API key, or "" if the
// model needs none.
func (m *Model) SecretName() string {
	name, _ := parseSecretRef(m.Key)
	return name
}

// DefaultModelName is the name of the public Model that an administrator connected
// for agents without a Model. The model in the operator's configuration takes
// precedence over it.
const DefaultModelName = "default"

// DefaultModel returns the public Model named [DefaultModelName], or nil if there is
// none or it is damaged. Connecting a model repairs it.
func (r *Registry) DefaultModel(ctx context.Context, p account.Principal) (*AvailableModel, error) {
	a := r.newActor(p)
	if err := a.requireSignIn(account.KindRead); err != nil {
		return nil, err
	}
	found, err := a.Kinds.Find(ctx, ModelKind, DefaultModelName, []store.Namespace{store.Public})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	m, err := r.availableModel(ctx, a, found[0])
	if isCorrupt(err) {
		r.opts.Logger.Warn("the connected model is not used: its document is damaged", "id", found[0].ID, "error", err)
		return nil, nil
	}
	return m, err
}

// defaultModelKey is the name of the secret with the key of the default Model.
const defaultModelKey = "API_KEY"

// ParseDefaultModel returns the document of the default Model. hasKey reports whether
// it has an API key.
func ParseDefaultModel(spec Model, hasKey bool) (*Document, error) {
	if hasKey {
		spec.Key = "${{secrets." + defaultModelKey + "}}"
	}
	raw, err := plainjson.Line(map[string]any{"apiVersion": APIVersion, "kind": ModelKind, "metadata": map[string]string{"name": DefaultModelName, "namespace": string(store.Public)}, "spec": spec})
	if err != nil {
		return nil, err
	}
	return Parse(raw, "model.json")[0], nil
}

// DefaultModelError is returned if the current default Model is not the one that the
// caller wants to replace.
type DefaultModelError struct{ Model *ModelChoice }

func (e *DefaultModelError) Error() string {
	return fmt.Sprintf("the public Model %s is already %s", DefaultModelName, e.Model.ReportedName())
}

// ConnectDefaultModel stores the default Model and its API key, or neither. replace is
// the digest of the Model to replace, or "" if there is none: if there is another one
// by now, ConnectDefaultModel returns a [*DefaultModelError]. The key replaces the
// previous one and is granted to this definition only: another address does not get
// it. The result reports a refused document.
func (r *Registry) ConnectDefaultModel(ctx context.Context, p account.Principal, d *Document, key string, replace policy.Digest) (*Result, error) {
	check := func(tx *store.Tx) error {
		k, err := tx.Kinds.ByName(ctx, ModelKind, store.Public, DefaultModelName)
		if err != nil {
			return ignoreNotFound(err)
		}
		m, err := actor{Tables: tx.Tables, p: p}.modelChoice(ctx, k)
		if err == nil && m.Digest != replace {
			return &DefaultModelError{m}
		}
		if isCorrupt(err) { // as in DefaultModel
			return nil
		}
		return err
	}
	return r.applyBatch(ctx, p, batch{docs: []*Document{d}, before: check, after: func(tx *store.Tx) error {
		k, err := tx.Kinds.ByName(ctx, ModelKind, store.Public, DefaultModelName)
		if err != nil {
			return err
		}
		secrets, owner := &Secrets{r, tx}, ServerOwner(k.ID)
		err = secrets.Delete(ctx, p, owner, defaultModelKey) // with the grants to previous definitions
		if ignoreNotFound(err) != nil || key == "" {
			return ignoreNotFound(err)
		}
		if err := secrets.Set(ctx, p, owner, defaultModelKey, key); err != nil {
			return err
		}
		subject := Subject{Kind: ModelKind, Namespace: string(store.Public), Name: DefaultModelName}
		digest, err := actor{Tables: tx.Tables, p: p}.withReadScope().subjectDigest(ctx, subject)
		if err != nil {
			return err
		}
		return secrets.Grant(ctx, p, owner, defaultModelKey, subject, digest, "")
	}})
}

// ListModels returns the Models that the principal may use, sorted by name, and
// the cursor of the next page. It omits damaged Models.
func (r *Registry) ListModels(ctx context.Context, p account.Principal, page store.Page) ([]AvailableModel, string, error) {
	a := r.newActor(p)
	if err := account.Check(p, account.KindRead, account.Resource{Shared: true}); err != nil {
		return nil, "", err
	}
	found, next, err := a.Kinds.List(ctx, ModelKind, a.visibleNamespaces(), page)
	if err != nil {
		return nil, "", err
	}
	user := withChatScope(p)
	var out []AvailableModel
	for _, k := range found {
		if !account.Can(user, account.KindUse, accountResource(k.Namespace, k.CreatedBy)) {
			continue
		}
		one, err := r.availableModel(ctx, a, k)
		if isCorrupt(err) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		out = append(out, *one)
	}
	return out, next, nil
}

// Model returns the Model with the given ID. It fails with [store.ErrNotFound] if
// there is none that the principal may use.
func (r *Registry) Model(ctx context.Context, p account.Principal, id string) (*ModelChoice, error) {
	a := r.newActor(p)
	if err := a.requireSignIn(account.KindUse); err != nil {
		return nil, err
	}
	k, err := a.Kinds.Get(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case k.Kind != ModelKind:
		return nil, fmt.Errorf("%s %q: %w: not a Model", k.Kind, k.Name, store.ErrNotFound)
	}
	if err := a.checkAccess(account.KindUse, accountResource(k.Namespace, k.CreatedBy), ModelKind, k.Name); err != nil {
		return nil, err
	}
	return a.modelChoice(ctx, k)
}

// AgentModel returns the Model of an agent that the principal may use, or nil if the
// agent has none. Its arguments are those of [Registry.Profile].
func (r *Registry) AgentModel(ctx context.Context, p account.Principal, kind, namespace, name string) (*AvailableModel, error) {
	if err := account.Check(p, account.KindRead, account.Resource{Shared: true}); err != nil {
		return nil, err
	}
	profile, err := r.Profile(ctx, withChatScope(p), kind, namespace, name)
	if err != nil || profile.Model == nil {
		return nil, err
	}
	a := r.newActor(withChatScope(p))
	k, err := a.Kinds.Get(ctx, profile.Model.ID)
	if err != nil {
		return nil, err
	}
	return r.availableModel(ctx, a, k)
}

// withChatScope adds the scope for using models. A principal with read scope may
// learn whether a key exists.
func withChatScope(p account.Principal) account.Principal {
	p.Scopes |= account.ScopeChat
	return p
}

func (r *Registry) availableModel(ctx context.Context, a actor, k store.Kind) (*AvailableModel, error) {
	m, err := a.modelChoice(ctx, k)
	if err != nil {
		return nil, err
	}
	out := &AvailableModel{ModelChoice: m, NeedsKey: m.Key != ""}
	if res, err := a.decodeResource(ctx, k); err == nil {
		out.Namespace = res.Namespace
	}
	if out.NeedsKey {
		out.HasKey, err = r.hasKey(ctx, withChatScope(a.p), m)
	}
	return out, err
}

// hasKey reports whether the principal has the API key that a model refers to.
func (r *Registry) hasKey(ctx context.Context, p account.Principal, m *ModelChoice) (bool, error) {
	_, err := r.Secrets().ModelKey(ctx, p, m)
	_, denied := errors.AsType[*account.DeniedError](err)
	switch {
	case err == nil:
		return true, nil
	case denied, errors.Is(err, store.ErrNotFound), errors.Is(err, ErrNoKey), errors.Is(err, policy.ErrNotGranted):
		return false, nil
	}
	return false, err
}
