package remote

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// packed is an entry of an archive that a test makes.
type packed struct {
	name    string
	content string
	mode    fs.FileMode // with the type; 0 is a plain file
	flag    byte        // of a tar, where not by mode
	target  string
	pax     map[string]string
}

func tarOf(t testing.TB, entries ...packed) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()) | 0o644, Size: int64(len(e.content)), Typeflag: tar.TypeReg, Linkname: e.target, PAXRecords: e.pax}
		switch {
		case e.flag != 0:
			h.Typeflag = e.flag
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		case e.mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.content
		case e.mode&fs.ModeNamedPipe != 0:
			h.Typeflag = tar.TypeFifo
		case e.mode&fs.ModeDevice != 0:
			h.Typeflag = tar.TypeChar
		}
		if e.mode&fs.ModeSetuid != 0 {
			h.Mode |= 0o4000
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			*h = tar.Header{Typeflag: h.Typeflag, PAXRecords: e.pax}
		}
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			io.WriteString(w, e.content)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(src []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(src)
	w.Close()
	return b.Bytes()
}

func zipOf(t testing.TB, entries ...packed) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, e.content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// lookAt looks at the bytes of an archive as lookArchive does once they are there.
func lookAt(t testing.TB, c *Client, src []byte) (*Collection, error) {
	t.Helper()
	o, err := c.collectArchive(t.Context(), Location{Kind: Archive, URL: "https://example.com/a"}, bytes.NewReader(src), int64(len(src)), func() error { return nil })
	if err == nil {
		t.Cleanup(func() {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return o, err
}

// lies makes an entry of a ZIP say that it is smaller than it is.
func lies(src []byte) []byte {
	out := bytes.Clone(src)
	at := bytes.LastIndex(out, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(out[at+24:], 10)
	return out
}

// overlapping is a ZIP whose entries all have the content of the first.
func overlapping(t testing.TB) []byte {
	content := make([]byte, 64<<10)
	for i := range content {
		content[i] = byte(rand.IntN(256))
	}
	entries := []packed{{name: "pdf/SKILL.md", content: doc("pdf")}}
	for i := range 20 {
		entries = append(entries, packed{name: fmt.Sprintf("pdf/%02d", i)})
	}
	entries[1].content = string(content)
	src := zipOf(t, entries...)
	first := bytes.Index(src, []byte("PK\x01\x02"))
	var like []byte
	for at := first; bytes.HasPrefix(src[at:], []byte("PK\x01\x02")); {
		n := 46 + int(binary.LittleEndian.Uint16(src[at+28:])) + int(binary.LittleEndian.Uint16(src[at+30:]))
		name := string(src[at+46 : at+46+int(binary.LittleEndian.Uint16(src[at+28:]))])
		if name == "pdf/00" {
			like = bytes.Clone(src[at+16 : at+28])
		}
		if like != nil && name != "pdf/00" {
			copy(src[at+16:], like)                      // checksum and sizes
			offset := bytes.Index(src, []byte("pdf/00")) // of the name in the local header
			binary.LittleEndian.PutUint32(src[at+42:], uint32(offset-30))
		}
		at += n
	}
	return src
}

// commented is a ZIP with a comment.
func commented(text string, src []byte) []byte {
	binary.LittleEndian.PutUint16(src[len(src)-2:], uint16(len(text)))
	return append(src, text...)
}

// Known attacks on archive extractors: no result leaves the directory, is a symlink or
// device, or is too large, whichever step refuses it. A skill beside it is offered if
// the archive as a whole is valid.
func TestArchiveAttacks(t *testing.T) {
	pdf := packed{name: "pdf/SKILL.md", content: doc("pdf")}
	other := packed{name: "other/SKILL.md", content: doc("other")}
	many := []packed{pdf, other}
	for i := range 5000 {
		many = append(many, packed{name: fmt.Sprintf("pdf/f%d", i)})
	}
	const looked, opened = "look", "open" // the step that refuses
	for _, tt := range []struct {
		id, what string
		entries  []packed
		step     string
		codes    []string
		formats  string // "" is both
		change   func([]byte) []byte
	}{
		{"F01", "../../x", []packed{{name: "../../x"}}, looked, []string{"path-escape"}, "", nil},
		{"F02", "an absolute path", []packed{{name: "/tmp/x"}}, looked, []string{"absolute-path"}, "", nil},
		{"F03", `..\x`, []packed{{name: `..\x`}}, looked, []string{"path-escape"}, "", nil},
		{"F04", "a sibling with the same prefix", []packed{{name: "../pdf-evil/x"}}, looked, []string{"path-escape"}, "", nil},
		{"F05", "a link", []packed{{name: "pdf/l", content: "/etc/passwd", mode: fs.ModeSymlink}}, opened, []string{"link"}, "", nil},
		{"F06", "a link to a directory, and a file through it", []packed{{name: "pdf/l", content: "/tmp", mode: fs.ModeSymlink}, {name: "pdf/l/x", content: "x"}}, opened, []string{"collision", "link"}, "", nil},
		{"F07", "a bomb", []packed{{name: "pdf/bomb", content: strings.Repeat("\x00", 32<<20)}}, looked, []string{"compression-ratio"}, "tar", nil},
		{"F07", "a bomb", []packed{{name: "pdf/bomb", content: strings.Repeat("\x00", 15<<20)}}, opened, []string{"special-file"}, "zip", nil},
		{"F09", "a size that lies", []packed{{name: "pdf/z", content: strings.Repeat("noise ", 1000)}}, "read", nil, "zip", lies},
		{"F10", "5000 entries", many[2:], opened, []string{"too-many-entries"}, "", nil},
		{"F11", "a part of 300 characters", []packed{{name: "pdf/" + strings.Repeat("a", 300)}}, opened, []string{"path-too-long"}, "", nil},
		{"F12", "a path of 5000 characters", []packed{{name: "pdf/" + strings.Repeat("a/", 2500) + "x"}}, opened, []string{"path-too-long"}, "", nil},
		{"F13", "500 directories in one another", []packed{{name: "pdf/" + strings.Repeat("d/", 500) + "x"}}, opened, []string{"path-too-long"}, "", nil},
		{"F14", "SKILL.md twice", []packed{pdf}, opened, []string{"collision"}, "", nil},
		{"F15", "skill.md and SKILL.md", []packed{{name: "pdf/skill.md"}}, opened, []string{"collision"}, "", nil},
		{"F16", "NUL in a name", []packed{{name: "pdf/a\x00b"}}, opened, []string{"name-control"}, "zip", nil}, // a tar ends the name there
		{"F17", "a name that is shown backwards", []packed{{name: "pdf/a\u202egpj.exe"}}, opened, []string{"name-control"}, "", nil},
		{"F18", "a line end and colours in a name", []packed{{name: "pdf/a\n\x1b[31mb"}}, opened, []string{"name-control"}, "", nil},
		{"F19", "setuid", []packed{{name: "pdf/s", content: "x", mode: fs.ModeSetuid | 0o755}}, "mode", nil, "", nil},
		{"F20", "a device", []packed{{name: "pdf/d", mode: fs.ModeDevice | fs.ModeCharDevice}}, opened, []string{"special-file"}, "", nil},
		{"F21", "a pipe", []packed{{name: "pdf/p", mode: fs.ModeNamedPipe}}, opened, []string{"special-file"}, "", nil},
		{"F22", "a file, and a directory of its name", []packed{{name: "pdf/a"}, {name: "pdf/a/b"}}, opened, []string{"collision"}, "", nil},
		{"F23", "a name that is a device elsewhere", []packed{{name: "pdf/NUL.txt"}}, opened, []string{"name-reserved"}, "", nil},
		{"F24", "an archive that is cut off", nil, looked, []string{"not-an-archive"}, "zip", func(b []byte) []byte { return b[:60] }},
		{"F24", "an archive that is cut off", nil, looked, []string{"damaged"}, "tar", func(b []byte) []byte { return b[:60] }},

		{"T1", "a hard link", []packed{{name: "pdf/h", flag: tar.TypeLink, target: "pdf/SKILL.md"}}, opened, []string{"link"}, "tar", nil},
		{"T2", "a block device", []packed{{name: "pdf/b", flag: tar.TypeBlock}}, opened, []string{"special-file"}, "tar", nil},
		{"T3", "a directory outside", []packed{{name: "../out/"}}, looked, []string{"path-escape"}, "", nil},
		{"T4", "a path of an extended header that leads out", []packed{{name: "pdf/" + strings.Repeat("a/", 100) + "../" + strings.Repeat("../", 110) + "x"}}, looked, []string{"path-escape"}, "tar", nil},
		{"T5", "a damaged end", nil, looked, []string{"damaged"}, "tar", func(b []byte) []byte { return append(b[:len(b)-6:len(b)-6], "123456"...) }},
		{"T6", "a stream that is no tar", nil, looked, []string{"not-an-archive"}, "tar", func([]byte) []byte { return gzipped(nil) }},
		{"T7", "a page", nil, looked, []string{"not-an-archive"}, "zip", func([]byte) []byte { return []byte("<!doctype html>") }},
	} {
		for _, format := range []string{"zip", "tar"} {
			if tt.formats != "" && tt.formats != format {
				continue
			}
			t.Run(tt.id+" "+tt.what+" "+format, func(t *testing.T) {
				entries := append([]packed{pdf, other}, tt.entries...)
				var src []byte
				if format == "zip" {
					src = zipOf(t, entries...)
				} else {
					src = gzipped(tarOf(t, entries...))
				}
				if tt.change != nil {
					src = tt.change(src)
				}
				checkAttack(t, src, tt.step, tt.codes)
			})
		}
	}
	t.Run("F08 entries that overlap zip", func(t *testing.T) {
		checkAttack(t, overlapping(t), looked, []string{"overlap"})
	})
}

// checkAttack looks at an archive, and opens its skills.
func checkAttack(t *testing.T, src []byte, step string, want []string) {
	t.Helper()
	dir := t.TempDir()
	c := New(&Options{TempDir: dir})
	o, err := lookAt(t, c, src)
	if step == "look" {
		if got := codes(t, err); !cmp.Equal(got, want) {
			t.Errorf("%v, want %v (%v)", got, want, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%d files were left", len(left))
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err := o.OpenSkill(t.Context(), Skill{Dir: "other"}); err != nil {
		t.Errorf("the skill beside it: %v", err)
	} else if data, err := fs.ReadFile(b.FS, "SKILL.md"); err != nil || string(data) != doc("other") {
		t.Errorf("the skill beside it: %q, %v", data, err)
	}
	b, err := o.OpenSkill(t.Context(), Skill{Dir: "pdf"})
	switch step {
	case "open":
		if got := codes(t, err); !cmp.Equal(got, want) {
			t.Errorf("%v, want %v (%v)", got, want, err)
		}
	case "read":
		if err != nil {
			t.Fatal(err)
		}
		if data, err := fs.ReadFile(b.FS, "z"); err == nil || len(data) > 10 {
			t.Errorf("read %d bytes, %v", len(data), err)
		}
	case "mode":
		if err != nil {
			t.Fatal(err)
		}
		if fi, err := fs.Stat(b.FS, "s"); err != nil || fi.Mode() != 0o755 {
			t.Errorf("mode %v, %v", fi.Mode(), err)
		}
	}
}

// Names of a sparse file are written by hand: the library does not write any.
func TestSparseFilesAreRefused(t *testing.T) {
	src := tarOf(t, packed{name: "pdf/SKILL.md", content: doc("pdf")}, packed{name: "pdf/other", content: "x"},
		packed{name: "pdf/s", content: "x", pax: map[string]string{"LOADOUT.sparse": "1"}})
	// The same length, so that the record stays whole.
	src = bytes.Replace(src, []byte("LOADOUT.sparse=1"), []byte("GNU.sparse.majo="), 1)
	o, err := lookAt(t, New(&Options{TempDir: t.TempDir()}), gzipped(src))
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.OpenSkill(t.Context(), o.Skills[0])
	if got := codes(t, err); !slices.Equal(got, []string{"special-file"}) {
		t.Errorf("%v: %v", got, err)
	}
}

func TestB11RepositoryArchive(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for name, src := range map[string][]byte{
		"as hosts make them": gzipped(tarOf(t,
			packed{flag: tar.TypeXGlobalHeader, pax: map[string]string{"comment": commit}},
			packed{name: "repo-main/"}, packed{name: "repo-main/README", content: "x"},
			packed{name: "repo-main/skills/pdf/SKILL.md", content: doc("pdf")}, packed{name: "repo-main/skills/pdf/run.sh", content: "#!/bin/sh\n", mode: 0o755})),
		"as tar makes them": gzipped(tarOf(t,
			packed{name: "./"}, packed{name: "./skills/"}, packed{name: "./README", content: "x"},
			packed{name: "./skills/pdf/SKILL.md", content: doc("pdf")}, packed{name: "./skills/pdf/run.sh", content: "#!/bin/sh\n", mode: 0o755})),
		"as hosts make a ZIP": commented(commit, zipOf(t, packed{name: "repo/"}, packed{name: "repo/README"},
			packed{name: "repo/skills/pdf/SKILL.md", content: doc("pdf")}, packed{name: "repo/skills/pdf/run.sh", content: "#!/bin/sh\n", mode: 0o755})),
	} {
		t.Run(name, func(t *testing.T) {
			o, err := lookAt(t, New(&Options{TempDir: t.TempDir()}), src)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Skill{{Name: "pdf", Description: "Does pdf things.", Dir: "skills/pdf"}}, o.Skills); diff != "" {
				t.Fatal(diff)
			}
			want := ""
			if name != "as tar makes them" {
				want = commit
			}
			if o.Revision.Commit != want {
				t.Errorf("commit %q, want %q", o.Revision.Commit, want)
			}
			b, err := o.OpenSkill(t.Context(), o.Skills[0])
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := skill.ReadManifest(b.FS)
			if err != nil || len(m) != 2 || !m[1].Script {
				t.Errorf("%v, %v", m, err)
			}
			if fi, err := fs.Stat(b.FS, "run.sh"); err != nil || fi.Mode() != 0o755 {
				t.Errorf("%v, %v", fi, err)
			}
		})
	}
}

// A download ends at its limit, leaves no file, and takes little memory.
func TestDownloadTimeout(t *testing.T) {
	pdf := gzipped(tarOf(t, packed{name: "pdf/SKILL.md", content: doc("pdf")}))
	w := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/2gb.zip":
			zeros := make([]byte, 1<<20)
			for range 2048 {
				if _, err := w.Write(zeros); err != nil {
					return
				}
			}
		case "/said.zip":
			w.Header().Set("Content-Length", "2147483648")
		case "/cut.tgz":
			w.Header().Set("Content-Length", strconv.Itoa(len(pdf)))
			w.Write(pdf[:len(pdf)/2])
		case "/short.tgz":
			w.Write(pdf[:len(pdf)/2])
		case "/loop.zip":
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		case "/denied.zip":
			http.Error(w, "", http.StatusForbidden)
		case "/pdf.zip": // wrong name extension
			w.Write(pdf)
		default:
			http.NotFound(w, r)
		}
	})
	dir := t.TempDir()
	largest := int64(0)
	c := w.client(t, &Options{TempDir: dir, Limits: Limits{Download: 8 << 20}, Progress: func(p Progress) { largest = max(largest, p.Done) }})
	look := func(name string) (*Collection, error) {
		return c.Open(t.Context(), Location{Kind: Archive, URL: "https://example.com/" + name})
	}
	for name, is := range map[string]func(error) bool{
		"2gb.zip":     isA[*TooLargeError],
		"said.zip":    isA[*TooLargeError],
		"cut.tgz":     func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) },
		"short.tgz":   isA[*skill.RefusedError],
		"loop.zip":    func(err error) bool { return strings.Contains(err.Error(), "too many redirects (limit 10)") },
		"denied.zip":  isA[*DeniedError],
		"missing.zip": isA[*NotFoundError],
	} {
		o, err := look(name)
		if err == nil || !is(err) {
			t.Errorf("%s: %v, %v", name, o, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	if largest > 9<<20 {
		t.Errorf("%d bytes were downloaded", largest)
	}
	o, err := look("pdf.zip")
	if err != nil || len(o.Skills) != 1 {
		t.Fatalf("%v, %v", o, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files were left after Close", len(left))
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestArchiveLimits(t *testing.T) {
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	files := []packed{{name: "pdf/SKILL.md", content: doc("pdf")}, {name: "pdf/a", content: string(noise)}}
	for name, src := range map[string][]byte{"zip": zipOf(t, files...), "tar": gzipped(tarOf(t, files...))} {
		for code, limits := range map[string]Limits{"too-many-entries": {Entries: 1}, "archive-unpacked-too-large": {Unpacked: 1 << 20}} {
			_, err := lookAt(t, New(&Options{TempDir: t.TempDir(), Limits: limits}), src)
			if got := codes(t, err); !slices.Equal(got, []string{code}) {
				t.Errorf("%s: %v, want %s", name, got, code)
			}
		}
	}
}

// The number of entries that a ZIP says it has is not believed: its directory is
// read no further than there may be entries.
func TestZIPWithWrongEntryCount(t *testing.T) {
	var many []packed
	for i := range 60_000 {
		many = append(many, packed{name: fmt.Sprintf("pdf/%s%d", strings.Repeat("x", 40), i)})
	}
	src := zipOf(t, many...)
	binary.LittleEndian.PutUint16(src[len(src)-12:], 1)
	_, err := lookAt(t, New(&Options{Limits: Limits{Entries: 10}}), src)
	if got := codes(t, err); !slices.Equal(got, []string{"too-many-entries"}) {
		t.Errorf("%v", err)
	}
}

func TestSkillFileAtURL(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/x/SKILL.md":
			io.WriteString(w, doc("pdf"))
		case "/nameless/skill.md":
			io.WriteString(w, "---\ndescription: It has no name.\n---\n")
		case "/page/SKILL.md":
			io.WriteString(w, "<!doctype html>")
		case "/large/SKILL.md":
			w.Write(make([]byte, skillfile.MaxFileBytes+1))
		default:
			http.NotFound(w, r)
		}
	})
	c := w.client(t, nil)
	for p, want := range map[string]string{"/x/SKILL.md": "pdf", "/nameless/skill.md": "nameless"} {
		o, err := c.Open(t.Context(), Location{Kind: File, URL: "https://example.com" + p})
		if err != nil || len(o.Skills) != 1 || o.Skills[0].Name != want || o.Skills[0].Dir != "." {
			t.Errorf("%s: %v, %v", p, o, err)
			continue
		}
		b, err := o.OpenSkill(t.Context(), o.Skills[0])
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if name, err := skillfile.Find(b.FS); err != nil || name != filepath.Base(p) {
			t.Errorf("%s: %s, %v", p, name, err)
		}
	}
	if o, err := c.Open(t.Context(), Location{Kind: File, URL: "https://example.com/page/SKILL.md"}); err != nil || len(o.Skills) != 0 || len(o.Problems) == 0 {
		t.Errorf("a page: %v, %v", o, err)
	}
	if _, err := c.Open(t.Context(), Location{Kind: File, URL: "https://example.com/large/SKILL.md"}); !isA[*TooLargeError](err) {
		t.Errorf("a large file: %v", err)
	}
	_, err := c.Open(t.Context(), Location{Kind: File, URL: "https://example.com/none/SKILL.md?token=hunter2"})
	if !isA[*NotFoundError](err) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a missing file: %v", err)
	}
}
