// Package sandboxtest is the proof of back ends of package sandbox: suites that
// each of them runs in its own tests.
//
//	func TestAttack(t *testing.T) {
//		if sandboxtest.AsUser(t) {
//			return // it ran as an unprivileged user
//		}
//		sandboxtest.TestAttacks(t, native.New(nil), sandboxtest.Options{MayBreach: []string{"E14"}})
//	}
//
// [TestAttacks] runs 63 attacks of a skill on the person, the host and the hub, and
// counts those that were contained. [TestBackend] is the contract of the
// interfaces, [TestResidue] looks for what runs leave behind, [TestOrphans] for what a
// killed host does, [TestOutputFlood] for what a flood of output costs. Wherever it can be, the host decides what happened:
// counters and files of a victim outside, processes that live on. An attack
// for which the kernel lacks something is skipped with the reason, and none
// passes because the attacker did not start.
//
// The numbers say what is reachable. The suite knows nothing of faults in the
// kernel.
//
// What contained an attack is told by the names in [sandbox.State], which are
// the same for all back ends: see [LayerNames].
//
// The suites are for Linux. They change TMPDIR, so tests that call them are not
// parallel.
package sandboxtest
