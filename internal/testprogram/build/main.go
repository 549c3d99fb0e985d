// Command build builds a program for tests and prints its path:
//
//	go run ./internal/testprogram/build cmd/loadout
package main

import (
	"fmt"
	"os"

	"github.com/loadout-dev/loadout/internal/testprogram"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: build PACKAGE")
		os.Exit(2)
	}
	path, err := testprogram.Program{Package: os.Args[1]}.Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
}
