package accountapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// quotasJSON holds the limits on how much users and groups may store.
type quotasJSON struct {
	User       quota.Amounts    `json:"user" doc:"Limits of each user; 0 for unlimited"`
	Group      quota.Amounts    `json:"group" doc:"Limits of each group, and of the public namespace; 0 for unlimited"`
	Overrides  []quota.Override `json:"overrides" required:"false" nullable:"false" maxItems:"1000" doc:"Other limits for single users and groups"`
	Generation int64            `json:"generation" minimum:"0" doc:"As it was read"`
}

func newQuotasJSON(s users.QuotaSettings) quotasJSON {
	return quotasJSON{s.User, s.Group, append([]quota.Override{}, s.Overrides...), s.Generation}
}

func (h *Handlers) getQuotas(ctx context.Context, _ *api.NoBody) (*api.Body[quotasJSON], error) {
	s, err := h.Directory.Quotas.Settings(ctx, account.FromContext(ctx))
	return api.BodyOf(newQuotasJSON(s), err)
}

func (h *Handlers) setQuotas(ctx context.Context, in *struct{ Body quotasJSON }) (*api.Body[quotasJSON], error) {
	s, err := h.Directory.Quotas.SetSettings(ctx, account.FromContext(ctx), users.QuotaSettings{
		Settings:   quota.Settings{User: in.Body.User, Group: in.Body.Group, Overrides: in.Body.Overrides},
		Generation: in.Body.Generation,
	})
	return api.BodyOf(newQuotasJSON(s), err)
}

// storageJSON describes how much a namespace stores.
type storageJSON struct {
	Namespace store.Namespace `json:"namespace"`
	Used      quota.Amounts   `json:"used"`
	Limits    quota.Amounts   `json:"limits" doc:"0 for unlimited"`
}

func (h *Handlers) getStorage(ctx context.Context, in *struct {
	Namespace string `query:"namespace" maxLength:"100" doc:"user:ID, group:ID or public; default yourself"`
}) (*api.Body[storageJSON], error) {
	p := account.FromContext(ctx)
	n := store.Namespace(in.Namespace)
	if n == "" {
		n = store.UserNamespace(string(p.User))
	}
	u, err := h.Directory.Quotas.Usage(ctx, p, n)
	return api.BodyOf(storageJSON{store.Namespace(untrusted.New(string(u.Namespace)).ForPage()), u.Used, u.Limits}, err)
}
