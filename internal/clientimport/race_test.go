//go:build race

package clientimport_test

func init() { raceEnabled = true }
