package account_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

func unknown(netip.Prefix) (bool, error) { return false, nil }
func known(netip.Prefix) (bool, error)   { return true, nil }

func allowed(_ *account.Attempt, err error) error { return err }

// guesses counts the attempts of n addresses that are not refused.
func guesses(b *account.Backoff, name string, addresses, each int, address func(i int) string) (n int) {
	for range each {
		for i := range addresses {
			if allowed(b.Check(name, netip.MustParseAddr(address(i)), unknown)) == nil {
				n++
			}
		}
	}
	return n
}

func TestStrangerDoesNotLockOutOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := account.NewBackoff(1000)
		stranger, owner := netip.MustParseAddr("127.0.0.9"), netip.MustParseAddr("127.0.0.77")
		refused := 0
		for range 3600 { // an hour
			if allowed(b.Check("admin", stranger, unknown)) != nil {
				refused++
			}
			if err := allowed(b.Check("admin", owner, known)); err != nil {
				t.Fatalf("the owner is refused: %v", err)
			}
			b.Succeed("admin", owner)
			time.Sleep(time.Second)
		}
		if done := 3600 - refused; done > 60 {
			t.Errorf("the stranger guessed %d times in an hour", done)
		}
		if err := allowed(b.Check("admin", netip.MustParseAddr("203.0.113.5"), unknown)); err != nil {
			t.Errorf("from a new network: %v", err)
		}
	})
}

func TestDistributedGuessesAreSlow(t *testing.T) {
	for name, address := range map[string]func(i int) string{
		"one network each":  func(i int) string { return fmt.Sprintf("100.%d.%d.1", i/250, i%250) },
		"neighbors":         func(i int) string { return fmt.Sprintf("100.64.%d.%d", i/250, i%250) },
		"one IPv6 customer": func(i int) string { return fmt.Sprintf("2001:db8:1:%x::1", i) },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := account.NewBackoff(10_000)
			n := guesses(b, "admin", 500, 10, address)
			if n > 550 {
				t.Errorf("%s: %d of 5000 guesses", name, n)
			}
			time.Sleep(time.Minute)
			if more := guesses(b, "admin", 500, 10, address); more > 10 {
				t.Errorf("%s: %d guesses in the next minute", name, more)
			}
			owner := netip.MustParseAddr("198.51.100.7")
			for i := range 2 * 10 {
				if err := allowed(b.Check("admin", owner, known)); err != nil {
					t.Fatalf("%s: from a known network, %d: %v", name, i, err)
				}
				b.Succeed("admin", owner)
			}
			if err := allowed(b.Check("admin", netip.MustParseAddr("203.0.113.5"), unknown)); err != nil {
				t.Errorf("%s: the owner in a new network: %v", name, err)
			}
			if err := allowed(b.Check("other", netip.MustParseAddr("203.0.113.5"), unknown)); err != nil {
				t.Errorf("%s: another account: %v", name, err)
			}
		})
	}
}

// Attempts whose passwords were not checked do not use up the few of a stranger.
func TestUndoneAttemptsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := account.NewBackoff(1000)
		guesses(b, "admin", 60, 1, func(i int) string { return fmt.Sprintf("10.%d.0.1", i) })
		owner := netip.MustParseAddr("203.0.113.5")
		for i := range 50 {
			a, err := b.Check("admin", owner, unknown)
			if err != nil {
				t.Fatalf("attempt %d: %v", i, err)
			}
			a.Undo()
		}
		if err := allowed(b.Check("admin", owner, unknown)); err != nil {
			t.Error(err)
		}
		if err := allowed(b.Check("admin", owner, unknown)); err == nil {
			t.Error("undone attempts permit more than one")
		}
		undone := 0
		for ; undone < 100; undone++ {
			a, err := b.Check("another", owner, unknown)
			if err != nil {
				break
			}
			a.Undo()
		}
		if undone == 100 {
			t.Error("a network has no limit of undone attempts")
		}
	})
}

func TestAttackOnUnreadableAccount(t *testing.T) {
	b := account.NewBackoff(1000)
	guesses(b, "admin", 60, 1, func(i int) string { return fmt.Sprintf("10.%d.0.1", i) })
	why := errors.New("no database")
	_, err := b.Check("admin", netip.MustParseAddr("203.0.113.5"), func(netip.Prefix) (bool, error) { return false, why })
	if !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}
