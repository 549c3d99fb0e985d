package loadouttest

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

	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/policy"
)

// ann and robot are the principals of the tests.
var (
	ann   = policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	robot = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
)

// digest returns a digest whose hexadecimal digits repeat s.
func digest(s string) policy.Digest {
	return policy.Digest("sha256:" + strings.Repeat(s, 64/len(s)))
}

// grant returns a grant with scope Always from ann to robot. It permits running
// the skill pdf with the given digest.
func grant(subject policy.Digest) policy.Grant {
	return policy.Grant{Principal: robot, Subject: subject, Name: "pdf", Origin: "user", Permissions: policy.Permissions{Run: true}, Scope: policy.Always, By: ann}
}

// PolicyStore tests a grant store. For each test, it calls open, which must
// return a new, empty store. To close it, open can use [testing.T.Cleanup].
//
// Some tests run in a [synctest] bubble and call open there. In these, the
// store must use the clock of package time. Goroutines that it starts must exit
// when it is closed.
func PolicyStore(t *testing.T, open func(t *testing.T) policy.Store) {
	for name, test := range map[string]func(*testing.T, policy.Store){
		"new store":                      testEmptyStore,
		"round trip":                     testGrantRoundTrip,
		"principal and subject":          testExactMatch,
		"kind of principal":              testPrincipalKinds,
		"replaced grant":                 testReplacedGrant,
		"session":                        testSessionGrant,
		"no session":                     testGrantWithoutSession,
		"latest grant applies":           testLatestGrant,
		"invalid grants":                 testInvalidGrants,
		"expired before it is put":       testExpiredGrant,
		"normal form":                    testNormalForm,
		"revoke by ID, name or digest":   testRevoke,
		"revoke nothing":                 testRevokeNothing,
		"revoke by a short digest":       testRevokeByShortDigest,
		"name that looks like an ID":     testNameLikeID,
		"concurrent revoke":              testConcurrentRevoke,
		"concurrent put":                 testConcurrentPut,
		"copies":                         testGrantCopies,
		"order":                          testGrantOrder,
		"needs":                          testNeeds,
		"grant for one run":              testOneTimeGrant,
		"lease ends with a lesser grant": testNarrowedLease,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	for name, test := range map[string]func(*testing.T, policy.Store){
		"expiry":                           testExpiry,
		"default expiry":                   testDefaultExpiry,
		"retention of expired grants":      testRetention,
		"lease ends on revocation":         testLeaseRevocation,
		"lease ends on expiry":             testLeaseExpiry,
		"lease ends when stopped":          testStoppedLease,
		"lease for one run ends on expiry": testOneTimeLease,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, open(t)) })
		})
	}
}

func testEmptyStore(t *testing.T, s policy.Store) {
	if got := listGrants(t, s); len(got) != 0 {
		t.Errorf("new store has %d grants", len(got))
	}
	checkNoGrant(t, s, robot, digest("a"), "")
}

func testGrantRoundTrip(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Name, g.Origin = "指南 <&> \"quoted\"", "user.claude"
	g.Permissions = policy.Permissions{Run: true, Call: true, Network: []string{"*.example.com:443", "example.org"}, Secrets: []string{"KEY", "TOKEN"}, WorkspaceWrite: true, Unsandboxed: true, HostNetwork: true}
	g.Needs = []policy.Need{{Name: "csv", Digest: digest("c")}, {Name: "xml", Digest: digest("d")}}
	g.Expires = time.Now().Add(time.Hour).UTC().Round(0)
	before := time.Now()
	stored := putGrant(t, s, g)
	if stored.ID == "" || stored.Version == 0 || stored.Created.Before(before.Round(0)) || stored.Created.After(time.Now()) {
		t.Errorf("stored with ID %q, version %d, created %s; want all three, and the current time", stored.ID, stored.Version, stored.Created)
	}
	want := g
	want.ID, want.Version, want.Created = stored.ID, stored.Version, stored.Created
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("stored grant differs (-given +stored):\n%s", diff)
	}
	if diff := cmp.Diff(stored, *findGrant(t, s, g.Principal, g.Subject, "")); diff != "" {
		t.Errorf("found grant differs (-stored +found):\n%s", diff)
	}
	if diff := cmp.Diff([]policy.Grant{stored}, listGrants(t, s)); diff != "" {
		t.Errorf("listed grant differs (-stored +listed):\n%s", diff)
	}
}

func testExactMatch(t *testing.T, s policy.Store) {
	putGrant(t, s, grant(digest("a")))
	findGrant(t, s, robot, digest("a"), "")
	checkNoGrant(t, s, robot, digest("b"), "")
	checkNoGrant(t, s, ann, digest("a"), "")
	checkNoGrant(t, s, robot, "", "")
	checkNoGrant(t, s, policy.Principal{}, digest("a"), "")
}

func testPrincipalKinds(t *testing.T, s policy.Store) {
	putGrant(t, s, grant(digest("a")))
	checkNoGrant(t, s, policy.Principal{ID: robot.ID, Kind: policy.UserPrincipal}, digest("a"), "")
}

func testReplacedGrant(t *testing.T, s policy.Store) {
	first := grant(digest("a"))
	first.Permissions.Network = []string{"example.com"}
	one := putGrant(t, s, first)
	two := putGrant(t, s, grant(digest("a")))
	if one.ID != two.ID {
		t.Errorf("grants for the same have the IDs %s and %s", one.ID, two.ID)
	}
	if diff := cmp.Diff([]policy.Grant{two}, listGrants(t, s)); diff != "" {
		t.Errorf("stored grants differ from the second (-second +stored):\n%s", diff)
	}
}

func testSessionGrant(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Scope, g.Session = policy.ForSession, "s1"
	putGrant(t, s, g)
	findGrant(t, s, robot, digest("a"), "s1")
	checkNoGrant(t, s, robot, digest("a"), "s2")
}

func testGrantWithoutSession(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Scope, g.Session = policy.Once, "s1"
	putGrant(t, s, g)
	checkNoGrant(t, s, robot, digest("a"), "")
	findGrant(t, s, robot, digest("a"), "s1")
}

func testLatestGrant(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	always := putGrant(t, s, g)
	g.Scope, g.Session = policy.ForSession, "s1"
	session := putGrant(t, s, g)
	if got := findGrant(t, s, robot, g.Subject, "s1"); got.ID != session.ID {
		t.Errorf("in the session, grant %s applies, want the one for the session, %s", got.ID, session.ID)
	}
	if got := findGrant(t, s, robot, g.Subject, "s2"); got.ID != always.ID {
		t.Errorf("in another session, grant %s applies, want the permanent one, %s", got.ID, always.ID)
	}
	again := putGrant(t, s, grant(digest("a")))
	if got := findGrant(t, s, robot, g.Subject, "s1"); !got.Created.Equal(again.Created) {
		t.Errorf("the grant of %s applies, want the latest, of %s", got.Created, again.Created)
	}
}

func testInvalidGrants(t *testing.T, s policy.Store) {
	for name, spoil := range map[string]func(*policy.Grant){
		"no principal":           func(g *policy.Grant) { g.Principal = policy.Principal{} },
		"no kind":                func(g *policy.Grant) { g.Principal.Kind = "" },
		"a hidden character":     func(g *policy.Grant) { g.Principal.ID = "ann\u202e" },
		"no subject":             func(g *policy.Grant) { g.Subject = "" },
		"half a subject":         func(g *policy.Grant) { g.Subject = g.Subject[:40] },
		"a subject in capitals":  func(g *policy.Grant) { g.Subject = digest("A") },
		"no name":                func(g *policy.Grant) { g.Name = "" },
		"a name with an escape":  func(g *policy.Grant) { g.Name = "\x1b[2J" },
		"no scope":               func(g *policy.Grant) { g.Scope = "" },
		"an unknown scope":       func(g *policy.Grant) { g.Scope = "hour" },
		"an unnamed session":     func(g *policy.Grant) { g.Scope = policy.ForSession },
		"always in a session":    func(g *policy.Grant) { g.Session = "s1" },
		"no author":              func(g *policy.Grant) { g.By = policy.Principal{} },
		"an agent as author":     func(g *policy.Grant) { g.By = robot },
		"an invalid host":        func(g *policy.Grant) { g.Permissions.Network = []string{"http://example.com/"} },
		"a wildcard for secrets": func(g *policy.Grant) { g.Permissions.Secrets = []string{"*"} },
		"a need without digest":  func(g *policy.Grant) { g.Needs = []policy.Need{{Name: "csv"}} },
		"too many needs":         func(g *policy.Grant) { g.Needs = needsOf(1000) },
		"too many bytes": func(g *policy.Grant) {
			g.Needs = needsOf(250)
			for i := range g.Needs {
				g.Needs[i].Name += strings.Repeat("x", 1000)
			}
		},
	} {
		g := grant(digest("a"))
		spoil(&g)
		if _, err := s.Put(t.Context(), g); err == nil {
			t.Errorf("a grant with %s was stored", name)
		}
	}
	if got := listGrants(t, s); len(got) != 0 {
		t.Errorf("%d refused grants were stored", len(got))
	}
}

func needsOf(n int) []policy.Need {
	var out []policy.Need
	for i := range n {
		out = append(out, policy.Need{Name: fmt.Sprint("need", i), Digest: digest("d")})
	}
	return out
}

func testNormalForm(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Permissions.Network = []string{"B.example.com.", "a.example.com:443", "b.example.com:80", "*.EXAMPLE.org", "x.example.org"}
	g.Permissions.Secrets = []string{"B", "A", "B"}
	g.Needs = []policy.Need{{Name: "b", Digest: digest("b")}, {Name: "a", Digest: digest("c")}, {Name: "b", Digest: digest("b")}}
	stored := putGrant(t, s, g)
	want := policy.Permissions{Run: true, Network: []string{"*.example.org", "a.example.com:443", "b.example.com"}, Secrets: []string{"A", "B"}}
	if diff := cmp.Diff(want, stored.Permissions); diff != "" {
		t.Errorf("permissions (-want +stored):\n%s", diff)
	}
	if want := []policy.Need{{Name: "a", Digest: digest("c")}, {Name: "b", Digest: digest("b")}}; !slices.Equal(stored.Needs, want) {
		t.Errorf("needs %v, want %v", stored.Needs, want)
	}
}

func testRevoke(t *testing.T, s policy.Store) {
	fill := func() (pdf, pdf2, csv policy.Grant) {
		c := grant(digest("c"))
		c.Name = "csv"
		return putGrant(t, s, grant(digest("a"))), putGrant(t, s, grant(digest("ab"))), putGrant(t, s, c)
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
		if !slices.Equal(grantNames(got), grantNames(tt.want)) {
			t.Errorf("revoke %q revoked %q, want %q", tt.what, grantNames(got), grantNames(tt.want))
		}
		for _, g := range got {
			checkNoGrant(t, s, g.Principal, g.Subject, "")
		}
		if left := listGrants(t, s); len(left) != 3-len(got) {
			t.Errorf("after revoke %q: %d grants, want %d", tt.what, len(left), 3-len(got))
		}
		fill()
	}
}

func testRevokeNothing(t *testing.T, s policy.Store) {
	for range 2 { // without a grant, then with one
		for _, what := range []string{"", "nope", "sha256:", "../escape", string(digest("f"))} {
			if got, err := s.Revoke(t.Context(), what); !errors.Is(err, policy.ErrNotGranted) || len(got) > 0 {
				t.Errorf("revoke %q: %v, %v; want %v", what, got, err, policy.ErrNotGranted)
			}
		}
		putGrant(t, s, grant(digest("a")))
	}
	findGrant(t, s, robot, digest("a"), "")
}

func testRevokeByShortDigest(t *testing.T, s policy.Store) {
	putGrant(t, s, grant(digest("a")))
	for _, what := range []string{"aaaaaaa", "sha256:aaaaaaa"} {
		if got, err := s.Revoke(t.Context(), what); !errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("revoke %q: %v, %v; want %v", what, got, err, policy.ErrNotGranted)
		}
	}
}

func testNameLikeID(t *testing.T, s policy.Store) {
	g := putGrant(t, s, grant(digest("a")))
	other := grant(digest("b"))
	other.Name = g.ID
	putGrant(t, s, other)
	if got, err := s.Revoke(t.Context(), g.ID); err != nil || !slices.Equal(grantNames(got), grantNames([]policy.Grant{g})) {
		t.Errorf("revoked %q (%v), want %q", grantNames(got), err, grantNames([]policy.Grant{g}))
	}
	findGrant(t, s, robot, digest("b"), "")

	run := grant(digest("c"))
	run.Scope = policy.Once
	run = putGrant(t, s, run)
	acquireLease(t, s, run, time.Hour)
	other = grant(digest("c"))
	other.Name = run.ID
	putGrant(t, s, other)
	if _, _, err := lease.Acquire(t.Context(), s, run, time.Hour); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("a used grant, beside a skill named like its ID: %v, want %v", err, policy.ErrNotGranted)
	}
}

func testConcurrentRevoke(t *testing.T, s policy.Store) {
	g := putGrant(t, s, grant(digest("a")))
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
		t.Errorf("the grant was revoked %d times, want once", winners)
	}
}

func testConcurrentPut(t *testing.T, s policy.Store) {
	const writers = 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for _, subject := range []policy.Digest{digest("f"), digest(fmt.Sprint(i))} {
				if _, err := s.Put(t.Context(), grant(subject)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := listGrants(t, s); len(got) != writers+1 {
		t.Errorf("%d grants, want %d: one of each writer and a common one", len(got), writers+1)
	}
}

func testGrantCopies(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Permissions.Network, g.Permissions.Secrets = []string{"example.com"}, []string{"KEY"}
	g.Needs = []policy.Need{{Name: "csv", Digest: digest("c")}}
	spoil := func(g policy.Grant) {
		g.Permissions.Network[0], g.Permissions.Secrets[0], g.Needs[0].Name = "evil.example", "EVIL", "evil"
	}
	stored := putGrant(t, s, g)
	want := *findGrant(t, s, robot, g.Subject, "")
	spoil(g)
	spoil(stored)
	spoil(listGrants(t, s)[0])
	got := findGrant(t, s, robot, g.Subject, "")
	if got.Permissions.Network[0] != "example.com" || got.Permissions.Secrets[0] != "KEY" || got.Needs[0].Name != "csv" {
		t.Errorf("the stored grant changed:\n%s", cmp.Diff(want, *got))
	}
}

func testGrantOrder(t *testing.T, s policy.Store) {
	var want []policy.Digest
	for _, c := range []string{"3", "1", "2", "5", "4"} {
		want = append(want, putGrant(t, s, grant(digest(c))).Subject)
	}
	var got []policy.Digest
	for _, g := range listGrants(t, s) {
		got = append(got, g.Subject)
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func testExpiredGrant(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Expires = time.Now().Add(-time.Second)
	if _, err := s.Put(t.Context(), g); err == nil {
		t.Error("an expired grant was stored")
	}
}

func putGrant(t *testing.T, s policy.Store, g policy.Grant) policy.Grant {
	t.Helper()
	stored, err := s.Put(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func findGrant(t *testing.T, s policy.Store, p policy.Principal, subject policy.Digest, session string) *policy.Grant {
	t.Helper()
	g, err := s.Find(t.Context(), p, subject, session)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func checkNoGrant(t *testing.T, s policy.Store, p policy.Principal, subject policy.Digest, session string) {
	t.Helper()
	if g, err := s.Find(t.Context(), p, subject, session); !errors.Is(err, policy.ErrNotGranted) || g != nil {
		t.Errorf("%s finds %v (%v) for %s in session %q, want %v", p, g, err, subject, session, policy.ErrNotGranted)
	}
}

func listGrants(t *testing.T, s policy.Store) []policy.Grant {
	t.Helper()
	grants, problems, err := s.List(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatalf("list: %v %v", problems, err)
	}
	return grants
}

func grantNames(grants []policy.Grant) []string {
	var out []string
	for _, g := range grants {
		out = append(out, g.Name+" "+string(g.Subject))
	}
	return out
}
