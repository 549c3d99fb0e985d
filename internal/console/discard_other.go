//go:build !linux

package console

import "os"

// discardInput does nothing. Prompts after a command ask about changes in an
// overlay, and overlays exist only on Linux.
func discardInput(*os.File) {}
