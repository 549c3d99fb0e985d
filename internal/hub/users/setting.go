package users

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Scope and names of the settings stored by this package.
const (
	hubScope     = "hub"
	rulesSetting = "sign_in"
	auditSetting = "audit"
)

// MaxRules is the maximum number of rules in [Rules].
const MaxRules = 500

// Rules assigns users to groups when they sign in through the identity provider. In
// the groups that the rules name, a sign-in adds and removes memberships, which
// overrides manual changes.
type Rules struct {
	Rules []account.GroupRule `json:"rules" nullable:"false" maxItems:"500"`
	// Generation is the number of changes so far. [SignIns.SetRules] requires the
	// current generation.
	Generation int64 `json:"generation" minimum:"0" doc:"As it was read"`
}

// Rules returns the current rules. The principal must be an administrator.
func (s SignIns) Rules(ctx context.Context, p account.Principal) (Rules, error) {
	if err := account.Check(p, account.SettingsRead, account.Resource{}); err != nil {
		return Rules{}, err
	}
	return readRules(ctx, s.b.db.Settings)
}

// SetRules replaces the rules. It fails with an [*InvalidError] if a rule is
// invalid, and with [store.ErrConflict] unless r has the current generation.
func (s SignIns) SetRules(ctx context.Context, p account.Principal, r Rules) (Rules, error) {
	r.Rules = append([]account.GroupRule{}, r.Rules...) // nil is stored like an empty list
	a := auditedAction{by: p, action: account.SettingsWrite, subject: "settings/" + rulesSetting, details: r.Rules}
	err := s.b.changeSetting(ctx, a, store.Setting{Name: rulesSetting, Generation: r.Generation}, r.Rules, func(tx *store.Tx) error {
		return checkRules(ctx, tx, r.Rules)
	})
	r.Generation++
	return r, err
}

// checkRules returns an error if a rule has no effect or names an unknown group.
func checkRules(ctx context.Context, tx *store.Tx, rules []account.GroupRule) error {
	if len(rules) > MaxRules {
		return &InvalidError{"rules", fmt.Sprintf("too many rules (limit %d)", MaxRules)}
	}
	for i, r := range rules {
		field := fmt.Sprintf("rules[%d]", i)
		switch {
		case strings.TrimSpace(r.Claimed) == "":
			return &InvalidError{field + ".claimed", "must not be empty"}
		case r.Group == "" && !r.Admin:
			return &InvalidError{field, "has no effect: set a group and a role, or admin"}
		case r.Group != "" && r.Role == account.Outsider:
			return &InvalidError{field + ".role", "missing; want reporter, developer, maintainer or owner"}
		}
		if err := checkText(field+".claimed", r.Claimed, 255); err != nil {
			return err
		}
	}
	for g := range groupsInRules(rules) {
		_, err := tx.Groups.Get(ctx, string(g))
		if errors.Is(err, store.ErrNotFound) {
			return &InvalidError{"rules", fmt.Sprintf("group %.64q not found", string(g))}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readRules(ctx context.Context, settings store.Settings) (Rules, error) {
	rules := Rules{Rules: []account.GroupRule{}}
	var err error
	rules.Generation, err = readSetting(ctx, settings, rulesSetting, &rules.Rules)
	return rules, err
}

// activeRules returns the rules whose groups exist.
func activeRules(ctx context.Context, tx *store.Tx) ([]account.GroupRule, error) {
	kept, err := readRules(ctx, tx.Settings)
	if err != nil {
		return nil, err
	}
	there := map[account.GroupID]bool{}
	for g := range groupsInRules(kept.Rules) {
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

// Retention specifies how many days audit records are stored. 0 means forever.
type Retention struct {
	Days       int   `json:"days"`
	Generation int64 `json:"-"` // see [Rules.Generation]
}

// maxDays is the maximum retention period in days, because a time.Duration
// could not represent much more.
const maxDays = 36500

// Retention returns the current retention period. The principal must be an
// administrator.
func (l Audit) Retention(ctx context.Context, p account.Principal) (r Retention, err error) {
	if err := account.Check(p, account.SettingsRead, account.Resource{}); err != nil {
		return r, err
	}
	r.Generation, err = readSetting(ctx, l.b.db.Settings, auditSetting, &r)
	return r, err
}

// SetRetention replaces the retention period. It returns the same errors as
// [SignIns.SetRules].
func (l Audit) SetRetention(ctx context.Context, p account.Principal, r Retention) (Retention, error) {
	a := auditedAction{by: p, action: account.SettingsWrite, subject: "settings/" + auditSetting, details: r}
	err := l.b.changeSetting(ctx, a, store.Setting{Name: auditSetting, Generation: r.Generation}, r, func(*store.Tx) error {
		if r.Days < 0 || r.Days > maxDays {
			return &InvalidError{"days", fmt.Sprintf("must be from 0 (unlimited) to %d", maxDays)}
		}
		return nil
	})
	r.Generation++
	return r, err
}

// Prune deletes the records that are older than the retention period and
// returns their number. It checks no permissions, because only the hub itself
// calls it.
func (l Audit) Prune(ctx context.Context) (int64, error) {
	var r Retention
	if _, err := readSetting(ctx, l.b.db.Settings, auditSetting, &r); err != nil || r.Days <= 0 {
		return 0, err
	}
	return l.b.db.Audit.Prune(ctx, time.Now().AddDate(0, 0, -r.Days))
}

// changeSetting stores a hub setting if check returns nil in the same transaction.
func (b *core) changeSetting(ctx context.Context, a auditedAction, s store.Setting, value any, check func(tx *store.Tx) error) error {
	if err := b.authorize(ctx, a, account.Resource{}); err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("set %s: %w", s.Name, err)
	}
	s.Scope, s.Value, s.UpdatedBy = hubScope, data, string(a.by.User)
	return b.commit(ctx, &a, func(tx *store.Tx) error {
		if err := check(tx); err != nil {
			return err
		}
		_, err := tx.Settings.Set(ctx, s)
		return err
	})
}

// readSetting decodes a hub setting into v. If the setting is not set, v remains
// unchanged.
func readSetting(ctx context.Context, settings store.Settings, name string, v any) (generation int64, err error) {
	row, err := settings.Get(ctx, hubScope, name)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(row.Value, v); err != nil {
		return 0, fmt.Errorf("decode setting %s: %w: %w", name, store.ErrCorrupt, err)
	}
	return row.Generation, nil
}
