package hub

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/people"
)

// rulesJSON are the rules of sign-ins by a provider.
type rulesJSON struct {
	Rules      []ruleJSON `json:"rules" nullable:"false" maxItems:"500"`
	Generation int64      `json:"generation" minimum:"0" doc:"As it was read"`
}

// ruleJSON gives those in a group of the provider a role in one of ours.
type ruleJSON struct {
	Claimed string `json:"claimed" minLength:"1" maxLength:"255" doc:"The group as the provider writes it"`
	Group   string `json:"group,omitempty" maxLength:"64" doc:"The id of a group here, whose members the rules decide from then on"`
	Role    string `json:"role,omitempty" enum:"reporter,developer,maintainer,owner"`
	Admin   bool   `json:"admin,omitempty" doc:"Whether they are administrators of the hub"`
}

func rulesOf(r people.Rules) rulesJSON {
	out := rulesJSON{Rules: make([]ruleJSON, len(r.Rules)), Generation: r.Generation}
	for i, rule := range r.Rules {
		out.Rules[i] = ruleJSON{Claimed: rule.Claimed, Group: string(rule.Group), Admin: rule.Admin}
		if rule.Role != account.Outsider {
			out.Rules[i].Role = rule.Role.String()
		}
	}
	return out
}

// retentionJSON is how long the audit log is kept.
type retentionJSON struct {
	Days       int   `json:"days" minimum:"0" maximum:"36500" doc:"0 is for ever"`
	Generation int64 `json:"generation" minimum:"0" doc:"As it was read"`
}

func retentionOf(r people.Retention) retentionJSON { return retentionJSON{r.Days, r.Generation} }

// settings are the group of those of the hub itself, each with a path and a shape of its
// own.
func (h *Hub) settings(api huma.API) {
	add(h, api, operation("get-sign-in-rules", "GET", "/settings/sign-in", "What somebody is by the groups that a provider says"), h.getRules)
	add(h, api, operation("set-sign-in-rules", "PUT", "/settings/sign-in", "Replace these rules"), h.setRules)
	add(h, api, operation("get-audit-retention", "GET", "/settings/audit", "How long the audit log is kept"), h.getRetention)
	add(h, api, operation("set-audit-retention", "PUT", "/settings/audit", "Change how long the audit log is kept"), h.setRetention)
}

func (h *Hub) getRules(ctx context.Context, _ *nothing) (*body[rulesJSON], error) {
	rules, err := h.people.SignIns.Rules(ctx, account.FromContext(ctx))
	return answered(rulesOf(rules), err)
}

func (h *Hub) setRules(ctx context.Context, in *struct{ Body rulesJSON }) (*body[rulesJSON], error) {
	rules := people.Rules{Generation: in.Body.Generation}
	for _, r := range in.Body.Rules {
		role := account.Outsider
		if r.Role != "" {
			var err error
			if role, err = account.ParseRole(r.Role); err != nil {
				return nil, &people.InvalidError{Field: "rules", Why: err.Error()}
			}
		}
		rules.Rules = append(rules.Rules, account.GroupRule{Claimed: r.Claimed, Group: account.GroupID(r.Group), Role: role, Admin: r.Admin})
	}
	rules, err := h.people.SignIns.SetRules(ctx, account.FromContext(ctx), rules)
	return answered(rulesOf(rules), err)
}

func (h *Hub) getRetention(ctx context.Context, _ *nothing) (*body[retentionJSON], error) {
	r, err := h.people.Audit.Retention(ctx, account.FromContext(ctx))
	return answered(retentionOf(r), err)
}

func (h *Hub) setRetention(ctx context.Context, in *struct{ Body retentionJSON }) (*body[retentionJSON], error) {
	r, err := h.people.Audit.SetRetention(ctx, account.FromContext(ctx), people.Retention{Days: in.Body.Days, Generation: in.Body.Generation})
	return answered(retentionOf(r), err)
}
