package review

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Hidden lists the lines in a skill that contain hidden characters: a user does
// not see them, but models read them if the skill is approved.
type Hidden struct {
	Lines  []HiddenLine `json:"lines"`
	Others int          `json:"others,omitempty"` // number of further lines

	hashes []string // of the files that have the lines, in hex
}

// HiddenLine is a line of a file, with its hidden characters made visible.
type HiddenLine struct {
	File string `json:"file"`
	untrusted.Line
}

// maxHiddenLines is the maximum number of lines that a review shows.
const maxHiddenLines = 20

// ReadHidden searches the skill's text files for hidden characters. If there are
// any, it sets Hidden. Of a skill of an MCP server, it reads only files that were
// fetched earlier.
func (r *Review) ReadHidden(ctx context.Context, rt *loadout.Runtime) error {
	if r.isServed() {
		ctx = catalog.CachedOnly(ctx)
	}
	found, err := readHidden(ctx, rt, r.Request.Entry)
	if err == nil && len(found.Lines) > 0 {
		r.Hidden = found
	}
	return err
}

func readHidden(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry) (*Hidden, error) {
	b, err := rt.Catalog().Open(ctx, e)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	files, err := rt.Catalog().ListFiles(ctx, e)
	if err != nil {
		return nil, err
	}
	out := &Hidden{}
	for _, f := range slices.Clone(files) {
		file, err := b.FS.Open(f.Path)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(file, f.Size+1))
		file.Close()
		if errors.Is(err, catalog.ErrNotFetched) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !filetype.IsTextFile(f.Path, data) {
			continue // no model gets it as text
		}
		lines, others := untrusted.VisibleLines(string(data), maxHiddenLines-len(out.Lines))
		for _, l := range lines {
			out.Lines = append(out.Lines, HiddenLine{f.Path, l})
		}
		out.Others += others
		if len(lines)+others > 0 {
			out.hashes = append(out.hashes, skillfile.Hash(data))
		}
	}
	return out, nil
}
