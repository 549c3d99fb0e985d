//go:build !unix

package loadout_test

func makePipe(string) bool { return false }
