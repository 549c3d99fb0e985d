//go:build !unix

package storetest

import "os/exec"

func giveAway(string) error { return nil }

func lower(*exec.Cmd) {}
