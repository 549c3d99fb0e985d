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

// Names returns the names of the bundled skills.
func Names() []string {
	entries, err := fs.ReadDir(FS(), ".")
	if err != nil {
		panic(err) // what is embedded can be read
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name() // as a skill is named for its directory
	}
	return names
}
