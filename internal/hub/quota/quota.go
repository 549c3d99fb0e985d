// Package quota limits how much each user and each group stores on a hub. Start
// reading at [Quotas.Check].
//
// An administrator sets the limits, for all users, for all groups, or for one
// namespace. A caller checks them in the transaction that adds something, so
// that concurrent requests cannot exceed them together. If a limit is lower
// than what is already stored, nothing is deleted, but additions are refused.
package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/loadout-dev/loadout/internal/store"
)

// Amounts describes how much a namespace stores, or how much it may store. A
// limit of 0 means unlimited.
type Amounts struct {
	Bytes    int64 `json:"bytes" minimum:"0" doc:"Files of skills in all versions, resources, secrets, and messages and files of conversations"`
	Skills   int64 `json:"skills" minimum:"0"`
	Sessions int64 `json:"sessions" minimum:"0" doc:"Conversations; always 0 for a group"`
}

// Override holds the limits of one namespace.
type Override struct {
	Namespace store.Namespace `json:"namespace" doc:"user:ID, group:ID or public"`
	Limits    Amounts         `json:"limits"`
}

// Settings holds the limits of a hub.
type Settings struct {
	User      Amounts    `json:"user" doc:"Limits of each user; 0 for unlimited"`
	Group     Amounts    `json:"group" doc:"Limits of each group, and of the public namespace; 0 for unlimited"`
	Overrides []Override `json:"overrides" nullable:"false" maxItems:"1000" doc:"Other limits for single users and groups"`
}

// MaxOverrides is the maximum number of overrides in [Settings].
const MaxOverrides = 1000

// Default returns generous limits for a hub with accounts: 2 GB and 2,000
// skills for each user and group, and 10,000 conversations for each user.
func Default() Settings {
	own := Amounts{Bytes: 2_000_000_000, Skills: 2000, Sessions: 10_000}
	return Settings{User: own, Group: Amounts{Bytes: own.Bytes, Skills: own.Skills}}
}

// HasOverride reports whether an override sets the limits of a namespace.
func (s Settings) HasOverride(n store.Namespace) bool {
	return slices.ContainsFunc(s.Overrides, func(o Override) bool { return o.Namespace == n })
}

// Limits returns the limits of a namespace.
func (s Settings) Limits(n store.Namespace) Amounts {
	for _, o := range s.Overrides {
		if o.Namespace == n {
			return o.Limits
		}
	}
	switch {
	case n.User() != "":
		return s.User
	case n.IsReadOnly():
		return Amounts{} // only the hub itself adds to it
	}
	return s.Group
}

// Measure names a field of [Amounts].
type Measure string

// Measures of storage.
const (
	Bytes    Measure = "bytes"
	Skills   Measure = "skills"
	Sessions Measure = "sessions"
)

// ExceededError reports that an addition would exceed a limit. Nothing was
// added.
type ExceededError struct {
	Namespace store.Namespace
	Measure   Measure
	Limit     int64
	Used      int64 // amount stored, without the addition
	Added     int64
}

func (e *ExceededError) Error() string {
	owner := "the public namespace"
	switch {
	case e.Namespace.User() != "":
		owner = "the user"
	case e.Namespace.Group() != "":
		owner = "the group"
	}
	what, format := "storage", formatSize
	switch e.Measure {
	case Skills:
		what, format = "skills", formatCount
	case Sessions:
		what, format = "conversations", formatCount
	}
	return fmt.Sprintf("quota of %s exceeded (%s: %s + %s, limit %s)", owner, what, format(e.Used), format(e.Added), format(e.Limit))
}

func formatCount(n int64) string { return strconv.FormatInt(n, 10) }

// formatSize formats bytes as kilobytes or megabytes, as the web page does.
func formatSize(bytes int64) string {
	if bytes < 1_000_000 {
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// SettingName is the name of the hub setting that contains [Settings] as JSON.
// Its scope is [SettingScope].
const (
	SettingName  = "quotas"
	SettingScope = "hub"
)

// Quotas checks additions against the settings of a hub. The zero value has no
// limits until an administrator sets some. It is safe for concurrent use.
type Quotas struct {
	// Default applies while the setting is not set.
	Default Settings
}

// Settings returns the current settings and their generation, which is 0 if the
// default applies.
func (q Quotas) Settings(ctx context.Context, t store.Settings) (Settings, int64, error) {
	row, err := t.Get(ctx, SettingScope, SettingName)
	if errors.Is(err, store.ErrNotFound) {
		return q.Default, 0, nil
	}
	if err != nil {
		return Settings{}, 0, err
	}
	var s Settings
	if err := json.Unmarshal(row.Value, &s); err != nil {
		return Settings{}, 0, fmt.Errorf("decode setting %s: %w: %w", SettingName, store.ErrCorrupt, err)
	}
	return s, row.Generation, nil
}

// Check returns an [*ExceededError] if adding to a namespace would exceed a
// limit. It ignores measures that the addition does not increase. For an exact
// result, call it in the transaction that makes the addition, before the
// addition.
func (q Quotas) Check(ctx context.Context, t *store.Tables, n store.Namespace, add Amounts) error {
	s, _, err := q.Settings(ctx, t.Settings)
	if err != nil {
		return err
	}
	limits := s.Limits(n)
	for _, m := range []struct {
		measure      Measure
		added, limit int64
		used         func(context.Context, store.Namespace) (int64, error)
	}{
		{Bytes, add.Bytes, limits.Bytes, t.Storage.Bytes},
		{Skills, add.Skills, limits.Skills, t.Storage.Skills},
		{Sessions, add.Sessions, limits.Sessions, t.Storage.Sessions},
	} {
		if m.added <= 0 || m.limit <= 0 {
			continue
		}
		used, err := m.used(ctx, n)
		if err != nil {
			return err
		}
		if used+m.added > m.limit {
			return &ExceededError{Namespace: n, Measure: m.measure, Limit: m.limit, Used: used, Added: m.added}
		}
	}
	return nil
}

// Allowance is the number of bytes that a transaction may still add to a
// namespace. Unlike [Quotas.Check], it measures the namespace once for many
// additions.
type Allowance struct {
	namespace   store.Namespace
	limit, used int64
}

// Allowance returns the allowance of a namespace. It is valid only in the
// transaction of t.
func (q Quotas) Allowance(ctx context.Context, t *store.Tables, n store.Namespace) (*Allowance, error) {
	s, _, err := q.Settings(ctx, t.Settings)
	if err != nil {
		return nil, err
	}
	a := &Allowance{namespace: n, limit: s.Limits(n).Bytes}
	if a.limit > 0 {
		a.used, err = t.Storage.Bytes(ctx, n)
	}
	return a, err
}

// Add records that bytes are added, or removed if the number is negative. It
// returns an [*ExceededError], and records nothing, if an addition would exceed
// the limit.
func (a *Allowance) Add(bytes int64) error {
	if bytes > 0 && a.limit > 0 && a.used+bytes > a.limit {
		return &ExceededError{Namespace: a.namespace, Measure: Bytes, Limit: a.limit, Used: a.used, Added: bytes}
	}
	a.used += bytes
	return nil
}

// Usage returns the stored amounts of a namespace and its limits.
func (q Quotas) Usage(ctx context.Context, t *store.Tables, n store.Namespace) (used, limits Amounts, err error) {
	s, _, err := q.Settings(ctx, t.Settings)
	if err != nil {
		return used, limits, err
	}
	if used.Bytes, err = t.Storage.Bytes(ctx, n); err != nil {
		return used, limits, err
	}
	if used.Skills, err = t.Storage.Skills(ctx, n); err != nil {
		return used, limits, err
	}
	used.Sessions, err = t.Storage.Sessions(ctx, n)
	return used, s.Limits(n), err
}
