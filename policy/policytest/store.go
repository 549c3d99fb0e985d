// Package policytest provides conformance tests for implementations of
// [policy.Store].
package policytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/policy"
)

// Ann and Robot are the principals of the tests.
var (
	Ann   = policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	Robot = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
)

// Digest returns a digest whose hexadecimal digits repeat s.
func Digest(s string) policy.Digest {
	return policy.Digest("sha256:" + strings.Repeat(s, 64/len(s)))
}

// Grant returns a grant with scope Always that Ann gave to Robot. It permits
// running the skill pdf with the given digest.
func Grant(subject policy.Digest) policy.Grant {
	return policy.Grant{Principal: Robot, Subject: subject, Name: "pdf", Origin: "user", Permissions: policy.Permissions{Run: true}, Scope: policy.Always, By: Ann}
}

// Store tests a store implementation. It calls open for a new, empty store for
// each test. Some tests run in a [synctest] bubble.
func Store(t *testing.T, open func(t *testing.T) policy.Store) {
	tests := map[string]func(*testing.T, policy.Store){
		"a new store is empty":                                emptyStore,
		"what is put is found and listed as it was":           roundTrip,
		"a grant is for its principal and subject alone":      exactly,
		"another grant of the same replaces the first":        replace,
		"a grant for a session is for that session":           sessions,
		"of several grants the last applies":                  lastApplies,
		"a grant that says less than it has to is refused":    refused,
		"hosts, secrets and needs have one form":              normal,
		"revoking by id, name or digest":                      revoke,
		"revoking nothing says so":                            revokeNothing,
		"of those who revoke at the same time one gets it":    revokeRace,
		"grants given at the same time are all kept":          putRace,
		"what a store returns can be changed without harm":    shared,
		"holding a grant for one run uses it up":              once,
		"holding ends with what a grant of less leaves out":   holdLess,
		"a name that looks like an id revokes nothing else":   nameLikeID,
		"the order is that in which grants were given":        order,
		"a digest with a few digits is no beginning of one":   shortDigest,
		"a grant that is for needs is valid only with them":   needs,
		"a grant is not found for a principal of other kind":  kinds,
		"a grant that has expired already cannot be put":      expiredPut,
		"a session that is not named has no grant of another": noSession,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	bubbles := map[string]func(*testing.T, policy.Store){
		"a grant permits until it expires":               expiry,
		"grants for a session or a run expire in a day":  defaultExpiry,
		"grants that expired long ago are forgotten":     forgotten,
		"holding ends when the grant is revoked":         holdRevoked,
		"holding ends at the moment of expiry":           holdExpired,
		"holding goes on until it is stopped":            holdStopped,
		"holding for one run ends at the expiry as well": holdOnce,
	}
	for name, test := range bubbles {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, open(t)) })
		})
	}
}

func emptyStore(t *testing.T, s policy.Store) {
	if got := list(t, s); len(got) != 0 {
		t.Errorf("a new store has %d grants", len(got))
	}
	missing(t, s, Robot, Digest("a"), "")
}

func roundTrip(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Name, g.Origin = "指南 <&> \"quoted\"", "user.claude"
	g.Permissions = policy.Permissions{Run: true, Call: true, Network: []string{"*.example.com:443", "example.org"}, Secrets: []string{"KEY", "TOKEN"}, WorkspaceWrite: true, Unsandboxed: true, HostNetwork: true}
	g.Needs = []policy.Need{{Name: "csv", Digest: Digest("c")}, {Name: "xml", Digest: Digest("d")}}
	g.Expires = time.Now().Add(time.Hour).UTC().Round(0)
	before := time.Now()
	kept := put(t, s, g)
	if kept.ID == "" || kept.Version == 0 || kept.Created.Before(before.Round(0)) || kept.Created.After(time.Now()) {
		t.Errorf("kept as ID %q, version %d, created %s; want all of them set, and the time of now", kept.ID, kept.Version, kept.Created)
	}
	want := g
	want.ID, want.Version, want.Created = kept.ID, kept.Version, kept.Created
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept otherwise than given (-given +kept):\n%s", diff)
	}
	if diff := cmp.Diff(kept, *find(t, s, g.Principal, g.Subject, "")); diff != "" {
		t.Errorf("found otherwise than kept (-kept +found):\n%s", diff)
	}
	if diff := cmp.Diff([]policy.Grant{kept}, list(t, s)); diff != "" {
		t.Errorf("listed otherwise than kept (-kept +listed):\n%s", diff)
	}
}

func exactly(t *testing.T, s policy.Store) {
	put(t, s, Grant(Digest("a")))
	find(t, s, Robot, Digest("a"), "")
	missing(t, s, Robot, Digest("b"), "")
	missing(t, s, Ann, Digest("a"), "")
	missing(t, s, Robot, "", "")
	missing(t, s, policy.Principal{}, Digest("a"), "")
}

func kinds(t *testing.T, s policy.Store) {
	put(t, s, Grant(Digest("a")))
	missing(t, s, policy.Principal{ID: Robot.ID, Kind: policy.UserPrincipal}, Digest("a"), "")
}

func replace(t *testing.T, s policy.Store) {
	first := Grant(Digest("a"))
	first.Permissions.Network = []string{"example.com"}
	one := put(t, s, first)
	two := put(t, s, Grant(Digest("a")))
	if one.ID != two.ID {
		t.Errorf("the grants of the same have the ids %s and %s", one.ID, two.ID)
	}
	if diff := cmp.Diff([]policy.Grant{two}, list(t, s)); diff != "" {
		t.Errorf("the second alone is kept (-second +kept):\n%s", diff)
	}
}

func sessions(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Scope, g.Session = policy.ForSession, "s1"
	put(t, s, g)
	find(t, s, Robot, Digest("a"), "s1")
	missing(t, s, Robot, Digest("a"), "s2")
}

func noSession(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Scope, g.Session = policy.Once, "s1"
	put(t, s, g)
	missing(t, s, Robot, Digest("a"), "")
	find(t, s, Robot, Digest("a"), "s1")
}

func lastApplies(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	always := put(t, s, g)
	g.Scope, g.Session = policy.ForSession, "s1"
	session := put(t, s, g)
	if got := find(t, s, Robot, g.Subject, "s1"); got.ID != session.ID {
		t.Errorf("in the session the grant %s applies, want that for the session, %s", got.ID, session.ID)
	}
	if got := find(t, s, Robot, g.Subject, "s2"); got.ID != always.ID {
		t.Errorf("in another session the grant %s applies, want that for always, %s", got.ID, always.ID)
	}
	again := put(t, s, Grant(Digest("a")))
	if got := find(t, s, Robot, g.Subject, "s1"); !got.Created.Equal(again.Created) {
		t.Errorf("the grant of %s applies, want the one given last, at %s", got.Created, again.Created)
	}
}

func refused(t *testing.T, s policy.Store) {
	for name, spoil := range map[string]func(*policy.Grant){
		"no principal":            func(g *policy.Grant) { g.Principal = policy.Principal{} },
		"no kind":                 func(g *policy.Grant) { g.Principal.Kind = "" },
		"a principal in disguise": func(g *policy.Grant) { g.Principal.ID = "ann\u202e" },
		"no subject":              func(g *policy.Grant) { g.Subject = "" },
		"half a subject":          func(g *policy.Grant) { g.Subject = g.Subject[:40] },
		"a subject in capitals":   func(g *policy.Grant) { g.Subject = Digest("A") },
		"no name":                 func(g *policy.Grant) { g.Name = "" },
		"a name with an escape":   func(g *policy.Grant) { g.Name = "\x1b[2J" },
		"no scope":                func(g *policy.Grant) { g.Scope = "" },
		"a scope of another day":  func(g *policy.Grant) { g.Scope = "hour" },
		"a session unnamed":       func(g *policy.Grant) { g.Scope = policy.ForSession },
		"always in a session":     func(g *policy.Grant) { g.Session = "s1" },
		"by nobody":               func(g *policy.Grant) { g.By = policy.Principal{} },
		"by an agent":             func(g *policy.Grant) { g.By = Robot },
		"a host that is none":     func(g *policy.Grant) { g.Permissions.Network = []string{"http://example.com/"} },
		"any secret":              func(g *policy.Grant) { g.Permissions.Secrets = []string{"*"} },
		"a need without digest":   func(g *policy.Grant) { g.Needs = []policy.Need{{Name: "csv"}} },
		"too much of it":          func(g *policy.Grant) { g.Needs = many(1000) },
		"too many bytes": func(g *policy.Grant) {
			g.Needs = many(250)
			for i := range g.Needs {
				g.Needs[i].Name += strings.Repeat("x", 1000)
			}
		},
	} {
		g := Grant(Digest("a"))
		spoil(&g)
		if _, err := s.Put(t.Context(), g); err == nil {
			t.Errorf("a grant with %s is kept", name)
		}
	}
	if got := list(t, s); len(got) != 0 {
		t.Errorf("%d grants are kept that were refused", len(got))
	}
}

func many(n int) []policy.Need {
	var out []policy.Need
	for i := range n {
		out = append(out, policy.Need{Name: fmt.Sprint("need", i), Digest: Digest("d")})
	}
	return out
}

func normal(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Permissions.Network = []string{"B.example.com.", "a.example.com:443", "b.example.com:80", "*.EXAMPLE.org", "x.example.org"}
	g.Permissions.Secrets = []string{"B", "A", "B"}
	g.Needs = []policy.Need{{Name: "b", Digest: Digest("b")}, {Name: "a", Digest: Digest("c")}, {Name: "b", Digest: Digest("b")}}
	kept := put(t, s, g)
	want := policy.Permissions{Run: true, Network: []string{"*.example.org", "a.example.com:443", "b.example.com"}, Secrets: []string{"A", "B"}}
	if diff := cmp.Diff(want, kept.Permissions); diff != "" {
		t.Errorf("what is allowed (-want +kept):\n%s", diff)
	}
	if want := []policy.Need{{Name: "a", Digest: Digest("c")}, {Name: "b", Digest: Digest("b")}}; !slices.Equal(kept.Needs, want) {
		t.Errorf("it needs %v, want %v", kept.Needs, want)
	}
}

func revoke(t *testing.T, s policy.Store) {
	fill := func() (pdf, pdf2, csv policy.Grant) {
		c := Grant(Digest("c"))
		c.Name = "csv"
		return put(t, s, Grant(Digest("a"))), put(t, s, Grant(Digest("ab"))), put(t, s, c)
	}
	pdf, pdf2, csv := fill()
	for _, tt := range []struct {
		what string
		want []policy.Grant
	}{
		{pdf.ID, []policy.Grant{pdf}},
		{"pdf", []policy.Grant{pdf, pdf2}},
		{string(csv.Subject), []policy.Grant{csv}},
		{"sha256:aaaaaaaa", []policy.Grant{pdf}},
		{"abababab", []policy.Grant{pdf2}},
	} {
		got, err := s.Revoke(t.Context(), tt.what)
		if err != nil {
			t.Fatalf("revoke %q: %v", tt.what, err)
		}
		if !slices.Equal(names(got), names(tt.want)) {
			t.Errorf("revoke %q withdrew %q, want %q", tt.what, names(got), names(tt.want))
		}
		for _, g := range got {
			missing(t, s, g.Principal, g.Subject, "")
		}
		if left := list(t, s); len(left) != 3-len(got) {
			t.Errorf("after revoke %q there are %d grants, want %d", tt.what, len(left), 3-len(got))
		}
		fill()
	}
}

func revokeNothing(t *testing.T, s policy.Store) {
	for range 2 { // without a grant, then with one
		for _, what := range []string{"", "nope", "sha256:", "../escape", string(Digest("f"))} {
			if got, err := s.Revoke(t.Context(), what); !errors.Is(err, policy.ErrNotGranted) || len(got) > 0 {
				t.Errorf("revoke %q: %v, %v; want %v", what, got, err, policy.ErrNotGranted)
			}
		}
		put(t, s, Grant(Digest("a")))
	}
	find(t, s, Robot, Digest("a"), "")
}

func shortDigest(t *testing.T, s policy.Store) {
	put(t, s, Grant(Digest("a")))
	for _, what := range []string{"aaaaaaa", "sha256:aaaaaaa"} {
		if got, err := s.Revoke(t.Context(), what); !errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("revoke %q: %v, %v; want %v", what, got, err, policy.ErrNotGranted)
		}
	}
}

func nameLikeID(t *testing.T, s policy.Store) {
	g := put(t, s, Grant(Digest("a")))
	other := Grant(Digest("b"))
	other.Name = g.ID
	put(t, s, other)
	if got, err := s.Revoke(t.Context(), g.ID); err != nil || !slices.Equal(names(got), names([]policy.Grant{g})) {
		t.Errorf("withdrew %q (%v), want %q", names(got), err, names([]policy.Grant{g}))
	}
	find(t, s, Robot, Digest("b"), "")

	run := Grant(Digest("c"))
	run.Scope = policy.Once
	run = put(t, s, run)
	hold(t, s, run, time.Hour)
	other = Grant(Digest("c"))
	other.Name = run.ID
	put(t, s, other)
	if _, _, err := policy.AcquireGrant(t.Context(), s, run, time.Hour); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("a run that was used up, beside a skill with its id for a name: %v, want %v", err, policy.ErrNotGranted)
	}
}

func revokeRace(t *testing.T, s policy.Store) {
	g := put(t, s, Grant(Digest("a")))
	var mu sync.Mutex
	winners := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := s.Revoke(t.Context(), g.ID)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				winners += len(got)
			case !errors.Is(err, policy.ErrNotGranted):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if winners != 1 {
		t.Errorf("the grant was withdrawn %d times", winners)
	}
}

func putRace(t *testing.T, s policy.Store) {
	const writers = 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for _, subject := range []policy.Digest{Digest("f"), Digest(fmt.Sprint(i))} {
				if _, err := s.Put(t.Context(), Grant(subject)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := list(t, s); len(got) != writers+1 {
		t.Errorf("%d grants are kept, want %d: one of each writer and one of all", len(got), writers+1)
	}
}

func shared(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Permissions.Network, g.Permissions.Secrets = []string{"example.com"}, []string{"KEY"}
	g.Needs = []policy.Need{{Name: "csv", Digest: Digest("c")}}
	spoil := func(g policy.Grant) {
		g.Permissions.Network[0], g.Permissions.Secrets[0], g.Needs[0].Name = "evil.example", "EVIL", "evil"
	}
	kept := put(t, s, g)
	want := *find(t, s, Robot, g.Subject, "")
	spoil(g)
	spoil(kept)
	spoil(list(t, s)[0])
	got := find(t, s, Robot, g.Subject, "")
	if got.Permissions.Network[0] != "example.com" || got.Permissions.Secrets[0] != "KEY" || got.Needs[0].Name != "csv" {
		t.Errorf("the kept grant was changed:\n%s", cmp.Diff(want, *got))
	}
}

func order(t *testing.T, s policy.Store) {
	var want []policy.Digest
	for _, c := range []string{"3", "1", "2", "5", "4"} {
		want = append(want, put(t, s, Grant(Digest(c))).Subject)
	}
	var got []policy.Digest
	for _, g := range list(t, s) {
		got = append(got, g.Subject)
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func expiredPut(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Expires = time.Now().Add(-time.Second)
	if _, err := s.Put(t.Context(), g); err == nil {
		t.Error("a grant is kept that expired before it was given")
	}
}

func put(t *testing.T, s policy.Store, g policy.Grant) policy.Grant {
	t.Helper()
	kept, err := s.Put(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func find(t *testing.T, s policy.Store, p policy.Principal, subject policy.Digest, session string) *policy.Grant {
	t.Helper()
	g, err := s.Find(t.Context(), p, subject, session)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func missing(t *testing.T, s policy.Store, p policy.Principal, subject policy.Digest, session string) {
	t.Helper()
	if g, err := s.Find(t.Context(), p, subject, session); !errors.Is(err, policy.ErrNotGranted) || g != nil {
		t.Errorf("%s finds %v (%v) for %s in the session %q, want %v", p, g, err, subject, session, policy.ErrNotGranted)
	}
}

func list(t *testing.T, s policy.Store) []policy.Grant {
	t.Helper()
	grants, problems, err := s.List(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatalf("list: %v %v", problems, err)
	}
	return grants
}

func names(grants []policy.Grant) []string {
	var out []string
	for _, g := range grants {
		out = append(out, g.Name+" "+string(g.Subject))
	}
	return out
}
