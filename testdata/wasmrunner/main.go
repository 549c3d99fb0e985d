// Command wasmrunner is the part of the command loadout that runs WebAssembly, for
// tests.
package main

import (
	"os"

	"github.com/loadout-dev/loadout/internal/wasm"
)

func main() {
	os.Exit(wasm.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
