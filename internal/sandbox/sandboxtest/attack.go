//go:build linux

package sandboxtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures [TestAttacks].
type Options struct {
	// MayBreach lists the IDs of attacks that the backend is known not to
	// contain. Any other breach fails the test.
	MayBreach []string
	// RequireExtra makes the test also fail if an additional attack succeeds. These
	// attacks are not among the 63 counted ones. The test always fails if one of
	// the attacks on memory, M01 to M13, succeeds.
	RequireExtra bool
	// Row, if set, is called with each result, in order. If the test runs again
	// as another user, Row is called in that process.
	Row func(Row)
	// Spec, if set, modifies the spec of the sandbox for each attack.
	Spec func(*sandbox.Spec)
	// Twice repeats each attack in the same process. It is for backends that
	// keep something from one sandbox for the next.
	Twice bool
}

// Row is the result of an attack.
type Row struct {
	Number  int
	ID      string // such as A01; the IDs of additional attacks end in +
	Attack  string
	Verdict Verdict
	// By is the layer that contained the attack, according to the sandbox's
	// state, or the reason why the attack was skipped.
	By     string
	Detail string // the attacker's observation
}

func (r Row) String() string {
	s := fmt.Sprintf("%2d %-4s %-45s %-9s", r.Number, r.ID, r.Attack, r.Verdict)
	if r.By != "" {
		s += "  " + r.By
	}
	if r.Detail != "" {
		s += "  [" + r.Detail + "]"
	}
	return strings.TrimRight(s, " ")
}

// Verdict is the outcome of an attack.
type Verdict string

// Outcomes of an attack.
const (
	Contained Verdict = "contained"
	Breached  Verdict = "breached"
	Skipped   Verdict = "skipped"
)

// attack describes an attack and the layers that may contain it.
type attack struct {
	id, name string
	by       []string // layers and limits that may contain it, as in State.Enforced
	needs    []need
	run      func(*trial) bool // reports whether the attack succeeded
}

// need is a function that returns the reason why an attack cannot be run in a
// scene, or "" if it can.
type need func(*scene) string

// AttackCount is the number of attacks in allAttacks. It excludes
// uncountedAttacks, so that results of different versions are comparable.
const AttackCount = 63

// allAttacks returns all counted attacks in order.
func allAttacks() []attack {
	return slices.Concat(readAttacks(), writeAttacks(), networkAttacks(), hostAttacks(), resourceAttacks())
}

// uncountedAttacks returns the attacks that AttackCount does not include.
func uncountedAttacks() []attack { return slices.Concat(memoryAttacks(), extraAttacks()) }

// TestAttacks runs the attacks against a backend and prints the results.
func TestAttacks(t *testing.T, b sandbox.Backend, opts Options) {
	s := newScene(t)
	var rows []Row
	for i, a := range append(allAttacks(), uncountedAttacks()...) {
		t.Run(a.id+" "+a.name, func(t *testing.T) {
			row := Row{Number: i + 1, ID: a.id, Attack: a.name}
			x := &trial{t: t, scene: s, backend: b, opts: opts, mark: "attack-" + randomWord()}
			defer func() {
				if row.Verdict != "" {
					rows = append(rows, row)
					if opts.Row != nil {
						opts.Row(row)
					}
				}
			}()
			for _, n := range a.needs {
				if why := n(s); why != "" {
					row.Verdict, row.By = Skipped, why
					t.Skip(why)
				}
			}
			breached := x.execute(a)
			if opts.Twice && !breached {
				breached = x.execute(a)
			}
			row.Verdict, row.Detail = Contained, x.detail
			if breached {
				row.Verdict = Breached
			} else {
				row.By = x.containedBy(a.by)
			}
			switch say, fail := explainRow(row, opts); {
			case fail:
				t.Error(say)
			case say != "":
				t.Log(say)
			}
		})
	}
	report(t, b, rows)
}

// explainRow returns a message about a result and reports whether the result
// fails the test.
func explainRow(row Row, opts Options) (say string, fail bool) {
	extra := strings.HasSuffix(row.ID, "+") && !opts.RequireExtra
	allowed := slices.Contains(opts.MayBreach, row.ID)
	switch {
	case row.Verdict == Breached && (allowed || extra):
		return "breached, as expected: " + row.Detail, false
	case row.Verdict == Breached:
		return "breached: " + row.Detail, true
	case allowed:
		return "better than expected: contained by " + row.By + ": " + row.Detail, false
	}
	return "", false
}

func report(t *testing.T, b sandbox.Backend, rows []Row) {
	var s strings.Builder
	contained, skipped := 0, 0
	for _, r := range rows {
		fmt.Fprintln(&s, r)
		if r.Number > AttackCount {
			continue
		}
		switch r.Verdict {
		case Contained:
			contained++
		case Skipped:
			skipped++
		}
	}
	t.Logf("%s:\n%scontained %d of %d (%d skipped)", b.Name(), &s, contained, AttackCount, skipped)
}
