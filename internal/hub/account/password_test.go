package account_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

// client is a client whose checks wait as long as any.
var client = account.UserClient("ada")

const password = "a good password"

var cheap = account.Cost{Memory: 64, Time: 1, Lanes: 1}

func hash(t testing.TB, p *account.Passwords, password string) string {
	t.Helper()
	h, err := p.Hash(t.Context(), account.UserClient("ann"), "ann", password)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestPasswords(t *testing.T) {
	p := account.NewPasswords(cheap, 2)
	h := hash(t, p, password)
	if !strings.HasPrefix(h, "$argon2id$v=19$m=64,t=1,p=1$") || len(h) > 130 || h == hash(t, p, password) {
		t.Errorf("hash %s", h)
	}
	for given, want := range map[string]error{
		password: nil, "A good password": account.ErrWrongPassword, "": account.ErrWrongPassword, password + " ": account.ErrWrongPassword,
		strings.Repeat("x", 1<<20): account.ErrWrongPassword,
	} {
		if again, err := p.Check(t.Context(), client, h, given); !errors.Is(err, want) || again {
			t.Errorf("%.20q: %v, %v, want %v", given, again, err, want)
		}
	}
	// A user without a password has none that can be guessed.
	for _, given := range []string{"", password, strings.Repeat("\x00", 16)} {
		if _, err := p.Check(t.Context(), client, "", given); !errors.Is(err, account.ErrWrongPassword) {
			t.Errorf("of nobody, %q: %v", given, err)
		}
	}
	// The same characters typed on another system.
	if _, err := p.Check(t.Context(), client, hash(t, p, "pässwörter sind lang"), "pa\u0308sswo\u0308rter sind lang"); err != nil {
		t.Errorf("decomposed: %v", err)
	}
}

// Hashes that others made are checked as well: this one is by the reference
// implementation, of the command line argon2.
func TestForeignHashesAreChecked(t *testing.T) {
	p := account.NewPasswords(cheap, 1)
	again, err := p.Check(t.Context(), client, "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "password")
	if err != nil || again {
		t.Errorf("%v, %v", again, err)
	}
}

func TestHashesAreRenewedWhenTheCostGrows(t *testing.T) {
	h := hash(t, account.NewPasswords(cheap, 1), password)
	for _, c := range []account.Cost{{Memory: 128, Time: 1, Lanes: 1}, {Memory: 64, Time: 2, Lanes: 1}, {Memory: 64, Time: 1, Lanes: 2}} {
		p := account.NewPasswords(c, 1)
		if again, err := p.Check(t.Context(), client, h, password); !again || err != nil {
			t.Errorf("at %+v: %v, %v", c, again, err)
		}
		if again, err := p.Check(t.Context(), client, h, "another password"); again || err == nil {
			t.Errorf("a wrong one at %+v: %v, %v", c, again, err)
		}
		if again, err := account.NewPasswords(cheap, 1).Check(t.Context(), client, hash(t, p, password), password); again || err != nil {
			t.Errorf("back from %+v: %v, %v", c, again, err)
		}
	}
}

func TestWeakPasswordsAreRefused(t *testing.T) {
	p := account.NewPasswords(cheap, 1)
	for _, weak := range []string{
		"", "short", "ünmöglich", "aaaaaaaaaaaa", "abcdefghijkl", "0123456789", "9876543210", "password123", "PassWord123", "qwertyuiop", "loadout123",
		"Annemarie", "annemarie1984", "annemarie-annemarie", "bad\xffbytes\xffhere", strings.Repeat("long ", 300),
	} {
		h, err := p.Hash(t.Context(), account.UserClient("ann"), "Annemarie", weak)
		e, ok := errors.AsType[*account.WeakPasswordError](err)
		if !ok || h != "" || e.Reason == "" {
			t.Errorf("%.30q is taken: %q, %v", weak, h, err)
		} else if len(weak) > 4 && strings.Contains(err.Error(), weak) {
			t.Errorf("%q repeats it", err)
		}
	}
	for _, good := range []string{"correct horse battery", "ein langes Wort", "密码密码密码密码密码长密", "annemarie likes tea", "tr0ub4dor&3x"} {
		if _, err := p.Hash(t.Context(), account.UserClient("ann"), "Annemarie", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestDamagedHashesMatchNothing(t *testing.T) {
	p := account.NewPasswords(cheap, 1)
	h := hash(t, p, password)
	for name, bad := range map[string]string{
		"no hash": password, "another algorithm": strings.Replace(h, "argon2id", "argon2i", 1), "another version": strings.Replace(h, "v=19", "v=16", 1),
		"too dear": strings.Replace(h, "m=64", "m=16000000", 1), "endless": strings.Replace(h, "t=1", "t=4294967295", 1), "nothing": strings.Replace(h, "t=1", "t=0", 1),
		"many lanes": strings.Replace(h, "p=1", "p=257", 1), "odd numbers": strings.Replace(h, "t=1", "t=01", 1), "more": h + "$x", "cut": h[:40], "no salt": strings.Replace(h, "$v=19", "$$v=19", 1),
		"long": h + strings.Repeat("A", 1000),
	} {
		if again, err := p.Check(t.Context(), client, bad, password); err == nil || again || errors.Is(err, account.ErrWrongPassword) {
			t.Errorf("%s: %v, %v", name, again, err)
		} else if strings.Contains(err.Error(), h[40:]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Some sign-ins wait for their turn, and the rest are told to retry. A waiting one stops
// when its context ends.
func TestSignInLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := account.NewPasswords(cheap, 1)
		h := hash(t, p, password)
		release := p.Hold()
		const many = 60
		got := make(chan error, many+1)
		check := func(ctx context.Context) {
			_, err := p.Check(ctx, client, h, password)
			got <- err
		}
		why := errors.New("left")
		ctx, cancel := context.WithCancelCause(t.Context())
		go check(ctx)
		synctest.Wait()
		cancel(why)
		if err := <-got; !errors.Is(err, why) {
			t.Errorf("%v, want %v", err, why)
		}
		for range many {
			go check(t.Context())
		}
		synctest.Wait()
		waiting := p.Waiting()
		if waiting == 0 || waiting >= many {
			t.Errorf("%d wait", waiting)
		}
		release()
		busy := 0
		for range many {
			if err := <-got; errors.Is(err, account.ErrBusy) {
				busy++
			} else if err != nil {
				t.Error(err)
			}
		}
		if busy != many-waiting {
			t.Errorf("%d were told to come back, and %d waited", busy, waiting)
		}
	})
}

// One client with many sign-ins does not take the turns of another.
func TestSignInsOfClientsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := account.NewPasswords(cheap, 1)
		h := hash(t, p, password)
		release := p.Hold()
		got := make(chan error, 100)
		check := func(from string) {
			_, err := p.Check(t.Context(), account.NetworkClient(netip.MustParseAddr(from), "ada", false), h, password)
			got <- err
		}
		for range 60 {
			go check("198.51.100.7")
		}
		synctest.Wait()
		for busy := range 60 - p.Waiting() {
			if err := <-got; !errors.Is(err, account.ErrBusy) {
				t.Fatalf("%d: %v, want %v", busy, err, account.ErrBusy)
			}
		}
		waiting := p.Waiting()
		go check("203.0.113.5")
		synctest.Wait()
		if p.Waiting() != waiting+1 {
			t.Error("another client does not wait for its turn")
		}
		release()
		for range waiting + 1 {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
	})
}

// Sign-ins from a network around an address take only a part of the room.
func TestNeighborsDoNotTakeAllTurns(t *testing.T) {
	for name, address := range map[string]func(i int) string{
		"IPv4": func(i int) string { return fmt.Sprintf("198.51.100.%d", i) },
		"IPv6": func(i int) string { return fmt.Sprintf("2001:db8:1:%x::1", i) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := account.NewPasswords(cheap, 1)
			release := p.Hold()
			got := make(chan error, 100)
			check := func(from string) {
				_, err := p.Check(t.Context(), account.NetworkClient(netip.MustParseAddr(from), "ada", false), "", password)
				got <- err
			}
			for i := range 60 {
				go check(address(i))
			}
			synctest.Wait()
			waiting := p.Waiting()
			if waiting > 8 {
				t.Errorf("%s: %d neighbors wait", name, waiting)
			}
			go check("203.0.113.5")
			synctest.Wait()
			if p.Waiting() != waiting+1 {
				t.Errorf("%s: another network does not wait for its turn", name)
			}
			release()
		})
	}
}

// However many strangers wait, users in networks from which they signed in before get a
// turn, and those of one network have a turn each.
func TestStrangersDoNotTakeTurnsOfKnownUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := account.NewPasswords(cheap, 1)
		release := p.Hold()
		check := func(from, user string, known bool) chan error {
			got := make(chan error, 1)
			go func() {
				_, err := p.Check(t.Context(), account.NetworkClient(netip.MustParseAddr(from), user, known), "", password)
				got <- err
			}()
			synctest.Wait()
			return got
		}
		refused := 0
		for i := range 60 {
			select {
			case <-check(fmt.Sprintf("100.64.%d.1", i), "nobody", false):
				refused++
			default:
			}
		}
		if refused == 0 {
			t.Fatal("all strangers wait")
		}
		office := "198.51.100.7"
		for i := range 20 {
			select {
			case err := <-check(office, fmt.Sprint("user", i), true):
				t.Fatalf("user %d: %v", i, err)
			default:
			}
		}
		release()
	})
}

// All checks of a sign-in together wait for a bounded time.
func TestSignInDoesNotWaitForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := account.NewPasswords(cheap, 1)
		h := hash(t, p, password)
		defer p.Hold()()
		began, client := time.Now(), account.NetworkClient(netip.MustParseAddr("198.51.100.7"), "ada", false)
		time.Sleep(time.Second)
		if _, err := p.Check(t.Context(), client, h, password); !errors.Is(err, account.ErrBusy) || time.Since(began) > 8*time.Second {
			t.Errorf("%v after %s, want %v within 8 s", err, time.Since(began), account.ErrBusy)
		}
	})
}

// The memory of a hash is free before the next one begins.
func TestMemoryOfHashesDoesNotPileUp(t *testing.T) {
	const memory = 16 << 20
	p := account.NewPasswords(account.Cost{Memory: memory >> 10, Time: 1, Lanes: 1}, 1)
	h := hash(t, p, password)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before := heap()
	for range 3 {
		if _, err := p.Check(t.Context(), client, h, password); err != nil {
			t.Fatal(err)
		}
		if now := heap(); now > before+memory/2 {
			t.Fatalf("after a check, the heap has %d bytes more", now-before)
		}
	}
}

// For an unknown user a password is hashed as well, so that the time reveals nothing.
// The same applies to invalid passwords.
func TestUnknownUserTakesTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := account.NewPasswords(cheap, 1)
		h := hash(t, p, password)
		release := p.Hold()
		got := make(chan error, 2)
		for _, check := range [][2]string{{"", password}, {h, strings.Repeat("x", 1<<20)}} {
			go func() {
				_, err := p.Check(t.Context(), client, check[0], check[1])
				got <- err
			}()
		}
		synctest.Wait()
		if n := p.Waiting(); n != 2 {
			t.Errorf("%d wait for their turn to hash, want 2", n)
		}
		release()
		for range 2 {
			if err := <-got; !errors.Is(err, account.ErrWrongPassword) {
				t.Error(err)
			}
		}
	})
}

func TestMisusePanics(t *testing.T) {
	for _, f := range []func(){
		func() { account.NewPasswords(account.Cost{}, 1) },
		func() { account.NewPasswords(cheap, 0) },
		func() { account.NewLimiter(0, 1, 1) },
		func() { account.NewLimiter(time.Second, 1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no message")
				}
			}()
			f()
		}()
	}
}

// FuzzHash: no hash has anything happen but an answer, and none is taken that would
// be written otherwise.
func FuzzHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4")
	f.Add("$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=64,t=1,p=1,x=1$$")
	p := account.NewPasswords(cheap, 64)
	f.Fuzz(func(t *testing.T, h string) {
		if strings.Contains(h, "m=") && len(h) > 30 && !strings.Contains(h, "m=64,t=1,p=") && !strings.Contains(h, "m=8,t=1,p=") {
			return // dear ones are taken, and take their time
		}
		if _, err := p.Check(t.Context(), client, h, password); err == nil {
			t.Errorf("%q is the hash of %q", h, password)
		}
	})
}

func BenchmarkPassword(b *testing.B) {
	p := account.NewPasswords(account.DefaultCost(), 1)
	h := hash(b, p, password)
	for b.Loop() {
		if _, err := p.Check(b.Context(), client, h, password); err != nil {
			b.Fatal(err)
		}
	}
}
