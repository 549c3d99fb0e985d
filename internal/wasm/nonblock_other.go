//go:build !unix

package wasm

// nonblock is nothing where a directory holds no pipes.
const nonblock = 0
