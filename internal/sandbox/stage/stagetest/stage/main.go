// Stage is an executable for tests that contains only a stage.
package main

import (
	"fmt"
	"os"

	_ "github.com/loadout-dev/loadout/internal/sandbox/stage" // contains the stage
)

func main() {
	fmt.Fprintln(os.Stderr, "this is not a command; it is started by a sandbox")
	os.Exit(2)
}
