// Package sandboxtest tests implementations of [sandbox.Backend]. Each backend
// runs these suites in its own tests.
//
//	func TestAttack(t *testing.T) {
//		if sandboxtest.AsUser(t) {
//			return // it ran as an unprivileged user
//		}
//		sandboxtest.TestAttacks(t, native.New(nil), sandboxtest.Options{MayBreach: []string{"E14"}})
//	}
//
// [TestAttacks] runs 63 attacks on the user, the host and the hub, and counts
// those that the sandbox contains. [TestBackend] tests the contract of the
// interfaces, [TestResidue] tests what remains on the host after runs,
// [TestOrphans] tests what remains after the host's process was killed, and
// [TestOutputFlood] tests the cost of excessive output. If possible, the host
// decides whether an attack succeeded, using counters, files and processes
// outside the sandbox. An attack is skipped with a reason if the kernel lacks a
// feature for it. The test fails if an attacker does not start.
//
// The results show what code can reach. They do not cover bugs in the kernel.
//
// A result names the layer that contained the attack by its key in [sandbox.State],
// which is the same for all backends: see [LayerNames].
//
// The suites run on Linux. They change TMPDIR, so tests that call them are not parallel.
package sandboxtest
