package agents

import (
	"context"
	"errors"
	"net/url"

	"github.com/loadout-dev/loadout/internal/hub/account"
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

// SecretName returns the name of the secret that contains the API key, or "" if the
// model needs none.
func (m *Model) SecretName() string {
	name, _ := parseSecretRef(m.Key)
	return name
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
	// A principal with read scope may learn whether a key exists.
	user := p
	user.Scopes |= account.ScopeChat
	var out []AvailableModel
	for _, k := range found {
		if !account.Can(user, account.KindUse, accountResource(k.Namespace, k.CreatedBy)) {
			continue
		}
		m, err := a.modelChoice(ctx, k)
		if isCorrupt(err) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		one := AvailableModel{ModelChoice: m, NeedsKey: m.Key != ""}
		if res, err := a.decodeResource(ctx, k); err == nil {
			one.Namespace = res.Namespace
		}
		if one.NeedsKey {
			if one.HasKey, err = r.hasKey(ctx, user, m); err != nil {
				return nil, "", err
			}
		}
		out = append(out, one)
	}
	return out, next, nil
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
