package loadout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// MaxRead is the most of a text file that one [Runtime.ReadFile] returns.
const MaxRead = 64 << 10

const (
	maxWhole = 16 << 20 // the most of a file that is looked into
	maxImage = 5 << 20  // the most of an image that is returned
)

// Content is a file of a skill, or a part of it.
type Content struct {
	Path   string
	Size   int64 // of the whole file
	SHA256 string
	MIME   string
	// Text is the part of a text file that was asked for; Next is the offset
	// to go on from, 0 where it is complete.
	Text         string
	Offset, Next int64
	// Data is an image as a whole, nil for other files that are no text.
	Data []byte
	// Binary says that the file is not text.
	Binary bool
}

// ErrNotText says that an offset was given for a file that is not text.
var ErrNotText = errors.New("the file is not text, so it cannot be read in parts")

// ReadFile returns a file of a skill by its path inside the skill: up to limit
// bytes of text from offset on (at most [MaxRead], which 0 stands for), cut
// between characters; an image as a whole; of another file what it is. The
// error matches [fs.ErrNotExist] for a path that is not there, and
// [fs.ErrInvalid] for one that leaves the skill.
func (r *Runtime) ReadFile(ctx context.Context, e *catalog.Entry, name string, offset, limit int64) (*Content, error) {
	clean, err := cleanPath(name)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	b, err := r.catalog.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	c, err := readContent(b.FS, clean, offset, limit)
	if err != nil {
		if near := nearFiles(b.FS, clean); errors.Is(err, fs.ErrNotExist) && near != "" {
			return nil, fmt.Errorf("skill %s has no file %s; %s: %w", e.Name, clean, near, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	return c, nil
}

// cleanPath refuses what is no plain path inside a skill.
func cleanPath(name string) (string, error) {
	clean := path.Clean(strings.ReplaceAll(strings.TrimSpace(name), `\`, "/"))
	if !fs.ValidPath(clean) || clean == "." {
		return "", fmt.Errorf("%q is no path inside the skill; give one of its files, as references/guide.md: %w", name, fs.ErrInvalid)
	}
	for part := range strings.SplitSeq(clean, "/") {
		if skill.Ignored(part) {
			return "", fmt.Errorf("%s is no part of the skill: %w", clean, fs.ErrNotExist)
		}
	}
	return clean, nil
}

func readContent(fsys fs.FS, name string, offset, limit int64) (*Content, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is a directory or no regular file; give a file: %w", name, fs.ErrInvalid)
	}
	if fi.Size() > maxWhole {
		n, sum, err := skill.HashFile(fsys, name)
		return &Content{Path: name, Size: n, SHA256: sum, MIME: mimeType(name, nil), Binary: true}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxWhole))
	if err != nil {
		return nil, err
	}
	c := &Content{Path: name, Size: int64(len(data)), SHA256: skill.Hash(data), MIME: mimeType(name, data)}
	c.Binary = !IsText(data)
	switch {
	case !c.Binary:
		return c, c.part(data, offset, limit)
	case offset > 0:
		return nil, fmt.Errorf("%s: %w", name, ErrNotText)
	case strings.HasPrefix(c.MIME, "image/") && c.Size <= maxImage:
		c.Data = data
	}
	return c, nil
}

// part takes the text between offset and offset+limit, moved to the borders
// of characters.
func (c *Content) part(data []byte, offset, limit int64) error {
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	if offset < 0 || offset > c.Size {
		return fmt.Errorf("offset %d is outside %s, which has %d bytes: %w", offset, c.Path, c.Size, fs.ErrInvalid)
	}
	for offset > 0 && offset < c.Size && !utf8.RuneStart(data[offset]) {
		offset--
	}
	end := min(offset+limit, c.Size)
	for end < c.Size && end > offset+1 && !utf8.RuneStart(data[end]) {
		end--
	}
	c.Text, c.Offset = string(data[offset:end]), offset
	if end < c.Size {
		c.Next = end
	}
	return nil
}

// IsText reports whether data is UTF-8 text, by its first 8 KiB.
func IsText(data []byte) bool {
	head := data[:min(len(data), 8<<10)]
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		if r == 0 || r == utf8.RuneError && n == 1 && (i < len(head)-utf8.UTFMax || len(head) == len(data)) {
			return false
		}
		i += n
	}
	return true
}

// types are the types of files by extension. The tables of systems differ, and
// the same skill must be served alike everywhere.
var types = map[string]string{
	".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".mmd": "text/plain", ".csv": "text/csv", ".tsv": "text/tab-separated-values",
	".html": "text/html", ".htm": "text/html", ".css": "text/css", ".xml": "application/xml", ".svg": "image/svg+xml",
	".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml", ".sql": "application/sql",
	".py": "text/x-python", ".sh": "text/x-shellscript", ".bash": "text/x-shellscript", ".js": "text/javascript", ".mjs": "text/javascript", ".cjs": "text/javascript",
	".ts": "text/typescript", ".tsx": "text/typescript", ".go": "text/x-go", ".rs": "text/x-rust", ".rb": "text/x-ruby",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp", ".ico": "image/x-icon",
	".pdf": "application/pdf", ".zip": "application/zip", ".gz": "application/gzip", ".wasm": "application/wasm",
	".ttf": "font/ttf", ".otf": "font/otf", ".woff": "font/woff", ".woff2": "font/woff2", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".mp4": "video/mp4",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

// MIMEType is the type of a file by its name, "" where the name does not tell.
func MIMEType(name string) string { return types[strings.ToLower(path.Ext(name))] }

// mimeType is MIMEType, or a look at the content.
func mimeType(name string, data []byte) string {
	switch t := MIMEType(name); {
	case t != "":
		return t
	case len(data) > 0 && IsText(data):
		return "text/plain"
	}
	return "application/octet-stream"
}

// nearFiles names files that were perhaps meant.
func nearFiles(fsys fs.FS, name string) string {
	files, _, err := skill.List(fsys)
	if err != nil || len(files) == 0 {
		return ""
	}
	var all []string
	for _, f := range files {
		if strings.EqualFold(path.Base(f.Path), path.Base(name)) {
			return "did you mean " + f.Path + "?"
		}
		if all = append(all, f.Path); len(all) == 20 {
			break
		}
	}
	return "it has " + strings.Join(all, ", ")
}
