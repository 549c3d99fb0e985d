package loadout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// maxReadBytes is the maximum number of bytes of text returned by
// [Runtime.ReadFile].
const maxReadBytes = 64 << 10

const (
	maxWhole = 16 << 20 // maximum size of a file that is read in full
	maxImage = 5 << 20  // maximum size of a returned image
)

// Content is the content of a skill file, or part of it.
type Content struct {
	Path   string // inside the skill, with slashes
	Size   int64  // size of the whole file in bytes
	SHA256 string // in hex; empty if the file is larger than 256 MiB
	MIME   string // determined by extension or else by content; for Data always by content
	// Text is the requested part of a text file, which is UTF-8 without NUL
	// bytes. Offset is its offset in bytes. It may be up to three bytes before
	// the requested one, at the start of a character. Next is the offset of
	// the next part, or 0 if this is the last.
	Text         string
	Offset, Next int64
	// Data is a complete image in a format that models accept: PNG, JPEG, GIF
	// or WebP. It is nil for other files, and for images over 5 MiB.
	Data []byte
	// Binary is set if the file is not text, or is over 16 MiB.
	Binary bool
	// TooLarge is set if the file is over 16 MiB. Its content is not returned.
	TooLarge bool
	// Warning tells a model that the text file has hidden characters, or that
	// the file comes from an MCP server; otherwise it is "". It must precede Text
	// in what the model receives. See [Runtime.CheckText].
	Warning string
	// SkillDigest is the digest of all files of a skill of an MCP server, as in
	// [session.Skill], of the version that the file belongs to. It is "" for other
	// skills.
	SkillDigest string
}

// errNotText is returned for an offset in a file that is not text.
var errNotText = errors.New("offset is only supported for text files")

// ReadFile returns a file of the skill e. name is its path inside the skill.
// For a text file, ReadFile returns up to limit bytes starting at offset and
// does not split characters. If limit is smaller than the first character, that
// character is returned whole. A limit of 0 means 64 KiB, which is also the maximum. Images up to
// 5 MiB are returned whole; for other files, only the metadata is returned.
//
// The error matches [fs.ErrNotExist] if the file does not exist. It matches
// [fs.ErrInvalid] if the path leads outside the skill or is not a regular file,
// or if offset is outside a text file. A positive offset in a file that is not
// text is an error. If the file must not be read because of hidden characters
// anywhere in it, ReadFile returns the error of [Runtime.CheckText].
func (r *Runtime) ReadFile(ctx context.Context, e *catalog.Entry, name string, offset, limit int64) (*Content, error) {
	return r.ReadSessionFile(ctx, "", e, name, offset, limit)
}

// ReadSessionFile is like [Runtime.ReadFile] for the conversation with the given
// ID. Approvals that apply only to this conversation count, too.
func (r *Runtime) ReadSessionFile(ctx context.Context, session string, e *catalog.Entry, name string, offset, limit int64) (*Content, error) {
	clean, err := cleanPath(name)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	held, err := r.servedManifest(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := r.catalog.CheckApproval(ctx, e, session, servedApprovals{r, true, held}); err != nil {
		return nil, err
	}
	b, err := r.catalog.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	c, text, err := readContent(b.FS, clean, offset, limit)
	switch {
	case err == nil && held != nil && !lists(held, clean, c.SHA256):
		return nil, changedError(e)
	case err == nil:
		if held != nil {
			c.SkillDigest = held.Digest()
		}
		if c.Warning, err = r.CheckText(ctx, e, clean, text); err != nil {
			return nil, err
		}
		c.Warning = withNotice(e, c.Warning)
		return c, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fileError(fs.ErrNotExist, "skill %s has no file %s%s", e.Name, clean, nearFiles(b.FS, clean))
	case errors.Is(err, errDirectory):
		return nil, fileError(fs.ErrInvalid, "skill %s: %s is a directory; %s", e.Name, clean, filesBelow(b.FS, clean))
	case !errors.Is(err, fs.ErrInvalid) && hasSymlink(b.FS, clean):
		return nil, fileError(fs.ErrInvalid, "skill %s: %s is a symbolic link out of the skill", e.Name, clean)
	}
	return nil, fmt.Errorf("skill %s: %w", e.Name, err)
}

// pathError is an error about a path. It has a message for the caller and a
// sentinel error for [errors.Is].
type pathError struct {
	text string
	kind error
}

func (e *pathError) Error() string { return e.text }
func (e *pathError) Unwrap() error { return e.kind }

func fileError(kind error, format string, args ...any) error {
	return &pathError{fmt.Sprintf(format, args...), kind}
}

var errDirectory = errors.New("is a directory")

// hasSymlink reports whether any component of the path is a symbolic link.
func hasSymlink(fsys fs.FS, name string) bool {
	for p := name; p != "."; p = path.Dir(p) {
		if fi, err := fs.Lstat(fsys, p); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// cleanPath cleans a path. It returns an error if the path is not inside the
// skill.
func cleanPath(name string) (string, error) {
	clean := path.Clean(strings.ReplaceAll(strings.TrimSpace(name), `\`, "/"))
	if !fs.ValidPath(clean) || clean == "." || strings.ContainsRune(clean, 0) {
		return "", fileError(fs.ErrInvalid, "invalid path %q: give a file of the skill, such as references/guide.md", name)
	}
	for part := range strings.SplitSeq(clean, "/") {
		if skillpath.IsIgnored(part) {
			return "", fileError(fs.ErrNotExist, "%s is not part of the skill", clean)
		}
	}
	return clean, nil
}

// readContent reads a file. It also returns the whole text of a text file.
func readContent(fsys fs.FS, name string, offset, limit int64) (*Content, string, error) {
	// Stat first: opening a named pipe would wait for a writer.
	switch fi, err := fs.Stat(fsys, name); {
	case err != nil:
		return nil, "", err
	case fi.IsDir():
		return nil, "", errDirectory
	case !fi.Mode().IsRegular():
		return nil, "", fileError(fs.ErrInvalid, "not a regular file: %s", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxWhole+1))
	if err != nil {
		return nil, "", err
	}
	if len(data) > maxWhole {
		c, err := describeLargeFile(f, name, data)
		return c, "", err
	}
	c := &Content{Path: name, Size: int64(len(data)), SHA256: skillfile.Hash(data), MIME: filetype.Of(name, data)}
	if filetype.IsText(data) {
		if err := c.setPart(data, offset, limit); err != nil {
			return nil, "", err
		}
		return c, string(data), nil
	}
	c.Binary = true
	if offset > 0 {
		return nil, "", fmt.Errorf("%s: %w", name, errNotText)
	}
	if t := filetype.Image(data); t != "" && c.Size <= maxImage {
		c.Data, c.MIME = data, t
	}
	return c, "", nil
}

// describeLargeFile returns the metadata of a file whose content is not returned: its
// size and, up to skillfile.MaxBytes, its hash. head is the data already read from
// f.
func describeLargeFile(f fs.File, name string, head []byte) (*Content, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c := &Content{Path: name, Size: fi.Size(), MIME: filetype.Of(name, head), Binary: true, TooLarge: true}
	if c.Size <= skillfile.MaxBytes {
		h := sha256.New()
		h.Write(head)
		rest, err := io.Copy(h, io.LimitReader(f, skillfile.MaxBytes))
		if err != nil {
			return nil, err
		}
		c.Size, c.SHA256 = int64(len(head))+rest, hex.EncodeToString(h.Sum(nil))
	}
	return c, nil
}

// setPart sets Text to the bytes from offset to offset+limit without splitting
// characters.
func (c *Content) setPart(data []byte, offset, limit int64) error {
	if limit <= 0 || limit > maxReadBytes {
		limit = maxReadBytes
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
	if end == offset && end < c.Size { // the limit is shorter than one character
		_, n := utf8.DecodeRune(data[offset:])
		end += int64(n)
	}
	c.Text, c.Offset = string(data[offset:end]), offset
	if end < c.Size {
		c.Next = end
	}
	return nil
}

// maxNear is the maximum number of files listed in the error for a missing
// file.
const maxNear = 20

// nearFiles returns a suggestion for a path that does not exist, to be appended
// to an error.
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
	return "; it has " + joinNames(all)
}

// filesBelow describes the files in a directory and its subdirectories.
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
	return "its files are " + joinNames(below)
}

func joinNames(names []string) string {
	text := strings.Join(names[:min(len(names), maxNear)], ", ")
	if rest := len(names) - maxNear; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}
