package policy

import (
	"fmt"
	"time"
)

// MaxGrants limits the grants in one store.
const MaxGrants = maxGrants

// ExpiredRetention is how long a store keeps an expired grant.
const ExpiredRetention = expiredRetention

// PrepareGrant returns a grant as a [Store] stores it now, and its encoded
// bytes, or an error that lists everything that is wrong with it. It is for
// implementations of Store in other packages.
func PrepareGrant(g Grant) (Grant, []byte, error) {
	g, err := g.prepare(time.Now())
	if err != nil {
		return Grant{}, nil, fmt.Errorf("store grant: %w", err)
	}
	data, err := g.encode()
	if err != nil {
		return Grant{}, nil, fmt.Errorf("store grant: %w", err)
	}
	return g, data, nil
}

// ReadGrant decodes what [PrepareGrant] encoded. It rejects anything else as
// damaged.
func ReadGrant(data []byte) (Grant, error) { return decodeGrant(data) }

// NewestGrant returns the newest grant that permits a principal to use a
// subject in a session now, as [Reader] requires.
func NewestGrant(grants []Grant, p Principal, subject Digest, session string) (*Grant, error) {
	return newestGrant(grants, p, subject, session)
}

// SelectGrants returns the grants that match an ID, a name or the beginning of
// a digest, as [Store.Revoke] requires, oldest first.
func SelectGrants(grants []Grant, what string) []Grant {
	sortGrants(grants)
	return selectGrants(grants, what)
}
