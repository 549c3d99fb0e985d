//go:build unix

package wasm

import "syscall"

// nonblock is the flag that keeps opening a pipe from blocking. It has no
// effect on files and directories.
const nonblock = syscall.O_NONBLOCK
