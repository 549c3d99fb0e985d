package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Settings are kept in the scope of the hub, under these names.
const (
	hubScope     = "hub"
	rulesSetting = "sign_in"
	auditSetting = "audit"
)

// MaxRules bounds the rules of [Rules].
const MaxRules = 500

// Rules say which groups somebody is in by the word of a provider, at each sign-in. A
// group that they name is left to them: who signs in by the provider comes and goes
// there, and what was set by hand for him is gone with his next sign-in.
type Rules struct {
	Rules []account.GroupRule
	// Generation is how often they were changed, 0 for never: who changes them gives
	// that of what he read.
	Generation int64
}

// writtenRule is a rule as it is kept.
type writtenRule struct {
	Claimed string `json:"claimed"`
	Group   string `json:"group,omitempty"`
	Role    string `json:"role,omitempty"`
	Admin   bool   `json:"admin,omitempty"`
}

// Rules returns those that are in force, to admins.
func (s SignIns) Rules(ctx context.Context, p account.Principal) (Rules, error) {
	if err := account.Check(p, account.SettingsRead, account.Resource{}); err != nil {
		return Rules{}, err
	}
	return readRules(ctx, s.b.db.Settings)
}

// SetRules replaces the rules. It fails with an [*InvalidError], and with
// [store.ErrConflict] where somebody changed them in the meantime.
func (s SignIns) SetRules(ctx context.Context, p account.Principal, r Rules) (Rules, error) {
	written := make([]writtenRule, len(r.Rules))
	for i, rule := range r.Rules {
		written[i] = writtenRule{Claimed: rule.Claimed, Group: string(rule.Group), Admin: rule.Admin}
		if rule.Role != account.Outsider {
			written[i].Role = rule.Role.String()
		}
	}
	a := act{by: p, action: account.SettingsWrite, subject: "settings/" + rulesSetting, details: written}
	err := s.b.set(ctx, a, store.Setting{Name: rulesSetting, Generation: r.Generation}, written, func(tx *store.Tx) error {
		return checkRules(ctx, tx, r.Rules)
	})
	r.Generation++
	return r, err
}

// checkRules refuses rules that give nothing, or a group that is not there.
func checkRules(ctx context.Context, tx *store.Tx, rules []account.GroupRule) error {
	if len(rules) > MaxRules {
		return &InvalidError{"rules", fmt.Sprintf("there are more than %d", MaxRules)}
	}
	for i, r := range rules {
		field := fmt.Sprintf("rules[%d]", i)
		switch {
		case strings.TrimSpace(r.Claimed) == "":
			return &InvalidError{field + ".claimed", "it is empty"}
		case r.Group == "" && !r.Admin:
			return &InvalidError{field, "it gives nothing: name a group and a role, or say admin"}
		case r.Group != "" && r.Role == account.Outsider:
			return &InvalidError{field + ".role", "it is none; write reporter, developer, maintainer or owner"}
		}
		if err := checkText(field+".claimed", r.Claimed, 255); err != nil {
			return err
		}
	}
	for g := range governed(rules) {
		_, err := tx.Groups.Get(ctx, string(g))
		if errors.Is(err, store.ErrNotFound) {
			return &InvalidError{"rules", fmt.Sprintf("there is no group with the id %.64q", string(g))}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readRules(ctx context.Context, settings store.Settings) (Rules, error) {
	var written []writtenRule
	generation, err := read(ctx, settings, rulesSetting, &written)
	rules := Rules{Generation: generation}
	for _, w := range written {
		rules.Rules = append(rules.Rules, account.GroupRule{Claimed: w.Claimed, Group: account.GroupID(w.Group), Role: roleOf(store.Role(w.Role)), Admin: w.Admin})
	}
	return rules, err
}

// rulesInForce are the rules without groups that are gone.
func rulesInForce(ctx context.Context, tx *store.Tx) ([]account.GroupRule, error) {
	kept, err := readRules(ctx, tx.Settings)
	if err != nil {
		return nil, err
	}
	there := map[account.GroupID]bool{}
	for g := range governed(kept.Rules) {
		switch _, err := tx.Groups.Get(ctx, string(g)); {
		case err == nil:
			there[g] = true
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	for i := range kept.Rules {
		if !there[kept.Rules[i].Group] {
			kept.Rules[i].Group = ""
		}
	}
	return kept.Rules, nil
}

// Retention says for how many days the audit log is kept, 0 for ever.
type Retention struct {
	Days       int   `json:"days"`
	Generation int64 `json:"-"` // as of [Rules]
}

// maxDays bounds them, as time.Duration does.
const maxDays = 36500

// Retention returns the one that is in force, to admins.
func (l Audit) Retention(ctx context.Context, p account.Principal) (r Retention, err error) {
	if err := account.Check(p, account.SettingsRead, account.Resource{}); err != nil {
		return r, err
	}
	r.Generation, err = read(ctx, l.b.db.Settings, auditSetting, &r)
	return r, err
}

// SetRetention replaces it, as [SignIns.SetRules].
func (l Audit) SetRetention(ctx context.Context, p account.Principal, r Retention) (Retention, error) {
	a := act{by: p, action: account.SettingsWrite, subject: "settings/" + auditSetting, details: r}
	err := l.b.set(ctx, a, store.Setting{Name: auditSetting, Generation: r.Generation}, r, func(*store.Tx) error {
		if r.Days < 0 || r.Days > maxDays {
			return &InvalidError{"days", fmt.Sprintf("it is from 0, which is for ever, to %d", maxDays)}
		}
		return nil
	})
	r.Generation++
	return r, err
}

// Expire removes what is older than the retention, for the hub itself, and returns how
// many records that were.
func (l Audit) Expire(ctx context.Context) (int64, error) {
	var r Retention
	if _, err := read(ctx, l.b.db.Settings, auditSetting, &r); err != nil || r.Days <= 0 {
		return 0, err
	}
	return l.b.db.Audit.Prune(ctx, time.Now().AddDate(0, 0, -r.Days))
}

// set keeps a setting of the hub, after a check.
func (b *book) set(ctx context.Context, a act, s store.Setting, value any, check func(tx *store.Tx) error) error {
	if err := b.may(ctx, a, account.Resource{}); err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("set %s: %w", s.Name, err)
	}
	s.Scope, s.Value, s.UpdatedBy = hubScope, data, string(a.by.User)
	return b.change(ctx, &a, func(tx *store.Tx) error {
		if err := check(tx); err != nil {
			return err
		}
		_, err := tx.Settings.Set(ctx, s)
		return err
	})
}

// read reads a setting of the hub into v, which stays as it is where nothing was set.
func read(ctx context.Context, settings store.Settings, name string, v any) (generation int64, err error) {
	row, err := settings.Get(ctx, hubScope, name)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(row.Value, v); err != nil {
		return 0, fmt.Errorf("the setting %s: %w: %w", name, store.ErrCorrupt, err)
	}
	return row.Generation, nil
}
