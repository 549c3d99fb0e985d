// Package web is the web page of the hub as it was built: what a browser loads. Its
// sources are beside it, in TypeScript; `npm ci && npm run build` makes dist of them,
// which is kept in Git so that building the program needs no npm. It serves nothing and
// knows nothing of the hub: the page is a client of the public API.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files are the files of the page: index.html, and what it names.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant and is good
	}
	return files
}
