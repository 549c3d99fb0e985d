package policy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/policy"
)

func TestIntersect(t *testing.T) {
	hub := policy.Bounds{Network: []string{"*"}, Secrets: []string{"*"}, MemoryMB: 512, Seconds: 60, MinTier: 2}
	rule := policy.Bounds{Network: []string{"*.example.com:443", "10.0.0.1", "[2001:db8::1]:80"}, Secrets: []string{"A", "B"}, Seconds: 600, Processes: 8, MinTier: 1, WorkspaceWrite: true}
	ask := policy.Bounds{Network: []string{"api.example.com", "example.com", "10.0.0.1:22", "evil.example"}, Secrets: []string{"B", "C"}, MemoryMB: 4096, DiskMB: 10, WorkspaceWrite: true}
	got := hub.Intersect(rule).Intersect(ask)
	want := policy.Bounds{Network: []string{"10.0.0.1:22", "api.example.com:443"}, Secrets: []string{"B"}, MemoryMB: 512, Seconds: 60, Processes: 8, DiskMB: 10, MinTier: 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hub ∩ rule ∩ ask (-want +got):\n%s", diff)
	}
}

// bounds draws bounds from few words, so that they overlap.
func bounds() *rapid.Generator[policy.Bounds] {
	hosts := rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom([]string{"*", "com", "a.com", "*.com", "*.a.com", "b.a.com", "*.b.a.com", "xa.com", "10.0.0.1", "[::1]", "A.com.", "not/a host"}).Draw(t, "host")
		return name + rapid.SampledFrom([]string{"", "", ":80", ":443"}).Draw(t, "port")
	})
	secrets := rapid.SampledFrom([]string{"*", "A", "B", "C"})
	number := rapid.OneOf(rapid.IntRange(-2, 4), rapid.SampledFrom([]int{math.MinInt, math.MaxInt}))
	return rapid.Custom(func(t *rapid.T) policy.Bounds {
		return policy.Bounds{
			Network:  rapid.SliceOfN(hosts, 0, 4).Draw(t, "network"),
			Secrets:  rapid.SliceOfN(secrets, 0, 3).Draw(t, "secrets"),
			MemoryMB: number.Draw(t, "memory"), Seconds: number.Draw(t, "seconds"), Processes: number.Draw(t, "processes"),
			DiskMB: number.Draw(t, "disk"), MinTier: rapid.IntRange(0, 3).Draw(t, "tier"), WorkspaceWrite: rapid.Bool().Draw(t, "write"),
		}
	})
}

// places lists possible connections.
var places = []struct {
	name string
	port int
}{{"com", 80}, {"a.com", 80}, {"a.com", 443}, {"b.a.com", 80}, {"c.b.a.com", 443}, {"xa.com", 80}, {"10.0.0.1", 443}, {"::1", 80}, {"other.org", 22}}

func TestIntersectNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := bounds().Draw(t, "a"), bounds().Draw(t, "b")
		got := a.Intersect(b)
		if !covers(a, got) || !covers(b, got) {
			t.Fatalf("%+v is not within both", got)
		}
		// Check against the meaning of the lists, independently of the code.
		for _, p := range places {
			in := matches(a.Network, p.name, p.port) && matches(b.Network, p.name, p.port)
			if matches(got.Network, p.name, p.port) != in {
				t.Fatalf("%v: both permit it: %v; the intersection %v does not agree", p, in, got.Network)
			}
		}
		if again := got.Intersect(got); !cmp.Equal(again, got) {
			t.Fatalf("intersected with itself %+v becomes %+v", got, again)
		}
		if other := b.Intersect(a); !cmp.Equal(other, got) {
			t.Fatalf("the other way round it is %+v, not %+v", other, got)
		}
		if free := got.Intersect(unbounded); !cmp.Equal(free, got) {
			t.Fatalf("intersected with everything %+v becomes %+v", got, free)
		}
		withinLimit(t, got, a)
		withinLimit(t, got, b)
	})
}

func TestIntersectKeepsCommonValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := bounds().Draw(t, "a"), bounds().Draw(t, "b"), bounds().Draw(t, "c")
		c = c.Intersect(unbounded)
		if both := covers(a, c) && covers(b, c); both && !covers(a.Intersect(b), c) {
			t.Fatalf("%+v is within both, and not within the intersection %+v", c, a.Intersect(b))
		}
		if covers(a.Intersect(b), c) && !(covers(a, c) && covers(b, c)) {
			t.Fatalf("%+v is within the intersection, and not within both", c)
		}
	})
}

// covers reports whether a permits everything that b permits.
func covers(a, b policy.Bounds) bool {
	for _, n := range [][2]int{{b.MemoryMB, a.MemoryMB}, {b.Seconds, a.Seconds}, {b.Processes, a.Processes}, {b.DiskMB, a.DiskMB}} {
		if n[0] < 0 {
			n[0] = 1
		}
		if n[1] < 0 {
			n[1] = 1
		}
		if n[1] > 0 && (n[0] == 0 || n[0] > n[1]) {
			return false
		}
	}
	return a.Permissions().Covers(b.Permissions()) && b.MinTier >= a.MinTier
}

// withinLimit compares numbers as a sandbox reads them.
func withinLimit(t *rapid.T, got, most policy.Bounds) {
	for _, n := range [][2]int{{got.MemoryMB, most.MemoryMB}, {got.Seconds, most.Seconds}, {got.Processes, most.Processes}, {got.DiskMB, most.DiskMB}} {
		if n[0] < 0 || n[1] > 0 && (n[0] == 0 || n[0] > n[1]) {
			t.Fatalf("a limit of %d became %d", n[1], n[0])
		}
	}
	if got.MinTier < most.MinTier || got.WorkspaceWrite && !most.WorkspaceWrite {
		t.Fatalf("%+v became %+v", most, got)
	}
}

// unbounded are the widest bounds.
var unbounded = policy.Bounds{Network: []string{"*"}, Secrets: []string{"*"}, WorkspaceWrite: true}

// matches reports whether patterns permit a connection to a host.
func matches(patterns []string, name string, port int) bool {
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	return policy.Permissions{Network: patterns}.Covers(policy.Permissions{Network: []string{fmt.Sprintf("%s:%d", name, port)}})
}

func TestHostPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, host string
		port          int
		want          bool
	}{
		{"example.com", "example.com", 443, true},
		{"example.com", "EXAMPLE.com.", 1, true},
		{"example.com", "a.example.com", 443, false},
		{"example.com", "example.com.evil.org", 443, false},
		{"example.com:443", "example.com", 80, false},
		{"*.example.com", "a.b.example.com", 80, true},
		{"*.example.com", "example.com", 80, false},
		{"*.example.com", "notexample.com", 80, false},
		{"*.example.com", "10.0.0.1", 80, false},
		{"*", "example.com", 80, true},
		{"*:443", "example.com", 80, false},
		{"*", "", 80, false},
		{"*", "example.com", 0, false},
		{"*", "example.com", -1, false},
		{"*", "example.com", 65536, false},
		{"*", "user@example.com", 80, false},
		{"*", "example.com:80", 80, false},
		{"10.0.0.1", "10.0.0.1", 80, true},
		{"10.0.0.1", "10.1", 80, false},
		{"*", "2130706433", 80, false}, // 127.0.0.1 to some
		{"*", "0x7f.1", 80, false},
		{"[::1]", "0:0::1", 80, true},
		{"[::1]:80", "::1", 80, true},
		{"*", "::ffff:10.0.0.1", 80, false},
		{"*", "fe80::1%eth0", 80, false},
		{"http://example.com", "example.com", 80, false},
		{"example.*", "example.com", 80, false},
		{"ex*.com", "example.com", 80, false},
		{"*.*", "example.com", 80, false},
		{"::1", "::1", 80, false},
		{"*.10.0.0.1", "1.10.0.0.1", 80, false},
		{"exämple.com", "exämple.com", 80, false},
		{"example.com:080", "example.com", 80, false},
		{"example.com:0", "example.com", 80, false},
		{"", "", 80, false},
		{"a..b", "a..b", 80, false},
		{strings.Repeat("a.", 200) + "com", strings.Repeat("a.", 200) + "com", 80, false},
	} {
		if got := matches([]string{tt.pattern}, tt.host, tt.port); got != tt.want {
			t.Errorf("%q matches %q port %d: %v, want %v", tt.pattern, tt.host, tt.port, got, tt.want)
		}
	}
}
