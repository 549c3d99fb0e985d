package mcpproxy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// named are servers and the names that each lists.
type named struct {
	ups   []*upstreamServer
	lists map[*upstreamServer][]string
}

func (n named) expose() ([]string, map[string]target) {
	return assignNames(n.ups, func(u *upstreamServer) []string { return n.lists[u] },
		func(s string) string { return s }, func(_, as string) string { return as })
}

// without is n with one server less.
func (n named) without(i int) named {
	return named{slices.Delete(slices.Clone(n.ups), i, i+1), n.lists}
}

// drawNamed draws servers with different names. Prefixes, if any, equal the names.
func drawNamed(t *rapid.T) named {
	n := named{lists: map[*upstreamServer][]string{}}
	words := rapid.StringMatching(`(a|b|_|__|\.){1,4}`)
	for _, name := range rapid.SliceOfNDistinct(words, 1, 5, rapid.ID).Draw(t, "servers") {
		u := &upstreamServer{Upstream: Upstream{Name: name}}
		if rapid.Bool().Draw(t, "prefixed") {
			u.Prefix = name
		}
		n.ups = append(n.ups, u)
		n.lists[u] = rapid.SliceOfN(rapid.StringMatching(`(a|b|_|__|\.){1,6}`), 0, 8).Draw(t, "names")
	}
	return n
}

// Every name that is given leads to one thing of one server, and the same lists
// give the same names.
func TestExposedNamesAreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamed(t)
		out, to := n.expose()
		things := map[target]bool{}
		for _, name := range out {
			goes, ok := to[name]
			if !ok || things[goes] {
				t.Fatalf("%q leads nowhere, or where another name leads", name)
			}
			if !slices.Contains(n.lists[goes.up], goes.name) {
				t.Fatalf("%q leads to %q, which its server does not list", name, goes.name)
			}
			things[goes] = true
		}
		if len(out) != len(to) {
			t.Fatalf("%d names lead to %d things", len(out), len(to))
		}
		again, _ := n.expose()
		if d := cmp.Diff(out, again); d != "" {
			t.Fatal(d)
		}
	})
}

// The names of a server with a prefix do not change when another one comes or
// goes, whatever that one lists.
func TestPrefixedNamesAreStable(t *testing.T) {
	of := func(u *upstreamServer, out []string, to map[string]target) (names []string) {
		for _, name := range out {
			if to[name].up == u {
				names = append(names, fmt.Sprint(name, " is ", to[name].name))
			}
		}
		return names
	}
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamed(t)
		gone := rapid.IntRange(0, len(n.ups)-1).Draw(t, "gone")
		if rapid.Bool().Draw(t, "hostile") { // it lists what others will be called
			_, to := n.without(gone).expose()
			for name := range to {
				n.lists[n.ups[gone]] = append(n.lists[n.ups[gone]], name)
			}
			slices.Sort(n.lists[n.ups[gone]])
		}
		with, withTo := n.expose()
		less, lessTo := n.without(gone).expose()
		for i, u := range n.ups {
			if i == gone || u.Prefix == "" {
				continue
			}
			if d := cmp.Diff(of(u, less, lessTo), of(u, with, withTo)); d != "" {
				t.Fatalf("names of %q with %q: %s", u.Name, n.ups[gone].Name, d)
			}
		}
	})
}
