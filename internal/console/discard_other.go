//go:build !linux

package console

import "os"

// discardInput does nothing: only Linux has the overlays that lead to prompts
// after a command.
func discardInput(*os.File) {}
