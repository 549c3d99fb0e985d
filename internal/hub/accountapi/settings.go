package accountapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// retentionJSON is the retention period of the audit log.
type retentionJSON struct {
	Days       int   `json:"days" minimum:"0" maximum:"36500" doc:"0 for unlimited"`
	Generation int64 `json:"generation" minimum:"0" doc:"As it was read"`
}

func newRetentionJSON(r users.Retention) retentionJSON { return retentionJSON{r.Days, r.Generation} }

// settingsAPI adds the operations for hub settings.
func (h *Handlers) settingsAPI() {
	api.Add(h.Server, api.Operation("get-sign-in-rules", "GET", "/settings/sign-in", "Get the group rules for sign-ins through the provider"), h.getRules)
	api.Add(h.Server, api.Operation("set-sign-in-rules", "PUT", "/settings/sign-in", "Replace the group rules"), h.setRules)
	api.Add(h.Server, api.Operation("get-audit-retention", "GET", "/settings/audit", "Get the retention of the audit log"), h.getRetention)
	api.Add(h.Server, api.Operation("set-audit-retention", "PUT", "/settings/audit", "Set the retention of the audit log"), h.setRetention)
	api.Add(h.Server, api.Operation("get-quotas", "GET", "/settings/quotas", "Get the limits of what users and groups store"), h.getQuotas)
	api.Add(h.Server, api.Operation("set-quotas", "PUT", "/settings/quotas", "Set the limits of what users and groups store"), h.setQuotas)
	api.Add(h.Server, api.Operation("get-storage", "GET", "/usage/storage", "Get what a user or group stores, and its limits"), h.getStorage)
}

func (h *Handlers) getRules(ctx context.Context, _ *api.NoBody) (*api.Body[users.Rules], error) {
	rules, err := h.Directory.SignIns.Rules(ctx, account.FromContext(ctx))
	return api.BodyOf(rules, err)
}

func (h *Handlers) setRules(ctx context.Context, in *struct{ Body users.Rules }) (*api.Body[users.Rules], error) {
	rules, err := h.Directory.SignIns.SetRules(ctx, account.FromContext(ctx), in.Body)
	return api.BodyOf(rules, err)
}

func (h *Handlers) getRetention(ctx context.Context, _ *api.NoBody) (*api.Body[retentionJSON], error) {
	r, err := h.Directory.Audit.Retention(ctx, account.FromContext(ctx))
	return api.BodyOf(newRetentionJSON(r), err)
}

func (h *Handlers) setRetention(ctx context.Context, in *struct{ Body retentionJSON }) (*api.Body[retentionJSON], error) {
	r, err := h.Directory.Audit.SetRetention(ctx, account.FromContext(ctx), users.Retention{Days: in.Body.Days, Generation: in.Body.Generation})
	return api.BodyOf(newRetentionJSON(r), err)
}
