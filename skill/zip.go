package skill

import (
	"archive/zip"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillpath"
)

// Limits holds limits on untrusted archives. Zero fields mean the defaults, so
// that the zero value is ready to use.
type Limits struct {
	PackedBytes   int64 // maximum size of the archive; default 10 MiB
	Entries       int   // maximum number of files and directories; default 512
	FileBytes     int64 // maximum size of a single unpacked file; default 16 MiB
	UnpackedBytes int64 // maximum size of all unpacked files; default 16 MiB
	Ratio         int64 // maximum compression ratio of files over 64 KiB; default 200
	// AllowFolderMismatch accepts a top-level directory whose name differs
	// from the archive's name.
	AllowFolderMismatch bool
}

// WithDefaults returns the limits with zero fields set to their defaults.
func (l Limits) WithDefaults() Limits {
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

// Refusal is a reason for rejecting an archive.
type Refusal struct {
	Entry   string `json:"entry"` // as written in the archive; empty for the archive itself
	Code    string `json:"code"`  // kind of reason in lower-case words with hyphens
	Message string `json:"message"`
}

// String returns the reason on one line, with the entry if there is one.
func (r Refusal) String() string {
	if r.Entry == "" {
		return r.Message
	}
	return printable.OneLine(quote(r.Entry)) + ": " + r.Message
}

// RefusedError reports that an archive or other untrusted files were rejected.
// It holds the first reasons found, up to 20.
type RefusedError struct {
	What     string    // kind of object, such as "skill"; empty means archive
	Refusals []Refusal // never empty
}

func (e *RefusedError) Error() string {
	s := cmp.Or(e.What, "archive") + " refused: " + e.Refusals[0].String()
	if n := len(e.Refusals) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// OpenZIP opens a skill archive whose SKILL.md is at the top level or in the
// only top-level directory. name is the archive's file name or path; it also
// names the folder of a flat archive. OpenZIP unpacks nothing: files are
// decompressed when they are read, and never beyond the checked size. r must
// remain readable while the bundle is in use; closing the bundle does not close
// r.
//
// If the archive is rejected, the error is a [*RefusedError]. OpenZIP rejects
// archives over the limits, symlinks, encrypted and special files, and paths
// that are not valid and unique on every system. It also rejects archives
// without a SKILL.md and those with files outside the top-level directory.
// Unless AllowFolderMismatch is set, that directory must have the archive's
// name. The name may have the suffixes of downloads: the number of a version from
// a hub, as in pdf-3.zip, and the number of a repetition from a browser, as in
// "pdf (1).zip".
func OpenZIP(r io.ReaderAt, size int64, name string, limits Limits) (*Bundle, error) {
	limits = limits.WithDefaults()
	base := archiveBase(name)
	if size > limits.PackedBytes {
		return nil, &RefusedError{Refusals: []Refusal{{"", "archive-too-large", fmt.Sprintf("archive too large (%d bytes, limit %d)", size, limits.PackedBytes)}}}
	}
	zr, err := zip.NewReader(r, size)
	if err != nil {
		msg := "not a valid ZIP archive"
		if err != zip.ErrFormat {
			msg += ": " + err.Error()
		}
		return nil, &RefusedError{Refusals: []Refusal{{"", "not-a-zip", msg}}}
	}
	c := newChecker(limits)
	top := c.checkArchive(zr, base)
	if len(c.refusals) > 0 {
		return nil, &RefusedError{Refusals: c.refusals}
	}
	if top == "." {
		return NewBundle(zr, trimRepeat(base), nil), nil
	}
	sub, err := fs.Sub(zr, top)
	if err != nil {
		return nil, fmt.Errorf("open folder %s in archive: %w", top, err)
	}
	return NewBundle(sub, top, nil), nil
}

// archiveBase returns the base name of an archive without its extension.
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

var (
	repeatSuffix  = lazyregexp.New(` ?\(\d{1,4}\)$| \d{1,4}$`)
	versionSuffix = lazyregexp.New(`-\d{1,9}$`)
)

// trimRepeat removes the number that a browser adds to the name of a file that it
// downloads again. No skill name ends like that.
func trimRepeat(base string) string {
	return strings.TrimSuffix(base, repeatSuffix.FindString(base))
}

// isArchiveName reports whether base may be the name of an archive of a folder.
func isArchiveName(base, folder string) bool {
	once := trimRepeat(base)
	return folder == base || folder == once || folder == strings.TrimSuffix(once, versionSuffix.FindString(once))
}

// Check returns the reasons why files cannot be accepted as a skill, or nil if
// they can. It applies the rules of [OpenZIP], but uses only paths and sizes.
// Each path must be unique and valid on every system. The number and sizes of
// the files must be within Entries, FileBytes and UnpackedBytes. Check returns
// the first reasons, up to 20. It does not require a SKILL.md.
func (l Limits) Check(files Manifest) []Refusal {
	c := newChecker(l.WithDefaults())
	c.what = "skill"
	for _, f := range files {
		if !c.countEntry(f.Path) {
			break
		}
		if !c.checkName(f.Path) {
			continue
		}
		c.checkCollision(f.Path)
		if !c.checkSize(f.Path, f.Size) {
			break
		}
	}
	return c.refusals
}

// checker checks the entries of an archive or the files of a skill in one pass.
type checker struct {
	limits   Limits
	what     string            // kind of object that has the entries
	seen     map[string]string // foldPath of a file or directory → path as written
	listed   map[string]bool   // directories that have their own entry
	files    []string
	entries  int
	total    int64
	refusals []Refusal
}

const maxRefusals = 20

func newChecker(limits Limits) *checker {
	return &checker{limits: limits, what: "archive", seen: map[string]string{}, listed: map[string]bool{}}
}

// refuse records a reason for rejecting the files. It always returns false, so
// that callers can return its result.
func (c *checker) refuse(entry, code, format string, args ...any) bool {
	if len(c.refusals) < maxRefusals {
		c.refusals = append(c.refusals, Refusal{strings.ToValidUTF8(entry, "�"), code, printable.OneLine(fmt.Sprintf(format, args...))})
	}
	return false
}

// checkArchive checks all entries and returns the directory that holds SKILL.md.
func (c *checker) checkArchive(zr *zip.Reader, base string) string {
	for _, f := range zr.File {
		if !c.checkEntry(f) {
			return ""
		}
	}
	return c.findRoot(base)
}

// checkEntry checks an entry and reports whether to continue.
func (c *checker) checkEntry(f *zip.File) bool {
	name := f.Name
	if !c.countEntry(name) {
		return false
	}
	if !c.checkName(name) {
		return true
	}
	clean := strings.TrimSuffix(name, "/")
	isDir := strings.HasSuffix(name, "/")
	if isDesktopFile(clean) {
		return isDir || c.checkEntrySize(f)
	}
	mode := f.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		c.refuse(name, "link", "symbolic link; put the file itself into the archive")
		return true
	case mode&fs.ModeType&^fs.ModeDir != 0:
		c.refuse(name, "special-file", "device, pipe or socket")
		return true
	case mode.IsDir() != isDir:
		c.refuse(name, "directory-mismatch", "name and type disagree on whether the entry is a directory")
		return true
	case f.Flags&1 != 0:
		c.refuse(name, "encrypted", "entry is encrypted")
		return true
	case f.Method != zip.Store && f.Method != zip.Deflate:
		c.refuse(name, "compression", "unsupported compression method %d; use deflate", f.Method)
		return true
	}
	f.SetMode(mode &^ (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)) // skill files never have these bits
	c.checkCollision(name)
	if !isDir {
		c.files = append(c.files, clean)
		return c.checkEntrySize(f)
	}
	return true
}

// countEntry counts an entry and reports whether the number is within the limit.
func (c *checker) countEntry(name string) bool {
	if c.entries++; c.entries > c.limits.Entries {
		return c.refuse(name, "too-many-entries", "the %s has more than %d entries", c.what, c.limits.Entries)
	}
	return true
}

// checkName reports whether a path is valid. It refuses paths that skillpath.Check
// rejects.
func (c *checker) checkName(name string) bool {
	code, message := skillpath.Check(strings.TrimSuffix(name, "/"))
	if code == "" {
		return true
	}
	if len(name) > skillpath.MaxBytes {
		name = strings.ToValidUTF8(name[:80], "") + "…"
	}
	return c.refuse(name, code, "%s", message)
}

// isDesktopFile reports whether a path is a metadata file that desktop
// operating systems add to archives.
func isDesktopFile(p string) bool {
	return p == "__MACOSX" || strings.HasPrefix(p, "__MACOSX/") || path.Base(p) == ".DS_Store"
}

// checkCollision refuses entries that some file system would store at the same path.
// These are equal names and names that differ only in case or Unicode
// composition. A file also collides with an entry below it. Directory names end
// in a slash.
func (c *checker) checkCollision(name string) {
	clean, isDir := strings.CutSuffix(name, "/")
	// Folding one component at a time keeps the slashes of both in step.
	key := foldPath(clean)
	for w, k := 0, 0; ; w, k = w+1, k+1 {
		i := strings.IndexByte(clean[w:], '/')
		if i < 0 {
			break
		}
		w, k = w+i, k+strings.IndexByte(key[k:], '/')
		dir := clean[:w+1]
		if prev, ok := c.seen[key[:k]]; ok && prev != dir {
			c.refuse(name, "collision", "directory collides with the entry %s", quote(prev))
			return
		}
		c.seen[key[:k]] = dir
	}
	prev, ok := c.seen[key]
	if isDir {
		ok = ok && (prev != name || c.listed[name]) // the name may be known as the parent of other entries
		c.listed[name] = true
	}
	if ok {
		c.refuse(name, "collision", "collides with the entry %s", quote(prev))
		return
	}
	c.seen[key] = name
}

// checkEntrySize checks an entry's unpacked size and reports whether to continue.
func (c *checker) checkEntrySize(f *zip.File) bool {
	packed, unpacked := f.CompressedSize64, f.UncompressedSize64
	if packed > math.MaxInt64 || unpacked > math.MaxInt64 {
		c.refuse(f.Name, "file-too-large", "unpacked size too large (%d bytes, limit %d)", unpacked, c.limits.FileBytes)
		return true
	}
	if unpacked > 64<<10 && int64(unpacked) <= c.limits.FileBytes && int64(unpacked) > int64(max(packed, 1))*c.limits.Ratio {
		c.refuse(f.Name, "compression-ratio", "unpacks to more than %d times its packed size", c.limits.Ratio)
	}
	return c.checkSize(f.Name, int64(unpacked))
}

// checkSize checks a file's size and reports whether to continue.
func (c *checker) checkSize(name string, size int64) bool {
	if size > c.limits.FileBytes {
		c.refuse(name, "file-too-large", "file too large (%d bytes, limit %d)", size, c.limits.FileBytes)
		return true
	}
	if c.total += size; c.total > c.limits.UnpackedBytes {
		return c.refuse(name, "archive-unpacked-too-large", "total size of the %s exceeds the limit of %d bytes", c.what, c.limits.UnpackedBytes)
	}
	return true
}

// findRoot returns the directory that holds SKILL.md, or "." for a flat archive.
func (c *checker) findRoot(base string) string {
	top := ""
	for _, f := range c.files {
		if skillpath.IsSkillFile(f) {
			return "."
		}
	}
	for _, f := range c.files {
		dir, _, nested := strings.Cut(f, "/")
		switch {
		case !nested:
			c.refuse(f, "beside-folder", "file beside the skill's folder; put everything into one folder, or SKILL.md at the top")
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
		found = found || dir == top && skillpath.IsSkillFile(file)
	}
	switch {
	case !found && len(c.refusals) > 0: // a refused entry may be the file
	case !found:
		c.refuse("", "no-skill-md", "no SKILL.md at the top or in the single top folder")
	case !c.limits.AllowFolderMismatch && base != "" && !isArchiveName(norm.NFC.String(base), norm.NFC.String(top)):
		c.refuse(top+"/", "folder-name", "the folder is named %s and the archive %s; give them the same name", quote(top), quote(base))
	}
	return top
}
