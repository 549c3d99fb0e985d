// Package loadouttest provides conformance tests for implementations of
// Loadout's public interfaces. A program that stores grants or transcripts in
// its own database, lists skills from its own source, or connects its own model
// calls one function from a test:
//
//	func TestStore(t *testing.T) {
//		loadouttest.PolicyStore(t, func(t *testing.T) policy.Store { return newStore(t) })
//	}
//
// Each function reports every violation of the documented contract of the
// interface as a test failure. The package needs no network. Import it only in
// tests.
package loadouttest
