//go:build linux

package sandboxtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// plainContains lists the attacks that fail without a sandbox, and the reason. All
// others succeed.
var plainContains = map[string]string{
	"A01":  "the file's mode",
	"A09":  "the kernel keeps the log from users",
	"B07":  "the file goes with /work",
	"B08":  "no capabilities",
	"D06+": "it is of another user there",
	"D08":  "no capabilities",
	"D10":  "no capabilities",
	"D14":  "no capabilities",
	"D18":  "the files' modes",
	"E01":  "timeout",
	"E02":  "timeout, and SIGKILL",
	"E10":  "execute.Run",
	"E17":  "os.RemoveAll gets 2000 deep",
}

// The suite can fail: without a sandbox, attacks succeed.
func TestUnsandboxedIsBreached(t *testing.T) {
	if AsUser(t) {
		return
	}
	if InTerminal(t) {
		return
	}
	var all []string
	for _, a := range append(allAttacks(), uncountedAttacks()...) {
		all = append(all, a.id)
	}
	if len(allAttacks()) != AttackCount {
		t.Errorf("%d attacks, want %d", len(allAttacks()), AttackCount)
	}
	var rows []Row
	TestAttacks(t, plain{}, Options{MayBreach: all, Row: func(r Row) { rows = append(rows, r) }})
	logOpen := sysctl("kernel/dmesg_restrict") == "0"
	for _, r := range rows {
		want := Breached
		if plainContains[r.ID] != "" && !(r.ID == "A09" && logOpen) {
			want = Contained
		}
		if strings.HasPrefix(r.ID, "E") && strings.Contains(r.Detail, "timeout") {
			continue // this machine does not write so much in the time
		}
		if r.Verdict != want && r.Verdict != Skipped {
			t.Errorf("%s (%s): %s, want %s: %s", r.ID, r.Attack, r.Verdict, want, r.Detail)
		}
	}
}

func sysctl(name string) string {
	b, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(b))
}

func TestBreachFailsTheSuite(t *testing.T) {
	for _, c := range []struct {
		row  Row
		opts Options
		fail bool
		say  string
	}{
		{Row{ID: "A01", Verdict: Breached}, Options{}, true, "breached"},
		{Row{ID: "A01", Verdict: Breached}, Options{MayBreach: []string{"A01"}}, false, "as expected"},
		{Row{ID: "A01", Verdict: Contained}, Options{MayBreach: []string{"A01"}}, false, "better"},
		{Row{ID: "A01", Verdict: Contained}, Options{}, false, ""},
		{Row{ID: "A08+", Verdict: Breached}, Options{}, false, "as expected"},
		{Row{ID: "A08+", Verdict: Breached}, Options{RequireExtra: true}, true, "breached"},
	} {
		if say, fail := explainRow(c.row, c.opts); fail != c.fail || !strings.Contains(say, c.say) || (say == "") != (c.say == "") {
			t.Errorf("%v with %+v: %q, %v", c.row, c.opts, say, fail)
		}
	}
}

func TestAttacksAreNumbered(t *testing.T) {
	all := allAttacks()
	if !slices.IsSortedFunc(all, func(a, b attack) int { return strings.Compare(a.id, b.id) }) {
		t.Error("attacks are out of order")
	}
}

// What of the contract plain does not keep.
var plainFails = []string{
	"a changed file is an error, and nothing runs",
	"a file that changes between two reads",
	"collects regular files, in order",
	"no network",
	"other trees",
	"the state reports the limits of this sandbox",
	"the user's directory, writable",
	"the user's directory, read-only",
	"secrets are files, and redacted from the output",
	"the environment is exactly that of the spec",
	"the skill is present and read-only",
	"the state lists what is enforced",
}

func TestUnsandboxedMisbehaves(t *testing.T) {
	if AsUser(t) {
		return
	}
	s := newScene(t)
	for _, c := range allBehaviours() {
		t.Run(c.name, func(t *testing.T) {
			err := s.checkBehaviour(t, plain{}, c)
			if want := slices.Contains(plainFails, c.name); (err != nil) != want {
				t.Errorf("%v, want an error: %v", err, want)
			}
		})
	}
}

func TestFlood(t *testing.T) { TestOutputFlood(t, plain{}) }

// Plain leaves the processes that left their group.
func TestUnsandboxedLeavesResidue(t *testing.T) {
	s := newScene(t)
	x := &trial{t: t, scene: s, backend: plain{}, mark: "residue-" + randomWord()}
	defer sweep(x.mark)
	before := findTraces(x.tmp, x.mark)
	x.runMany(12, rand.New(rand.NewPCG(1, 1)), 0)
	if findTraces(x.tmp, x.mark).isSubsetOf(before) {
		t.Error("nothing is left")
	}
	sweep(x.mark)
	if !poll(30*time.Second, func() bool { return findTraces(x.tmp, x.mark).isSubsetOf(before) }) {
		t.Errorf("more is left than processes: %+v, %+v", before, findTraces(x.tmp, x.mark))
	}
}

// Plain's processes live on when their host is killed.
func TestUnsandboxedLeavesOrphans(t *testing.T) {
	if os.Getenv(orphanVariable) != "" {
		TestOrphans(t, plain{})
		return
	}
	err := newScene(t).findOrphans(t)
	if err == nil || !strings.Contains(err.Error(), "still running") {
		t.Errorf("%v, want running processes", err)
	}
}

// unstartable cannot start any sandbox.
type unstartable struct{ plain }

func (unstartable) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, errors.New("cannot start")
}

func TestUnstartableMisbehaves(t *testing.T) {
	s := newScene(t)
	for _, c := range allBehaviours() {
		if s.checkBehaviour(t, unstartable{}, c) == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
}
