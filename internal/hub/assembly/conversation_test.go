package assembly_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

const (
	loadTides = `call load_skill {"name":"tides"}`
	runTides  = `call run_skill_script {"skill":"tides","script":"high.sh"}`
)

// W20: code of a skill runs only if a reviewer approved its digest. The skill loads as
// instructions in any case. An approval is for one version, and revocation applies
// immediately.
func TestW20CodeRunsWhereApproved(t *testing.T) {
	inSandbox := sandboxed(t)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db, inSandbox)
		s := w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Run high.sh.", "high.sh", "echo high water at 12:10\n"))
		id := w.begin(w.ada, "")
		w.ask(w.ada, id, loadTides, "Run high.sh.")
		w.ask(w.ada, id, runTides, "its code is not reviewed yet", "ask a reviewer to review it")
		w.review(s, library.Approved)
		id = w.begin(w.ada, "")
		w.ask(w.ada, id, loadTides+"\n"+runTides, "high water at 12:10")

		_, err := w.lib.AddVersion(t.Context(), w.ada, s.ID, w.pack("tides", tree("tides", "", "Run low.sh.", "high.sh", "echo low water\n")))
		must(t, err)
		w.ask(w.ada, id, runTides, "high water at 12:10") // the approved version
		id = w.begin(w.ada, "")
		w.ask(w.ada, id, loadTides, "Run high.sh.")
		w.ask(w.ada, id, runTides, "high water at 12:10")
		w.review(s, library.Rejected)
		w.ask(w.ada, w.begin(w.ada, ""), loadTides+"\n"+runTides, "its code was rejected in review")
	})
}

// Commands of an agent run in the sandbox, on the files of the conversation.
func TestAgentWorksOnItsDirectory(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	id := w.begin(w.ada, "")
	got := w.ask(w.ada, id, `call write_file {"path":"notes/a.txt","content":"three\n"}`+"\n"+`call run_command {"command":"cat notes/a.txt; echo four > b.txt"}`+"\n"+`call list_files {}`)
	if !strings.Contains(got, "b.txt") || !strings.Contains(got, "notes/a.txt") {
		t.Errorf("it has the files %q", got)
	}
	w.ask(w.ada, id, `call read_file {"path":"b.txt"}`, "four")
}
