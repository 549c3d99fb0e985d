//go:build unix

package wasm

import "syscall"

// nonblock prevents blocking when a pipe is opened. It has no effect on files
// and directories.
const nonblock = syscall.O_NONBLOCK
