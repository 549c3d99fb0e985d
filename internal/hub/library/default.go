package library

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Default is a skill that is active by default in the conversations of all users
// of a namespace.
type Default struct {
	Namespace Namespace `json:"namespace"` // a user's own, a group's, or the public one
	SkillID   string    `json:"skill_id"`
	Preload   bool      `json:"forcePreload"` // whether it is loaded at the start
	// Exceptions selects conversations to which the default does not apply. It has
	// at most 100 entries.
	Exceptions []Exception `json:"exceptions,omitempty"`
}

// Exception selects, by mode, agent or project, the conversations in which a
// default does not apply.
type Exception struct {
	Type  string `json:"type" enum:"mode,agent,project"`
	Value string `json:"value" minLength:"1" maxLength:"128"` // at most 128 bytes
}

const maxExceptions = 100

// MaxDefaults is the maximum number of defaults per namespace.
const MaxDefaults = 200

func (e Exception) check() error {
	if e.Type != "mode" && e.Type != "agent" && e.Type != "project" {
		return invalidf("unknown exception type %.40q (want mode, agent or project)", e.Type)
	}
	if e.Value == "" || len(e.Value) > 128 {
		return invalidf("exception value must have 1 to 128 bytes")
	}
	return nil
}

// SetDefault adds or replaces a namespace default. In its own namespace, the
// principal must be allowed to see the skill. In a group or the public namespace,
// it must be allowed to upload. SetDefault returns [ErrTooMany] if the namespace
// already has [MaxDefaults] other defaults.
func (l *Library) SetDefault(ctx context.Context, p account.Principal, d Default) error {
	if len(d.Exceptions) > maxExceptions {
		return invalidf("too many exceptions (%d, limit %d)", len(d.Exceptions), maxExceptions)
	}
	for _, e := range d.Exceptions {
		if err := e.check(); err != nil {
			return err
		}
	}
	exceptions, err := json.Marshal(d.Exceptions)
	if err != nil {
		return err
	}
	action := defaultAction(d.Namespace)
	if err := l.authorizeIn(ctx, p, action, d.Namespace, d.SkillID); err != nil {
		return err
	}
	may := func(tx *store.Tx, h *skillRecord) error { return l.checkDefault(ctx, tx, p, h, d.Namespace) }
	return l.updateIf(ctx, p, action, d.SkillID, may, func(tx *store.Tx, h *skillRecord) (any, error) {
		// The users of the namespace must be able to load the skill.
		reach, err := l.reachableNamespaces(ctx, &tx.Tables, d.Namespace)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(reach, func(n Namespace) bool { return slices.Contains(h.listings, n) }) {
			return nil, invalidf("skill %q is not published there; publish it first", h.Name)
		}
		return d, addDefault(ctx, tx, store.Default{
			Namespace: d.Namespace, SkillID: d.SkillID, Preload: d.Preload, Exceptions: exceptions, CreatedBy: string(p.User),
		})
	})
}

// addDefault stores a default. It returns [ErrTooMany] if there are too many.
func addDefault(ctx context.Context, tx *store.Tx, d store.Default) error {
	have, err := tx.Defaults.List(ctx, []Namespace{d.Namespace})
	if err != nil {
		return err
	}
	if len(have) >= MaxDefaults && !slices.ContainsFunc(have, func(h store.Default) bool { return h.SkillID == d.SkillID }) {
		return fmt.Errorf("%w defaults (limit %d per namespace); remove one first", ErrTooMany, MaxDefaults)
	}
	return tx.Defaults.Put(ctx, d)
}

// checkDefault returns an error if the principal is not allowed to make a skill a
// default. In its own namespace, it must be able to see the skill or already have
// it as a default. Elsewhere, it must be allowed to bind the skill.
func (l *Library) checkDefault(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, in Namespace) error {
	if in.User() == "" {
		return h.check(p, account.SkillBind, h.CreatedBy)
	}
	have, err := tx.Defaults.List(ctx, []Namespace{in})
	if err != nil {
		return err
	}
	shown := *h
	if slices.ContainsFunc(have, func(d store.Default) bool { return d.SkillID == h.ID }) {
		shown.bound = true
	}
	if !shown.isVisible(p) {
		return notFound(h.ID)
	}
	return nil
}

// defaultAction returns the action to authorize before changing a namespace's
// defaults.
func defaultAction(n Namespace) account.Action {
	if n.User() != "" {
		return account.DefaultWrite
	}
	return account.SkillUpload
}

// RemoveDefault removes a skill from the defaults of a namespace.
func (l *Library) RemoveDefault(ctx context.Context, p account.Principal, in Namespace, skillID string) error {
	action := defaultAction(in)
	if err := l.authorizeIn(ctx, p, action, in, skillID); err != nil {
		return err
	}
	return l.db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Defaults.Delete(ctx, in, skillID); err != nil {
			return hideNotFound(skillID, err)
		}
		return appendAudit(ctx, tx.Audit, p, action, in, skillID, "allowed", removedDefaultDetails{true})
	})
}

// removedDefaultDetails holds the details of the audit record for a removed
// default.
type removedDefaultDetails struct {
	Removed bool `json:"removed_default"`
}

// Defaults returns the defaults of a namespace, sorted by skill ID. It includes
// defaults whose skills are no longer visible, so that users can remove them.
func (l *Library) Defaults(ctx context.Context, p account.Principal, in Namespace) ([]Default, error) {
	if err := checkNamespace(p, account.SkillRead, in); err != nil {
		return nil, err
	}
	rows, err := l.db.Defaults.List(ctx, []Namespace{in})
	if err != nil {
		return nil, err
	}
	out := make([]Default, len(rows))
	for i, r := range rows {
		out[i] = readDefault(r)
	}
	return out, nil
}

func readDefault(r store.Default) Default {
	d := Default{Namespace: r.Namespace, SkillID: r.SkillID, Preload: r.Preload}
	_ = json.Unmarshal(r.Exceptions, &d.Exceptions) // ignore damaged exceptions
	return d
}

// ConversationInfo describes a conversation for matching against [Exception].
type ConversationInfo struct{ Mode, Agent, Project string }

func (s ConversationInfo) matches(e Exception) bool {
	return e.Value != "" && (e.Type == "mode" && e.Value == s.Mode || e.Type == "agent" && e.Value == s.Agent || e.Type == "project" && e.Value == s.Project)
}

// DefaultSkill is a default skill of a conversation.
type DefaultSkill struct {
	Ref
	Preload   bool      `json:"forcePreload"`
	Namespace Namespace `json:"for"` // namespace of the default
}

// DefaultSkills returns the default skills of a conversation in order of
// precedence: the principal's, its groups', and the public ones. If several
// defaults have the same skill or name, only the first one and its exceptions
// apply. The references have IDs and no digests.
func (l *Library) DefaultSkills(ctx context.Context, p account.Principal, s ConversationInfo) ([]DefaultSkill, error) {
	in, err := namespaces(p, account.SkillUse)
	if err != nil {
		return nil, err
	}
	rows, err := l.db.Defaults.List(ctx, in)
	if err != nil {
		return nil, err
	}
	var out []DefaultSkill
	ids, names := map[string]bool{}, map[string]bool{}
	for _, n := range in {
		for _, row := range rows {
			if row.Namespace != n || ids[row.SkillID] {
				continue
			}
			ids[row.SkillID] = true
			h, err := l.authorizeBound(ctx, p, account.SkillUse, row.SkillID)
			if isNotFound(err) || account.IsDenied(err) {
				continue // the principal is no longer allowed to see it
			}
			if err != nil {
				return nil, err
			}
			d := readDefault(row)
			if names[h.Name] || slices.ContainsFunc(d.Exceptions, s.matches) {
				continue
			}
			names[h.Name] = true
			out = append(out, DefaultSkill{Ref{Name: h.Name, ID: h.ID}, d.Preload, n})
		}
	}
	return out, nil
}
