package figure_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/figure"
)

const (
	png  = "\x89PNG\r\n\x1a\n"
	jpeg = "\xff\xd8\xff"
	webp = "RIFF....WEBPVP8 "
)

func TestOnlyNewAndChangedImagesAreReturned(t *testing.T) {
	files := fstest.MapFS{
		"out/old.png":     {Data: []byte(png + "old")},
		"out/changed.png": {Data: []byte(png + "before")},
	}
	before := figure.Scan(files, "out", "missing")
	if got := before.New(files, "out"); got != nil {
		t.Fatalf("nothing changed: %v", got)
	}
	large := append([]byte(png), make([]byte, figure.MaxBytes)...)
	for name, data := range map[string]string{
		"out/changed.png": png + "after", "out/a.JPG": jpeg, "out/b.webp": webp, "out/c.gif": "GIF89a", "out/d.svg": "<svg/>",
		"out/text.png": "no image", "out/large.png": string(large), "out/jpeg.png": jpeg + "2", "out/sub/e.png": png, "in/f.png": png,
	} {
		files[name] = &fstest.MapFile{Data: []byte(data)}
	}
	files["out/link.png"] = &fstest.MapFile{Data: []byte("old.png"), Mode: fs.ModeSymlink}
	want := []mcp.Content{
		&mcp.ImageContent{MIMEType: "image/jpeg", Data: []byte(jpeg)},
		&mcp.ImageContent{MIMEType: "image/webp", Data: []byte(webp)},
		&mcp.ImageContent{MIMEType: "image/png", Data: []byte(png + "after")},
		&mcp.ImageContent{MIMEType: "image/jpeg", Data: []byte(jpeg + "2")},
	}
	if diff := cmp.Diff(want, before.New(files, "out")); diff != "" {
		t.Error(diff)
	}
}

func TestImagesAreLimited(t *testing.T) {
	files := fstest.MapFS{"full.png": {Data: append([]byte(png), make([]byte, figure.MaxBytes-len(png))...)}}
	for i := range 20 {
		files[fmt.Sprintf("p%02d.png", i)] = &fstest.MapFile{Data: fmt.Append(nil, png, i)}
	}
	got := figure.Images(nil).New(files, ".")
	if len(got) != figure.MaxImages {
		t.Fatalf("%d images, want %d", len(got), figure.MaxImages)
	}
	if first := got[0].(*mcp.ImageContent); len(first.Data) != figure.MaxBytes || !bytes.HasPrefix(first.Data, []byte(png)) {
		t.Errorf("an image of the largest size is missing")
	}
}

// openedFS records the files that are opened.
type openedFS struct {
	fstest.MapFS
	opened []string
}

func (f *openedFS) Open(name string) (fs.File, error) {
	f.opened = append(f.opened, name)
	return f.MapFS.Open(name)
}

func (f *openedFS) ReadDir(name string) ([]fs.DirEntry, error) { return f.MapFS.ReadDir(name) }

// A command in a directory with many images must not read them all.
func TestUnchangedImagesAreNotRead(t *testing.T) {
	files := &openedFS{MapFS: fstest.MapFS{"a.png": {Data: []byte(png)}, "b.png": {Data: []byte(png)}}}
	before := figure.Scan(files, ".")
	files.MapFS["c.png"] = &fstest.MapFile{Data: []byte(png)}
	if got := before.New(files, "."); len(got) != 1 {
		t.Errorf("got %d images, want 1", len(got))
	}
	if diff := cmp.Diff([]string{"c.png"}, files.opened); diff != "" {
		t.Error(diff)
	}
}

// A run in a working folder writes all files again.
func TestImagesWrittenAgainAreNotNew(t *testing.T) {
	files := fstest.MapFS{"same.png": {Data: []byte(png)}, "changed.png": {Data: []byte(png + "1")}}
	before := figure.ScanContent(files, ".")
	now := time.Now()
	files["same.png"] = &fstest.MapFile{Data: []byte(png), ModTime: now}
	files["changed.png"] = &fstest.MapFile{Data: []byte(png + "2"), ModTime: now}
	want := []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: []byte(png + "2")}}
	if diff := cmp.Diff(want, before.New(files, ".")); diff != "" {
		t.Error(diff)
	}
}
