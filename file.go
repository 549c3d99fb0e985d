package loadout

import (
	"bytes"
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
	Size   int64  // of the whole file
	SHA256 string // "" where the file has more than [skill.MaxBytes]
	MIME   string
	// Text is the part of a text file that was asked for; Next is the offset
	// to go on from, 0 where it is complete.
	Text         string
	Offset, Next int64
	// Data is an image as a whole, nil for other files that are no text. It
	// is of a kind that models take: PNG, JPEG, GIF or WebP.
	Data []byte
	// Binary says that the file is not text.
	Binary bool
	// TooLarge says that the file was hashed and not looked into.
	TooLarge bool
}

// ErrNotText says that an offset was given for a file that is not text.
var ErrNotText = errors.New("the file is not text, so it cannot be read in parts")

// ReadFile returns a file of a skill by its path inside the skill: up to limit
// bytes of text from offset on (at most [MaxRead], which 0 stands for), cut
// between characters; an image as a whole; of another file what it is. The
// error matches [fs.ErrNotExist] for a path that is not there, [fs.ErrInvalid]
// for one that leaves the skill or is no file, or [ErrNotText].
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
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fileError(fs.ErrNotExist, "skill %s has no file %s%s", e.Name, clean, nearFiles(b.FS, clean))
	case errors.Is(err, errDirectory):
		return nil, fileError(fs.ErrInvalid, "skill %s: %s is a directory; %s", e.Name, clean, filesBelow(b.FS, clean))
	case !errors.Is(err, fs.ErrInvalid) && hasLink(b.FS, clean):
		return nil, fileError(fs.ErrInvalid, "skill %s: %s leads out of the skill by a link", e.Name, clean)
	}
	return nil, fmt.Errorf("skill %s: %w", e.Name, err)
}

// pathError is what is wrong with a path, for whoever asked for it, and the
// kind of error that is.
type pathError struct {
	text string
	kind error
}

func (e *pathError) Error() string { return e.text }
func (e *pathError) Unwrap() error { return e.kind }

func fileError(kind error, format string, args ...any) error {
	return &pathError{fmt.Sprintf(format, args...), kind}
}

var errDirectory = errors.New("it is a directory")

// hasLink reports whether a part of the path is a link.
func hasLink(fsys fs.FS, name string) bool {
	for p := name; p != "."; p = path.Dir(p) {
		if fi, err := fs.Lstat(fsys, p); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// cleanPath refuses what is no plain path inside a skill.
func cleanPath(name string) (string, error) {
	clean := path.Clean(strings.ReplaceAll(strings.TrimSpace(name), `\`, "/"))
	if !fs.ValidPath(clean) || clean == "." || strings.ContainsRune(clean, 0) {
		return "", fileError(fs.ErrInvalid, "%q is no path inside the skill; give one of its files, as references/guide.md", name)
	}
	for part := range strings.SplitSeq(clean, "/") {
		if skill.Ignored(part) {
			return "", fileError(fs.ErrNotExist, "%s is no part of the skill", clean)
		}
	}
	return clean, nil
}

func readContent(fsys fs.FS, name string, offset, limit int64) (*Content, error) {
	// A look before it is opened: opening a pipe would wait for a writer.
	switch fi, err := fs.Stat(fsys, name); {
	case err != nil:
		return nil, err
	case fi.IsDir():
		return nil, errDirectory
	case !fi.Mode().IsRegular():
		return nil, fileError(fs.ErrInvalid, "%s is no regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxWhole+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxWhole {
		return tooLarge(fsys, f, name, data)
	}
	c := &Content{Path: name, Size: int64(len(data)), SHA256: skill.Hash(data), MIME: mimeType(name, data)}
	if IsText(data) {
		if err := c.part(data, offset, limit); err != nil {
			return nil, err
		}
		return c, nil
	}
	c.Binary = true
	if offset > 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrNotText)
	}
	if t := imageType(data); t != "" && c.Size <= maxImage {
		c.Data, c.MIME = data, t
	}
	return c, nil
}

// tooLarge is what can be said of a file that is not returned: its size, and
// its hash where it is not too large for that as well.
func tooLarge(fsys fs.FS, f fs.File, name string, head []byte) (*Content, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c := &Content{Path: name, Size: fi.Size(), MIME: mimeType(name, head), Binary: true, TooLarge: true}
	if c.Size <= skill.MaxBytes {
		c.Size, c.SHA256, err = skill.HashFile(fsys, name)
	}
	return c, err
}

// imageType tells the images that models take by how they begin: a name may
// say another kind, and then the whole request is refused.
func imageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// part takes the text between offset and offset+limit, moved to the borders
// of characters.
func (c *Content) part(data []byte, offset, limit int64) error {
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	if offset < 0 || offset > c.Size {
		return fileError(fs.ErrInvalid, "offset %d is outside %s, which has %d bytes", offset, c.Path, c.Size)
	}
	for offset > 0 && offset < c.Size && !utf8.RuneStart(data[offset]) {
		offset--
	}
	end := min(offset+limit, c.Size)
	for end < c.Size && end > offset && !utf8.RuneStart(data[end]) {
		end--
	}
	if end == offset && end < c.Size { // the limit is less than one character
		_, n := utf8.DecodeRune(data[offset:])
		end += int64(n)
	}
	c.Text, c.Offset = string(data[offset:end]), offset
	if end < c.Size {
		c.Next = end
	}
	return nil
}

// IsText reports whether data is UTF-8 text without NUL: all of it, as what is
// not would be changed by putting it into JSON.
func IsText(data []byte) bool {
	return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data)
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

// maxNear bounds the files that an error names.
const maxNear = 20

// nearFiles names files that were perhaps meant.
func nearFiles(fsys fs.FS, name string) string {
	files, _, err := skill.List(fsys)
	if err != nil || len(files) == 0 {
		return ""
	}
	var all []string
	for _, f := range files {
		if strings.EqualFold(path.Base(f.Path), path.Base(name)) {
			return "; did you mean " + f.Path + "?"
		}
		all = append(all, f.Path)
	}
	return "; it has " + some(all)
}

// filesBelow names the files in a directory, as far down as they are.
func filesBelow(fsys fs.FS, dir string) string {
	files, _, err := skill.List(fsys)
	if err != nil {
		return "give a file"
	}
	var below []string
	for _, f := range files {
		if strings.HasPrefix(f.Path, dir+"/") {
			below = append(below, f.Path)
		}
	}
	if len(below) == 0 {
		return "it has no files"
	}
	return "its files are " + some(below)
}

func some(names []string) string {
	text := strings.Join(names[:min(len(names), maxNear)], ", ")
	if rest := len(names) - maxNear; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}
