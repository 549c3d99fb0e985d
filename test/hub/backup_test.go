//go:build unix

package hub_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// The command makes a backup of a hub on SQLite during a turn. After the restore, the
// turn resumes, and its call has an unknown outcome.
func TestBackupDuringTurn(t *testing.T) {
	h, m, l := newHub(t, "", ""), newModel(t, time.Millisecond), newLedger(t)
	n := h.start()
	n.hire(m, l)
	skill := n.send("POST", "/api/v1/skills?file_name=pdf.zip", pack(t, "pdf", "Read it.")).want(t, 201).text(t, "id")
	before := n.send("GET", "/api/v1/skills/"+skill+"/versions/1/package", nil).want(t, 200)
	session := n.begin()
	n.say(session, calls("write", "before"), calls("hold", "long"), calls("write", "behind"))
	<-l.begun
	file := filepath.Join(t.TempDir(), "copy.db")
	if code, output := n.run("backup", file); code != 0 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	n.send("POST", "/api/v1/skills?file_name=later.zip", pack(t, "later", "Read it.")).want(t, 201)
	n.kill()

	other := &node{hub: h, dir: t.TempDir()}
	if code, output := other.run("restore", file); code != 0 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	n = h.startIn(other.dir)
	if after := n.send("GET", "/api/v1/skills/"+skill+"/versions/1/package", nil).want(t, 200); after.body != before.body {
		t.Error("the package is another one")
	}
	if r := n.send("GET", "/api/v1/skills", nil).want(t, 200); strings.Contains(r.body, `"later"`) {
		t.Errorf("it has what came later: %s", r.body)
	}
	w := n.watch(session, "")
	if end := n.until(w, isType(chat.TurnEnded)); end.Reason != chat.Done {
		t.Errorf("it ended as %+v", end)
	}
	if err := inOrder(w.seen); err != nil {
		t.Error(err)
	}
	got := results(w.seen)
	for what, want := range map[string]string{"before": "kept before", "long": unknown, "behind": "kept behind"} {
		if !strings.Contains(got[what], want) || l.all()[what] != 1 {
			t.Errorf("%s was done %d times, and of it came %q", what, l.all()[what], got[what])
		}
	}
	if code, output := n.run("serve", "--check"); code != 0 || !strings.Contains(output, "No problems found") {
		t.Errorf("exit code %d: %s", code, output)
	}
	n.stop()
}
