package users

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
)

// Quotas manages the limits on how much users and groups may store.
type Quotas struct {
	b *core
	// Quotas checks the limits. Its default applies until an administrator sets
	// other limits.
	Quotas quota.Quotas
}

// QuotaSettings holds the limits with their generation; see [Rules.Generation].
type QuotaSettings struct {
	quota.Settings
	Generation int64
}

// Settings returns the current limits. The principal must be an administrator.
func (q Quotas) Settings(ctx context.Context, p account.Principal) (QuotaSettings, error) {
	if err := account.Check(p, account.SettingsRead, account.Resource{}); err != nil {
		return QuotaSettings{}, err
	}
	s, generation, err := q.Quotas.Settings(ctx, q.b.db.Settings)
	return QuotaSettings{s, generation}, err
}

// SetSettings replaces the limits. They apply only to later additions; nothing
// is deleted. It returns the same errors as [SignIns.SetRules].
func (q Quotas) SetSettings(ctx context.Context, p account.Principal, s QuotaSettings) (QuotaSettings, error) {
	s.Overrides = append([]quota.Override{}, s.Overrides...) // nil is stored like an empty list
	a := auditedAction{by: p, action: account.SettingsWrite, subject: "settings/" + quota.SettingName, details: s.Settings}
	err := q.b.changeSetting(ctx, a, store.Setting{Name: quota.SettingName, Generation: s.Generation}, s.Settings, func(tx *store.Tx) error {
		before, _, err := q.Quotas.Settings(ctx, tx.Settings)
		if err != nil {
			return err
		}
		return checkQuotas(ctx, tx, before, s.Settings)
	})
	s.Generation++
	return s, err
}

// checkQuotas returns an error if a limit is negative, or if an override has a
// duplicate or unknown namespace. It accepts an unknown namespace that is in
// old, because its owner may have been deleted.
func checkQuotas(ctx context.Context, tx *store.Tx, old, s quota.Settings) error {
	if len(s.Overrides) > quota.MaxOverrides {
		return &InvalidError{"overrides", fmt.Sprintf("too many overrides (%d, limit %d)", len(s.Overrides), quota.MaxOverrides)}
	}
	errs := []error{checkAmounts("user", s.User), checkAmounts("group", s.Group)}
	seen := map[store.Namespace]bool{}
	for i, o := range s.Overrides {
		field := fmt.Sprintf("overrides[%d]", i)
		errs = append(errs, checkAmounts(field+".limits", o.Limits))
		if seen[o.Namespace] {
			errs = append(errs, &InvalidError{field + ".namespace", "duplicate namespace"})
			continue
		}
		seen[o.Namespace] = true
		if old.HasOverride(o.Namespace) {
			continue
		}
		switch known, err := isNamespace(ctx, tx, o.Namespace); {
		case err != nil:
			return err
		case !known:
			errs = append(errs, &InvalidError{field + ".namespace", "user or group not found; want user:ID, group:ID or public"})
		}
	}
	return errors.Join(errs...)
}

func checkAmounts(field string, a quota.Amounts) error {
	if a.Bytes < 0 || a.Skills < 0 || a.Sessions < 0 {
		return &InvalidError{field, "must not be negative; 0 means unlimited"}
	}
	return nil
}

// isNamespace reports whether a namespace is public or its owner exists.
func isNamespace(ctx context.Context, tx *store.Tx, n store.Namespace) (bool, error) {
	var err error
	switch {
	case n == store.Public:
		return true, nil
	case n.User() != "":
		_, err = tx.Users.Get(ctx, n.User())
	case n.Group() != "":
		_, err = tx.Groups.Get(ctx, n.Group())
	default:
		return false, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// StorageUse describes how much a namespace stores, with its limits.
type StorageUse struct {
	Namespace store.Namespace
	Used      quota.Amounts
	Limits    quota.Amounts // 0 means unlimited
}

// Usage returns how much a namespace stores. Users may see their own namespace,
// members the namespaces of their groups, and administrators all namespaces.
func (q Quotas) Usage(ctx context.Context, p account.Principal, n store.Namespace) (StorageUse, error) {
	action, resource := account.SettingsRead, account.Resource{}
	switch {
	case n.User() != "":
		action, resource = account.UserRead, account.OwnedBy(account.UserID(n.User()))
	case n.Group() != "":
		action, resource = account.GroupRead, account.OwnedByGroup(account.GroupID(n.Group()), "")
	}
	if err := account.Check(p, action, resource); err != nil {
		return StorageUse{}, err
	}
	used, limits, err := q.Quotas.Usage(ctx, &q.b.db.Tables, n)
	return StorageUse{n, used, limits}, err
}
