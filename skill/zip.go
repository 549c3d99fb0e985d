package skill

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Limits bound an archive from a stranger. Zero fields mean the defaults.
type Limits struct {
	PackedBytes   int64 // of the archive; default 10 MiB
	Entries       int   // files and directories; default 512
	FileBytes     int64 // of one unpacked file; default 16 MiB
	UnpackedBytes int64 // of all unpacked files; default 16 MiB
	Ratio         int64 // of unpacked to packed, for files over 64 KiB; default 200
	// AnyFolder accepts a top folder whose name is not the archive's.
	AnyFolder bool
}

// OrDefaults are the limits with the defaults for those that are not set.
func (l Limits) OrDefaults() Limits { return l.withDefaults() }

func (l Limits) withDefaults() Limits {
	if l.PackedBytes == 0 {
		l.PackedBytes = 10 << 20
	}
	if l.Entries == 0 {
		l.Entries = 512
	}
	if l.FileBytes == 0 {
		l.FileBytes = 16 << 20
	}
	if l.UnpackedBytes == 0 {
		l.UnpackedBytes = 16 << 20
	}
	if l.Ratio == 0 {
		l.Ratio = 200
	}
	return l
}

// Refusal is one reason why an archive is not accepted.
type Refusal struct {
	Entry   string `json:"entry"` // as written in the archive; "" for the archive itself
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r Refusal) String() string {
	if r.Entry == "" {
		return r.Message
	}
	return OneLine(quote(r.Entry)) + ": " + r.Message
}

// RefusedError says that an archive, or files from elsewhere, were refused, with
// the reasons found, of many the first.
type RefusedError struct {
	What     string // what was refused, as "skill"; "" is an archive
	Refusals []Refusal
}

func (e *RefusedError) Error() string {
	s := cmp.Or(e.What, "archive") + " refused: " + e.Refusals[0].String()
	if n := len(e.Refusals) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// OpenZIP opens a skill archive: SKILL.md at the top or in the single top
// folder. name is the archive's file name or path, from which the folder of a
// flat archive is named. Nothing is unpacked: files are inflated as they are
// read, never beyond the size that was checked. A refused archive is a
// [*RefusedError]; r must stay readable until the bundle is no longer used.
func OpenZIP(r io.ReaderAt, size int64, name string, limits Limits) (*Bundle, error) {
	limits = limits.withDefaults()
	base := archiveBase(name)
	if size > limits.PackedBytes {
		return nil, &RefusedError{Refusals: []Refusal{{"", "archive-too-large", fmt.Sprintf("the archive has %d bytes, more than %d", size, limits.PackedBytes)}}}
	}
	zr, err := zip.NewReader(r, size)
	if err != nil {
		msg := "this is not a ZIP archive, or a damaged one: " + err.Error()
		return nil, &RefusedError{Refusals: []Refusal{{"", "not-a-zip", msg}}}
	}
	c := newChecker(limits)
	top := c.archive(zr, base)
	if len(c.refusals) > 0 {
		return nil, &RefusedError{Refusals: c.refusals}
	}
	if top == "." {
		return NewBundle(zr, base, nil), nil
	}
	sub, err := fs.Sub(zr, top)
	if err != nil {
		return nil, fmt.Errorf("open folder %s of archive: %w", top, err)
	}
	return NewBundle(sub, top, nil), nil
}

// archiveBase is the name of an archive without directory and extension.
func archiveBase(name string) string {
	if name == "" {
		return ""
	}
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	for _, ext := range []string{".zip", ".skill"} {
		if n := len(name) - len(ext); n > 0 && strings.EqualFold(name[n:], ext) {
			return name[:n]
		}
	}
	return name
}

// CheckFiles says why files of a stranger are not accepted as those of one skill,
// by the rules that [OpenZIP] has for an archive: each path plain on every system
// and like no other, and their number and sizes within Entries, FileBytes and
// UnpackedBytes of limits. It reads the paths and sizes alone, and gives the first
// of many reasons; nil where there is none.
func CheckFiles(files Manifest, limits Limits) []Refusal {
	c := newChecker(limits.withDefaults())
	c.what = "skill"
	for _, f := range files {
		if !c.count(f.Path) {
			break
		}
		if !c.name(f.Path) {
			continue
		}
		c.collide(f.Path)
		if !c.size(f.Path, f.Size) {
			break
		}
	}
	return c.refusals
}

// checker goes over the entries of an archive, or the files of a skill, once.
type checker struct {
	limits   Limits
	what     string // that has the entries
	fold     cases.Caser
	seen     map[string]string // folded path of a file or directory → as written
	listed   map[string]bool   // directories that have an entry
	files    []string
	entries  int
	total    int64
	refusals []Refusal
}

const maxRefusals = 20

func newChecker(limits Limits) *checker {
	return &checker{limits: limits, what: "archive", seen: map[string]string{}, listed: map[string]bool{}, fold: cases.Fold()}
}

// refuse notes a reason, and returns false for those who return it in turn.
func (c *checker) refuse(entry, code, format string, args ...any) bool {
	if len(c.refusals) < maxRefusals {
		c.refusals = append(c.refusals, Refusal{strings.ToValidUTF8(entry, "�"), code, OneLine(fmt.Sprintf(format, args...))})
	}
	return false
}

// archive checks all entries and returns the directory that holds SKILL.md.
func (c *checker) archive(zr *zip.Reader, base string) string {
	for _, f := range zr.File {
		if !c.entry(f) {
			return ""
		}
	}
	return c.layout(base)
}

// entry checks one entry and reports whether to go on.
func (c *checker) entry(f *zip.File) bool {
	name := f.Name
	if !c.count(name) {
		return false
	}
	if !c.name(name) {
		return true
	}
	clean := strings.TrimSuffix(name, "/")
	isDir := strings.HasSuffix(name, "/")
	if litter(clean) {
		return isDir || c.sizes(f)
	}
	mode := f.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		c.refuse(name, "link", "it is a symbolic link; put the file itself into the archive")
		return true
	case mode&fs.ModeType&^fs.ModeDir != 0:
		c.refuse(name, "special-file", "it is a device, pipe or socket")
		return true
	case mode.IsDir() != isDir:
		c.refuse(name, "directory-mismatch", "its name and its type disagree on whether it is a directory")
		return true
	case f.Flags&1 != 0:
		c.refuse(name, "encrypted", "it is encrypted")
		return true
	case f.Method != zip.Store && f.Method != zip.Deflate:
		c.refuse(name, "compression", "compression method %d is not supported; use deflate", f.Method)
		return true
	}
	f.SetMode(mode &^ (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)) // no file of a skill has these
	c.collide(name)
	if !isDir {
		c.files = append(c.files, clean)
		return c.sizes(f)
	}
	return true
}

// count counts an entry, and reports whether there may be as many.
func (c *checker) count(name string) bool {
	if c.entries++; c.entries > c.limits.Entries {
		return c.refuse(name, "too-many-entries", "the %s has more than %d entries", c.what, c.limits.Entries)
	}
	return true
}

// name refuses paths that [CheckPath] has something against, and reports whether
// this is none.
func (c *checker) name(name string) bool {
	code, message := CheckPath(strings.TrimSuffix(name, "/"))
	if code == "" {
		return true
	}
	if len(name) > maxPath {
		name = strings.ToValidUTF8(name[:80], "") + "…"
	}
	return c.refuse(name, code, "%s", message)
}

// litter reports whether a path is something a desktop adds to archives.
func litter(p string) bool {
	return p == "__MACOSX" || strings.HasPrefix(p, "__MACOSX/") || path.Base(p) == ".DS_Store"
}

// collide refuses two entries that one file system would store in one place:
// equal names, names equal but for case or composition, and a file that is
// also a directory of another entry. The name of a directory ends in a slash.
func (c *checker) collide(name string) {
	clean, isDir := strings.CutSuffix(name, "/")
	// Folding works part by part, so that the slashes of both stay in step.
	key := c.fold.String(norm.NFC.String(clean))
	for w, k := 0, 0; ; w, k = w+1, k+1 {
		i := strings.IndexByte(clean[w:], '/')
		if i < 0 {
			break
		}
		w, k = w+i, k+strings.IndexByte(key[k:], '/')
		dir := clean[:w+1]
		if prev, ok := c.seen[key[:k]]; ok && prev != dir {
			c.refuse(name, "collision", "its directory collides with the entry %s", quote(prev))
			return
		}
		c.seen[key[:k]] = dir
	}
	prev, ok := c.seen[key]
	if isDir {
		ok = ok && (prev != name || c.listed[name]) // it may be known as the directory of others
		c.listed[name] = true
	}
	if ok {
		c.refuse(name, "collision", "it collides with the entry %s", quote(prev))
		return
	}
	c.seen[key] = name
}

// sizes checks what an entry unpacks to, and reports whether to go on.
func (c *checker) sizes(f *zip.File) bool {
	packed, unpacked := f.CompressedSize64, f.UncompressedSize64
	if packed > math.MaxInt64 || unpacked > math.MaxInt64 {
		c.refuse(f.Name, "file-too-large", "it unpacks to %d bytes, more than %d", unpacked, c.limits.FileBytes)
		return true
	}
	if unpacked > 64<<10 && int64(unpacked) <= c.limits.FileBytes && int64(unpacked) > int64(max(packed, 1))*c.limits.Ratio {
		c.refuse(f.Name, "compression-ratio", "it unpacks to more than %d times its packed size", c.limits.Ratio)
	}
	return c.size(f.Name, int64(unpacked))
}

// size checks the size of a file, and reports whether to go on.
func (c *checker) size(name string, size int64) bool {
	if size > c.limits.FileBytes {
		c.refuse(name, "file-too-large", "it has %d bytes, more than %d", size, c.limits.FileBytes)
		return true
	}
	if c.total += size; c.total > c.limits.UnpackedBytes {
		return c.refuse(name, "archive-unpacked-too-large", "with it the %s has more than %d bytes", c.what, c.limits.UnpackedBytes)
	}
	return true
}

// layout returns the directory that holds SKILL.md, "." for a flat archive.
func (c *checker) layout(base string) string {
	top := ""
	for _, f := range c.files {
		if IsFileName(f) {
			return "."
		}
	}
	for _, f := range c.files {
		dir, _, nested := strings.Cut(f, "/")
		switch {
		case !nested:
			c.refuse(f, "beside-folder", "it lies beside the skill's folder; put everything into one folder, or SKILL.md at the top")
			return "."
		case top == "":
			top = dir
		case top != dir:
			c.refuse(f, "several-folders", "the archive has more than one top folder (%s, %s); pack one skill", quote(top), quote(dir))
			return "."
		}
	}
	found := false
	for _, f := range c.files {
		dir, file, _ := strings.Cut(f, "/")
		found = found || dir == top && IsFileName(file)
	}
	switch {
	case !found && len(c.refusals) > 0: // perhaps a refused entry is the file
	case !found:
		c.refuse("", "no-skill-md", "there is no SKILL.md at the top or in the single top folder")
	case !c.limits.AnyFolder && base != "" && norm.NFC.String(top) != norm.NFC.String(base):
		c.refuse(top+"/", "folder-name", "the folder is named %s and the archive %s; name them alike", quote(top), quote(base))
	}
	return top
}

// IsRefused returns the refusals where err is a [*RefusedError].
func IsRefused(err error) ([]Refusal, bool) {
	if re, ok := errors.AsType[*RefusedError](err); ok {
		return re.Refusals, true
	}
	return nil, false
}
