//go:build unix && !linux

package hub_test

import "syscall"

func tether() *syscall.SysProcAttr { return nil }
