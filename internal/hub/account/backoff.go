package account

import (
	"net/netip"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
)

// Limits of sign-in attempts. An attempt counts from its start, even if its
// password turns out to be right.
const (
	networkInterval, networkBurst = time.Second, 60      // for all attempts from one network
	pairInterval, pairBurst       = 10 * time.Second, 10 // for attempts on one account from one network
	// An account is considered under attack while the attempts on it from all
	// networks together exceed these limits.
	accountInterval, accountBurst = 2 * time.Minute, 50
)

// unknownNetworkLimits are the limits on attempts from networks that the user has never
// signed in from, while the account is under attack. Each entry after the first
// applies to a larger enclosing network, because providers assign neighboring
// networks to one customer.
var unknownNetworkLimits = []struct {
	bits4, bits6 int // length of the network's prefix
	every        time.Duration
	burst        int
}{
	{32, 64, 10 * time.Minute, 1},
	{24, 48, 200 * time.Second, 3},
	{16, 32, 20 * time.Second, 30},
}

// Backoff limits the sign-in attempts for each pair of account and network, so
// that an attacker on one network cannot lock out a user on another. An attack
// on an account from many networks does not affect networks that the user has
// signed in from before. All other networks then get few attempts, so that
// guessing a password is slow, but the user can still sign in from a new
// network.
//
// It counts only attempts in this process. It is safe for concurrent use.
type Backoff struct {
	networks, pairs, accounts *Limiter
	unknownNetworks           []*Limiter // one for each of unknownNetworkLimits
}

// NewBackoff returns a Backoff that tracks up to maxKeys networks and accounts,
// each of which takes about 2 KB.
func NewBackoff(maxKeys int) *Backoff {
	b := &Backoff{
		networks: NewLimiter(networkInterval, networkBurst, maxKeys),
		pairs:    NewLimiter(pairInterval, pairBurst, maxKeys),
		accounts: NewLimiter(accountInterval, accountBurst, maxKeys),
	}
	for _, s := range unknownNetworkLimits {
		b.unknownNetworks = append(b.unknownNetworks, NewLimiter(s.every, s.burst, maxKeys))
	}
	return b
}

// CheckNetwork counts an attempt to sign in from an address without naming an
// account. It fails with a [*RateLimitError] if there are too many.
func (b *Backoff) CheckNetwork(from netip.Addr) error {
	return b.networks.Allow(address.CustomerNetwork(from).String())
}

// Attempt is a sign-in attempt that was counted.
type Attempt struct {
	Known  bool    // whether the user signed in from the network before
	limits []limit // all limits except that of the network
}

// Undo discards an attempt whose password was not checked. The attempt still
// counts toward the limit of the network.
func (a *Attempt) Undo() { undoAll(a.limits...) }

// Check counts an attempt to sign in to an account from an address, whether the
// account exists or not. It fails with a [*RateLimitError] if there are too many.
// Check calls known to find out whether the user signed in from the network
// before, and returns its errors unchanged.
func (b *Backoff) Check(account string, from netip.Addr, known func(netip.Prefix) (bool, error)) (*Attempt, error) {
	network := address.CustomerNetwork(from)
	pair, all := limit{b.pairs, pairKey(account, network)}, limit{b.accounts, accountKey(account)}
	if err := allowAll(limit{b.networks, network.String()}, pair); err != nil {
		return nil, err
	}
	is, err := known(network)
	if err != nil {
		return nil, err
	}
	if allowAll(all) == nil {
		return &Attempt{is, []limit{pair, all}}, nil
	}
	if is {
		return &Attempt{is, []limit{pair}}, nil
	}
	limits := make([]limit, len(unknownNetworkLimits))
	for i, s := range unknownNetworkLimits {
		bits := s.bits4
		if network.Addr().Is6() {
			bits = s.bits6
		}
		around, _ := network.Addr().Prefix(bits) // an invalid address gives the zero prefix
		limits[i] = limit{b.unknownNetworks[i], pairKey(account, around)}
	}
	if err := allowAll(limits...); err != nil {
		return nil, err
	}
	return &Attempt{is, append(limits, pair)}, nil
}

// Succeed records that an attempt succeeded. It forgets earlier attempts to sign
// in to the account from the network of the address.
func (b *Backoff) Succeed(account string, from netip.Addr) {
	b.pairs.Reset(pairKey(account, address.CustomerNetwork(from)))
}

func accountKey(account string) string { return strings.ToLower(account) }

func pairKey(account string, network netip.Prefix) string {
	return network.String() + " " + accountKey(account)
}
