// Package docs contains the documentation, so that a hub can serve it.
package docs

import "embed"

// Files contains the pages in English, and in zh those in Chinese.
//
//go:embed *.md zh/*.md
var Files embed.FS
