//go:build !unix

package storetest

import "os/exec"

func changeOwner(string) error { return nil }

func dropPrivileges(*exec.Cmd) {}
