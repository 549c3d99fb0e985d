package policy

import (
	"fmt"
	"time"
)

// MaxGrants bounds the grants in one store.
const MaxGrants = maxGrants

// ForgetAfter is for how long a store keeps a grant that has expired.
const ForgetAfter = forgetAfter

// Prepare returns a grant as a [Store] keeps it when it is given now, and its bytes, or
// all that is wrong with it: for stores that are not of this package.
func Prepare(g Grant) (Grant, []byte, error) {
	g, err := g.fresh(time.Now())
	if err != nil {
		return Grant{}, nil, fmt.Errorf("keep a grant: %w", err)
	}
	data, err := g.encode()
	if err != nil {
		return Grant{}, nil, fmt.Errorf("keep a grant: %w", err)
	}
	return g, data, nil
}

// ReadGrant reads what [Prepare] made. Whatever it did not make is damaged.
func ReadGrant(data []byte) (Grant, error) { return decodeGrant(data) }

// Newest returns the grant given last of those that permit a principal to use a subject
// in a session now, as [Reader] has it.
func Newest(grants []Grant, p Principal, subject Digest, session string) (*Grant, error) {
	return newest(grants, p, subject, session)
}

// Select returns those grants that [Store] means by an ID, a name or the beginning of a
// digest, in the order in which they were given.
func Select(grants []Grant, what string) []Grant {
	sortGrants(grants)
	return selectGrants(grants, what)
}
