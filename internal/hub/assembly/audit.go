package assembly

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// auditor records policy decisions in the hub's audit log.
type auditor struct {
	db         *store.DB
	onDecision func(context.Context, policy.Record) // may be nil
}

func (k *Assembler) auditor() auditor { return auditor{k.o.DB, k.o.OnDecision} }

// Append records a decision; see [loadout.Scripts.Audit].
func (a auditor) Append(ctx context.Context, r policy.Record) error {
	if a.onDecision != nil {
		a.onDecision(ctx, r)
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
	return a.db.Audit.Append(ctx, store.AuditRecord{At: r.Time, Actor: r.Principal.ID, Action: auditAction(r.Action),
		Namespace: store.UserNamespace(r.Principal.ID), Subject: truncate(r.Name, 256), Decision: auditDecision(r.Decision), Details: data})
}

// auditAction returns the name that the audit log uses for a policy action.
func auditAction(action string) string {
	switch action {
	case "run", "ran", "served":
		return "skill." + action
	}
	return "tool." + action
}

// auditDecision returns the name that the audit log uses for a policy decision.
func auditDecision(decision string) string {
	switch decision {
	case policy.Allow:
		return "allowed"
	case policy.Deny:
		return "denied"
	}
	return "asked"
}
