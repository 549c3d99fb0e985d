// Package docs contains the documentation, so that a hub can serve it.
package docs

import "embed"

// Files contains the English pages, and the Chinese pages in the directory zh.
//
//go:embed *.md zh/*.md
var Files embed.FS
