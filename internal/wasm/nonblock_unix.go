//go:build unix

package wasm

import "syscall"

// nonblock keeps an open of a pipe from waiting. It means nothing to files and directories.
const nonblock = syscall.O_NONBLOCK
