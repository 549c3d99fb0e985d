package mcpserver

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/figure"
	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/internal/outputlink"
	"github.com/loadout-dev/loadout/sandbox"
)

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

// outputDir is the directory of output files in a working folder.
const outputDir = "out"

// scanFigures returns the images in the output directory of a working folder.
// It returns nil if there is no such folder.
func (s *Server) scanFigures(handle string) (found figure.Images) {
	s.inFolder(handle, func(fsys fs.FS) { found = figure.ScanContent(fsys, outputDir) })
	return found
}

// newFigures returns the images that a run wrote. before is what scanFigures
// returned before the run.
func (s *Server) newFigures(handle string, before figure.Images) (out []mcp.Content) {
	s.inFolder(handle, func(fsys fs.FS) { out = before.New(fsys, outputDir) })
	return out
}

// inFolder calls read with the files of a working folder. If the folder does
// not exist, it does nothing.
func (s *Server) inFolder(handle string, read func(fs.FS)) {
	if handle == "" {
		return
	}
	dir, err := s.rt.FolderPath(handle)
	if err != nil {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	read(root.FS())
}

func folderURI(handle string, f sandbox.File) string {
	return outputlink.Scheme + handle + "/" + escapePath(f.Path)
}

// addFolders adds the resource template for files in working folders.
func addFolders(sdk *mcp.Server) {
	sdk.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: outputlink.Scheme + "{folder}/{+path}", Name: "working-folder",
		Title: "Files that scripts wrote", Description: "Files that scripts wrote"},
		func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return serverOf(ctx).readFolder(ctx, req)
		})
}

func (s *Server) readFolder(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	data, err := outputlink.Read(s.rt, uri)
	switch {
	case errors.Is(err, outputlink.ErrTooLarge):
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
