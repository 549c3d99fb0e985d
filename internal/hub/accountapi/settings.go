package accountapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// rulesJSON holds the group rules for sign-ins through the provider.
type rulesJSON struct {
	Rules      []ruleJSON `json:"rules" nullable:"false" maxItems:"500"`
	Generation int64      `json:"generation" minimum:"0" doc:"As it was read"`
}

// ruleJSON gives the members of a provider's group a role in a group of the
// hub.
type ruleJSON struct {
	Claimed string `json:"claimed" minLength:"1" maxLength:"255" doc:"Name of the group at the provider"`
	Group   string `json:"group,omitempty" maxLength:"64" doc:"ID of a group of the hub; the rules then control its members"`
	Role    string `json:"role,omitempty" enum:"reporter,developer,maintainer,owner"`
	Admin   bool   `json:"admin,omitempty" doc:"Whether they become administrators of the hub"`
}

func rulesOf(r users.Rules) rulesJSON {
	out := rulesJSON{Rules: make([]ruleJSON, len(r.Rules)), Generation: r.Generation}
	for i, rule := range r.Rules {
		out.Rules[i] = ruleJSON{Claimed: rule.Claimed, Group: string(rule.Group), Admin: rule.Admin}
		if rule.Role != account.Outsider {
			out.Rules[i].Role = rule.Role.String()
		}
	}
	return out
}

// retentionJSON is the retention of the audit log.
type retentionJSON struct {
	Days       int   `json:"days" minimum:"0" maximum:"36500" doc:"0 for unlimited"`
	Generation int64 `json:"generation" minimum:"0" doc:"As it was read"`
}

func retentionOf(r users.Retention) retentionJSON { return retentionJSON{r.Days, r.Generation} }

// settingsAPI adds the operations for settings of the hub.
func (h *Handlers) settingsAPI() {
	api.Add(h.Server, api.Operation("get-sign-in-rules", "GET", "/settings/sign-in", "Get the group rules for sign-ins through the provider"), h.getRules)
	api.Add(h.Server, api.Operation("set-sign-in-rules", "PUT", "/settings/sign-in", "Replace the group rules"), h.setRules)
	api.Add(h.Server, api.Operation("get-audit-retention", "GET", "/settings/audit", "Get the retention of the audit log"), h.getRetention)
	api.Add(h.Server, api.Operation("set-audit-retention", "PUT", "/settings/audit", "Set the retention of the audit log"), h.setRetention)
}

func (h *Handlers) getRules(ctx context.Context, _ *api.NoBody) (*api.Body[rulesJSON], error) {
	rules, err := h.Directory.SignIns.Rules(ctx, account.FromContext(ctx))
	return api.BodyOf(rulesOf(rules), err)
}

func (h *Handlers) setRules(ctx context.Context, in *struct{ Body rulesJSON }) (*api.Body[rulesJSON], error) {
	rules := users.Rules{Generation: in.Body.Generation}
	for _, r := range in.Body.Rules {
		role := account.Outsider
		if r.Role != "" {
			var err error
			if role, err = account.ParseRole(r.Role); err != nil {
				return nil, &users.InvalidError{Field: "rules", Reason: err.Error()}
			}
		}
		rules.Rules = append(rules.Rules, account.GroupRule{Claimed: r.Claimed, Group: account.GroupID(r.Group), Role: role, Admin: r.Admin})
	}
	rules, err := h.Directory.SignIns.SetRules(ctx, account.FromContext(ctx), rules)
	return api.BodyOf(rulesOf(rules), err)
}

func (h *Handlers) getRetention(ctx context.Context, _ *api.NoBody) (*api.Body[retentionJSON], error) {
	r, err := h.Directory.Audit.Retention(ctx, account.FromContext(ctx))
	return api.BodyOf(retentionOf(r), err)
}

func (h *Handlers) setRetention(ctx context.Context, in *struct{ Body retentionJSON }) (*api.Body[retentionJSON], error) {
	r, err := h.Directory.Audit.SetRetention(ctx, account.FromContext(ctx), users.Retention{Days: in.Body.Days, Generation: in.Body.Generation})
	return api.BodyOf(retentionOf(r), err)
}
