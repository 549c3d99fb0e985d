package assembly_test

import (
	"regexp"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/tools"
)

// The runs of a skill's scripts in a user's conversations are a latency hint for that
// user. Refused runs do not count.
func TestRunsOfScriptsAreMeasured(t *testing.T) {
	inSandbox := sandboxed(t)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db, inSandbox)
		s := w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Run high.sh.", "high.sh", "echo high water at 12:10\n"))
		hint := func(p account.Principal) string {
			t.Helper()
			k, err := w.kits.Open(t.Context(), assembly.Request{Principal: p})
			must(t, err)
			defer k.Close()
			all, _, err := k.Tools.Capabilities(t.Context(), &tools.Call{Principal: k.Principal})
			must(t, err)
			must(t, k.AddLatencies(t.Context(), all))
			for _, c := range all {
				if c.Name == "tides" {
					return c.LatencyHint
				}
			}
			return ""
		}
		id := w.begin(w.ada, "")
		w.ask(w.ada, id, runTides, "not reviewed")
		if got := hint(w.ada); got != "" {
			t.Errorf("after a refused run, the hint is %q", got)
		}
		w.review(s, library.Approved)
		w.ask(w.ada, id, runTides+"\n"+runTides, "12:10")
		if got := hint(w.ada); !regexp.MustCompile(`^high\.sh p50 \S+ m?s, p95 \S+ m?s over 2 runs$`).MatchString(got) {
			t.Errorf("the hint is %q", got)
		}
	})
}
