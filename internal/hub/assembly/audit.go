package assembly

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// auditing keeps decisions of policy in the audit log of the hub.
type auditing struct {
	db   *store.DB
	told func(context.Context, policy.Record) // may be nil
}

func (k *Assembler) auditing() auditing { return auditing{k.o.DB, k.o.OnDecision} }

// Append implements [loadout.Auditor].
func (a auditing) Append(ctx context.Context, r policy.Record) error {
	if a.told != nil {
		a.told(ctx, r)
	}
	details := map[string]string{}
	maps.Copy(details, r.Details)
	for name, value := range map[string]string{"digest": string(r.Subject), "reason": r.Reason} {
		if value != "" {
			details[name] = value
		}
	}
	data, err := json.Marshal(details)
	if err != nil {
		return err
	}
	return a.db.Audit.Append(ctx, store.AuditRecord{At: r.Time, Actor: r.Principal.ID, Action: actionOf(r.Action),
		Namespace: store.UserNamespace(r.Principal.ID), Subject: clipped(r.Name, 256), Decision: verdictOf(r.Decision), Details: data})
}

// actionOf is what the hub's log calls what policy decided.
func actionOf(action string) string {
	switch action {
	case "run", "ran", "served":
		return "skill." + action
	}
	return "tool." + action
}

// verdictOf is a verdict as the hub's log has it.
func verdictOf(decision string) string {
	switch decision {
	case policy.VerdictAllow:
		return "allowed"
	case policy.VerdictDeny:
		return "denied"
	}
	return "asked"
}
