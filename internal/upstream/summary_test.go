package upstream_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// A server returns the last summary of its tool list under each key, and so does the
// server of a later process.
func TestSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &upstream.Files{Dir: t.TempDir()}
		check := func(s *upstream.Server, what, key, want string) {
			t.Helper()
			if got := string(s.Summary(key)); got != want {
				t.Errorf("%s: summary %q is %q, want %q", what, key, got, want)
			}
		}
		_, p := memoryPool(&upstream.PoolOptions{Cache: cache})
		s := p.Server(memoryConfig("one"), "")
		check(s, "before the list is known", "a", "")
		works(t, s)
		l := s.LastListing()
		for _, text := range []string{`"first"`, `"second"`} {
			s.SetSummary(l, "a", json.RawMessage(text))
			check(s, "set", "a", text)
		}
		s.SetSummary(&upstream.Listing{}, "a", json.RawMessage(`"of another list"`))
		check(s, "set for another list", "a", `"second"`)
		check(s, "never set", "b", "")
		p.Close()

		_, p = memoryPool(&upstream.PoolOptions{Cache: cache})
		defer p.Close()
		s = p.Server(memoryConfig("one"), "")
		check(s, "of an earlier process", "a", `"second"`)
		if s.LastListing() == nil {
			t.Error("the list of the earlier process is unknown")
		}
		check(s, "of an earlier process, with the list", "a", `"second"`)
		s.SetSummary(s.LastListing(), "b", json.RawMessage(`"third"`))
		check(s, "set by this process", "b", `"third"`)
		check(s, "of an earlier process, beside another", "a", `"second"`)
	})
}
