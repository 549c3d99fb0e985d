//go:build linux

package sandboxtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options adjust [TestAttacks].
type Options struct {
	// MayBreach are the ids of attacks that this back end is known not to
	// contain. Every other breach fails the test.
	MayBreach []string
	// Beyond makes breaches of attacks that are not of the 63 fail the test too.
	Beyond bool
	// Row receives each result, in order; nil receives none. Where the test
	// runs again as another user it is called there.
	Row func(Row)
	// Spec, if not nil, changes the spec of each attack's sandbox.
	Spec func(*sandbox.Spec)
}

// Row is the result of one attack.
type Row struct {
	Number  int
	ID      string // as in A01; those beyond the 63 have a + at the end
	Attack  string
	Verdict Verdict
	By      string // what contained it, as the sandbox's state has it; or why it was skipped
	Detail  string // what the attacker saw
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

// Verdict says what came of an attack.
type Verdict string

// The verdicts.
const (
	Contained Verdict = "contained"
	Breached  Verdict = "breached"
	Skipped   Verdict = "skipped"
)

// attack is one row of the suite.
type attack struct {
	id, name string
	by       []string // layers and limits that may contain it, as in State.Enforced
	needs    []need
	run      func(*trial) bool // whether it was a breach
}

// need says why an attack cannot be tried here, "" if it can.
type need func(*scene) string

// AttackCount are the number of attacks that count.
const AttackCount = 63

// attacks are all of them in order.
func attacks() []attack {
	return slices.Concat(reads(), writes(), networks(), hosts(), bombs())
}

// TestAttacks runs the attacks against a back end and prints what came of them.
func TestAttacks(t *testing.T, b sandbox.Backend, opts Options) {
	s := newScene(t)
	var rows []Row
	for i, a := range append(attacks(), beyond()...) {
		t.Run(a.id+" "+a.name, func(t *testing.T) {
			row := Row{Number: i + 1, ID: a.id, Attack: a.name}
			x := &trial{t: t, scene: s, backend: b, opts: opts, mark: "attack-" + word()}
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
			breached := x.fire(a)
			row.Verdict, row.Detail = Contained, x.detail
			if breached {
				row.Verdict = Breached
			} else {
				row.By = x.by(a.by)
			}
			switch say, fail := judge(row, opts); {
			case fail:
				t.Error(say)
			case say != "":
				t.Log(say)
			}
		})
	}
	report(t, b, rows)
}

// judge says what is to be said of a result, and whether it fails the test.
func judge(row Row, opts Options) (say string, fail bool) {
	extra := strings.HasSuffix(row.ID, "+") && !opts.Beyond
	allowed := slices.Contains(opts.MayBreach, row.ID)
	switch {
	case row.Verdict == Breached && (allowed || extra):
		return "breached, as may be: " + row.Detail, false
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
