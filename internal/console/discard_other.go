//go:build !linux

package console

import "os"

// discardInput does nothing. It is only needed before prompts about changes in
// an overlay, and overlays exist only on Linux.
func discardInput(*os.File) {}
