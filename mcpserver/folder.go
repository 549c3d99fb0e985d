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
	handle, name, ok := strings.Cut(strings.TrimPrefix(uri, folderScheme), "/")
	name, err := url.PathUnescape(name)
	if !ok || err != nil || !fs.ValidPath(name) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	dir, err := s.rt.FolderPath(handle)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	data, err := readBelow(dir, name)
	if err != nil {
		if errors.Is(err, errTooLarge) {
			return nil, err
		}
		return nil, mcp.ResourceNotFoundError(uri)
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: loadout.MIMEType(name)}
	if loadout.IsText(data) {
		c.Text = string(data)
	} else {
		c.Blob = data
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
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
