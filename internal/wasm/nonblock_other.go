//go:build !unix

package wasm

// nonblock is 0 on systems whose directories contain no pipes.
const nonblock = 0
