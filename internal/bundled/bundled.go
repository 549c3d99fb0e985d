// Package bundled holds the skills that come with the program. It only
// embeds them, but for names that begin with a dot or an underscore: it reads
// nothing from disk and decides nothing about them.
package bundled

import (
	"embed"
	"io/fs"
)

//go:embed skills
var files embed.FS

// FS returns the bundled skills, each in a directory of its own.
func FS() fs.FS {
	sub, err := fs.Sub(files, "skills")
	if err != nil {
		panic(err) // the pattern above is not a directory
	}
	return sub
}
