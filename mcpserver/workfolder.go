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
	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/sandbox"
)

// folderScheme is the scheme of URIs of files in working folders, as in
// loadout-work://HANDLE/out/report.csv. The handle is the client's secret: it
// is part of a result and cannot be guessed.
const folderScheme = "loadout-work://"

// maxResource is the maximum size, in bytes, of a file that is read as a
// resource.
const maxResource = 16 << 20

// folderLinks returns resource links to a run's files.
func (s *Server) folderLinks(r *loadout.RunResult) []mcp.Content {
	var out []mcp.Content
	for _, f := range r.Files[:min(len(r.Files), maxFiles)] {
		if r.Folder != "" {
			out = append(out, &mcp.ResourceLink{URI: folderURI(r.Folder, f), Name: f.Path, MIMEType: filetype.ByName(f.Path), Size: &f.Size})
		}
	}
	return out
}

func folderURI(handle string, f sandbox.File) string {
	return folderScheme + handle + "/" + escapePath(f.Path)
}

// addFolders adds the resource template for files in working folders.
func (s *Server) addFolders() {
	s.sdk.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: folderScheme + "{folder}/{+path}", Name: "working-folder",
		Title: "Files that scripts wrote", Description: "Files that scripts wrote"}, s.readFolder)
}

func (s *Server) readFolder(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	data, err := ReadFolderFile(s.rt, uri)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, err
	case err != nil:
		return nil, mcp.ResourceNotFoundError(uri)
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: filetype.ByName(uri)}
	if filetype.IsText(data) {
		c.Text = string(data)
	} else {
		c.Blob = data
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// ReadFolderFile reads a file that a script wrote to its working folder. link
// is the file's link in the result of run_skill_script. Files larger than 16
// MiB are refused.
func ReadFolderFile(rt *loadout.Runtime, link string) ([]byte, error) {
	rest, ok := strings.CutPrefix(link, folderScheme)
	handle, name, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(name)
	if !ok || err != nil || !fs.ValidPath(name) {
		return nil, errors.New("not a link to a file of a working folder")
	}
	dir, err := rt.FolderPath(handle)
	if err != nil {
		return nil, err
	}
	data, err := readBelow(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the file no longer exists") // omits the local path
	}
	return data, err
}

var errTooLarge = errors.New("file too large for a resource (limit 16 MiB)")

// readBelow reads a regular file in a directory. It returns an error if the
// file exceeds maxResource.
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
