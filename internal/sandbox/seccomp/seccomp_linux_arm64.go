package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

var neverHere, byNameHere []uintptr

func foreignCalls() []instruction { return nil }

var modesHere map[uintptr]int
