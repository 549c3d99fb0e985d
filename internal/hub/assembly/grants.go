package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// GrantStore implements [policy.Store] with the database of a hub. It does not
// include reviews.
type GrantStore struct {
	db        *store.DB
	principal policy.Principal // owner of the grants; the zero value means all principals
}

var _ policy.Store = (*GrantStore)(nil)

// NewGrantStore returns the store of a principal's grants. For the zero principal,
// the store holds the grants of all principals.
func NewGrantStore(db *store.DB, who policy.Principal) *GrantStore { return &GrantStore{db, who} }

// policyPrincipals lists the prefixes of the principals of package policy. The
// table also contains grants of other principals.
var policyPrincipals = []string{policy.UserPrincipal + ":", policy.AgentPrincipal + ":", policy.ServicePrincipal + ":"}

func principalKey(p policy.Principal) string { return p.Kind + ":" + p.ID }

// Put stores a grant.
func (s *GrantStore) Put(ctx context.Context, g policy.Grant) (policy.Grant, error) {
	if s.principal != (policy.Principal{}) && g.Principal != s.principal {
		return policy.Grant{}, fmt.Errorf("store grant of %s: want principal %s", g.Principal, s.principal)
	}
	g, data, err := policy.PrepareGrant(g)
	if err != nil {
		return policy.Grant{}, err
	}
	row := store.Grant{ID: g.ID, Principal: principalKey(g.Principal), Subject: string(g.Subject), Name: g.Name, Session: g.Session,
		Data: data, Created: g.Created, Expires: g.Expires}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Grants.Prune(ctx, time.Now().Add(time.Millisecond-policy.ExpiredRetention)); err != nil {
			return err
		}
		rows, err := listPolicyGrants(ctx, tx.Grants, row.Principal)
		if err != nil {
			return err
		}
		if len(rows) >= policy.MaxGrants && !slices.ContainsFunc(rows, func(r store.Grant) bool { return r.ID == g.ID }) {
			return fmt.Errorf("store grant: %w: too many grants (%d); revoke some", store.ErrTooMany, len(rows))
		}
		return tx.Grants.Put(ctx, row)
	})
	if err != nil {
		return policy.Grant{}, err
	}
	return g, nil
}

// Find returns the newest grant that applies.
func (s *GrantStore) Find(ctx context.Context, p policy.Principal, subject policy.Digest, session string) (*policy.Grant, error) {
	if s.principal != (policy.Principal{}) && p != s.principal {
		return nil, fmt.Errorf("%s for %s: %w", subject.Short(), p, policy.ErrNotGranted)
	}
	rows, err := s.db.Grants.Find(ctx, principalKey(p), string(subject), session, time.Now())
	if err != nil {
		return nil, err
	}
	all, problems := decodeGrants(rows)
	g, err := policy.NewestGrant(all, p, subject, session)
	if err != nil && len(problems) > 0 {
		return nil, errors.New(problems[0].String())
	}
	return g, err
}

// List returns all grants, and the problems of unreadable ones.
func (s *GrantStore) List(ctx context.Context) ([]policy.Grant, []policy.Problem, error) {
	key := ""
	if s.principal != (policy.Principal{}) {
		key = principalKey(s.principal)
	}
	rows, err := listPolicyGrants(ctx, s.db.Grants, key)
	if err != nil {
		return nil, nil, err
	}
	all, problems := decodeGrants(rows)
	return all, problems, nil
}

// listPolicyGrants returns the stored grants of a principal of package policy, or
// of all its principals if principal is "".
func listPolicyGrants(ctx context.Context, t store.Grants, principal string) ([]store.Grant, error) {
	var out []store.Grant
	for after := int64(0); ; {
		rows, err := t.List(ctx, principal, after)
		if err != nil || len(rows) == 0 {
			return out, err
		}
		for _, row := range rows {
			if slices.ContainsFunc(policyPrincipals, func(kind string) bool { return strings.HasPrefix(row.Principal, kind) }) {
				out = append(out, row)
			}
		}
		after = rows[len(rows)-1].Seq
	}
}

// grantLocation returns the location that a problem with a grant reports.
func grantLocation(id string) string { return "grant " + id }

func decodeGrants(rows []store.Grant) (all []policy.Grant, problems []policy.Problem) {
	for _, row := range rows {
		g, err := policy.ReadGrant(row.Data)
		if err != nil {
			problems = append(problems, policy.Problem{Where: grantLocation(row.ID), Message: err.Error()})
			continue
		}
		all = append(all, g)
	}
	return all, problems
}

// Revoke revokes the grants that match what, and returns them.
func (s *GrantStore) Revoke(ctx context.Context, what string) ([]policy.Grant, error) {
	all, problems, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	meant := policy.SelectGrants(all, what)
	if slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Where == grantLocation(what) }) {
		meant = []policy.Grant{{ID: what}}
	}
	var gone []policy.Grant
	for _, g := range meant {
		_, err := s.db.Grants.Delete(ctx, g.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // revoked concurrently
		}
		if err != nil {
			return gone, err
		}
		gone = append(gone, g)
	}
	if len(gone) == 0 {
		return nil, fmt.Errorf("revoke %.200q: %w", what, policy.ErrNotGranted)
	}
	return gone, nil
}
