package mcpserver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/sandbox"
)

// folderScheme names files of working folders, as
// loadout-work://HANDLE/out/report.csv. Whoever has a handle may read: it was
// given out with a result, and cannot be guessed.
const folderScheme = "loadout-work://"

// maxResource bounds a file that is read as a resource.
const maxResource = 16 << 20

// links are the files of a run as links to resources.
func (s *Server) links(r *loadout.Ran) []mcp.Content {
	var out []mcp.Content
	for _, f := range r.Files[:min(len(r.Files), maxFiles)] {
		if r.Folder != "" {
			out = append(out, &mcp.ResourceLink{URI: folderURI(r.Folder, f), Name: f.Path, MIMEType: loadout.MIMEType(f.Path), Size: &f.Size})
		}
	}
	return out
}

func folderURI(handle string, f sandbox.File) string {
	return folderScheme + handle + "/" + escapePath(f.Path)
}

// addFolders lets clients read files of working folders.
func (s *Server) addFolders() {
	s.sdk.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: folderScheme + "{folder}/{+path}", Name: "working-folder",
		Title: "Files that scripts left", Description: "A file in the working folder of a script, as the result of a run names it."}, s.readFolder)
}

func (s *Server) readFolder(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	data, err := ReadLink(s.rt, uri)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, err
	case err != nil:
		return nil, mcp.ResourceNotFoundError(uri)
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: loadout.MIMEType(uri)}
	if loadout.IsText(data) {
		c.Text = string(data)
	} else {
		c.Blob = data
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// ReadLink reads a file that a script left in its working folder, by the link that the
// result of run_skill_script has. It has at most 16 MiB.
func ReadLink(rt *loadout.Runtime, link string) ([]byte, error) {
	rest, ok := strings.CutPrefix(link, folderScheme)
	handle, name, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(name)
	if !ok || err != nil || !fs.ValidPath(name) {
		return nil, errors.New("it is no link of a file that a script left")
	}
	dir, err := rt.FolderPath(handle)
	if err != nil {
		return nil, err
	}
	data, err := readBelow(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no such file any more") // without where it was
	}
	return data, err
}

var errTooLarge = errors.New("the file is too large to be read as a resource")

// readBelow reads a regular file below a directory.
func readBelow(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fi, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, fs.ErrInvalid
	case fi.Size() > maxResource:
		return nil, errTooLarge
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxResource))
}
