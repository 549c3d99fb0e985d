package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// NewGrantStore returns the store of a principal's grants in a hub's database,
// or of all grants if p is the zero value. It does not include reviews.
func NewGrantStore(db *store.DB, p policy.Principal) policy.Store {
	return policy.NewStore(&grantRows{db, p})
}

// grantRows provides access to the rows of the grants table that belong to
// package policy.
type grantRows struct {
	db        *store.DB
	principal policy.Principal // owner of the grants; the zero value is all principals
}

// policyPrincipals lists the prefixes of stored principals that belong to package
// policy. The table also contains other principals.
var policyPrincipals = []string{policy.UserPrincipal + ":", policy.AgentPrincipal + ":", policy.ServicePrincipal + ":"}

// UserPrincipal returns the principal of a user's grants.
func UserPrincipal(u account.UserID) policy.Principal {
	return policy.Principal{ID: string(u), Kind: policy.UserPrincipal}
}

func principalKey(p policy.Principal) string { return p.Kind + ":" + p.ID }

// owns reports whether a row belongs to the principal.
func (r *grantRows) owns(row store.Grant) bool {
	if r.principal != (policy.Principal{}) {
		return row.Principal == principalKey(r.principal)
	}
	return slices.ContainsFunc(policyPrincipals, func(kind string) bool { return strings.HasPrefix(row.Principal, kind) })
}

// List implements [policy.Rows].
func (r *grantRows) List(ctx context.Context, ids []string) ([]policy.Row, error) {
	found, err := r.list(ctx, ids)
	if err != nil {
		return nil, err
	}
	var rows []policy.Row
	for _, row := range found {
		if r.owns(row) {
			rows = append(rows, policy.Row{ID: row.ID, Data: row.Data})
		}
	}
	return rows, nil
}

func (r *grantRows) list(ctx context.Context, ids []string) ([]store.Grant, error) {
	if ids != nil {
		return r.db.Grants.Get(ctx, ids)
	}
	key := ""
	if r.principal != (policy.Principal{}) {
		key = principalKey(r.principal)
	}
	var all []store.Grant
	for after := int64(0); ; {
		page, err := r.db.Grants.List(ctx, key, after)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].Seq
	}
}

// Put implements [policy.Rows].
func (r *grantRows) Put(ctx context.Context, row policy.Row) error {
	var g policy.Grant
	if err := json.Unmarshal(row.Data, &g); err != nil {
		return err
	}
	if r.principal != (policy.Principal{}) && g.Principal != r.principal {
		return fmt.Errorf("store grant: principal mismatch: want %s, got %s", r.principal, g.Principal)
	}
	return r.db.Grants.Put(ctx, store.Grant{ID: row.ID, Principal: principalKey(g.Principal), Subject: string(g.Subject), Name: g.Name, Session: g.Session,
		Data: row.Data, Created: g.Created, Expires: g.Expires})
}

// Delete implements [policy.Rows].
func (r *grantRows) Delete(ctx context.Context, row policy.Row) (bool, error) {
	err := r.db.Grants.DeleteSame(ctx, row.ID, row.Data)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
