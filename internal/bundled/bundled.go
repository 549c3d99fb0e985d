// Package bundled contains the skills that are part of the program. It embeds
// their files, except those whose names start with a dot or an underscore. It
// reads nothing from disk and applies no policy.
package bundled

import (
	"embed"
	"io/fs"
)

//go:embed skills
var files embed.FS

// FS returns a file system with a directory for each bundled skill.
func FS() fs.FS {
	sub, err := fs.Sub(files, "skills")
	if err != nil {
		panic(err) // cannot happen: the embedded pattern is a directory
	}
	return sub
}

// Names returns the names of the bundled skills.
func Names() []string {
	entries, err := fs.ReadDir(FS(), ".")
	if err != nil {
		panic(err) // cannot happen: embedded files are readable
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name() // a skill has the same name as its directory
	}
	return names
}
