package skill_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// entry is one entry of an archive made by hand.
type entry struct {
	name    string
	content string
	mode    fs.FileMode
	change  func(*zip.FileHeader) // makes the header lie
}

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := zip.NewWriter(&buf)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		if strings.HasSuffix(e.name, "/") {
			h.Method = zip.Store
		}
		create, content := zw.CreateHeader, e.content
		if e.change != nil {
			create, content = zw.CreateRaw, deflate(e.content)
			h.CRC32, h.CompressedSize64, h.UncompressedSize64 = crc32.ChecksumIEEE([]byte(e.content)), uint64(len(content)), uint64(len(e.content))
			e.change(h)
		}
		w, err := create(h)
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func openZIP(src []byte, name string, limits skill.Limits) (*skill.Bundle, error) {
	return skill.OpenZIP(bytes.NewReader(src), int64(len(src)), name, limits)
}

func deflate(s string) string {
	var buf bytes.Buffer
	w, _ := flate.NewWriter(&buf, flate.DefaultCompression)
	io.WriteString(w, s)
	w.Close()
	return buf.String()
}

// noise does not compress.
func noise(n int) string {
	b := make([]byte, n)
	rand.New(rand.NewSource(1)).Read(b)
	return string(b)
}

var skillMD = entry{name: "pdf/SKILL.md", content: doc(ok)}

func many(n int) []entry {
	out := []entry{skillMD}
	for i := 1; i < n; i++ {
		out = append(out, entry{name: fmt.Sprintf("pdf/f%d", i)})
	}
	return out
}

// W2: bad packages are refused with the reason, and the entry that is to blame.
func TestW2EvilArchivesAreRefusedWithEntryAndReason(t *testing.T) {
	size := func(n uint64) func(*zip.FileHeader) {
		return func(h *zip.FileHeader) { h.UncompressedSize64 = n }
	}
	for _, tt := range []struct {
		name    string
		entries []entry
		entry   string
		code    string
	}{
		{"parent", []entry{skillMD, {name: "pdf/../../x"}}, "pdf/../../x", "path-escape"},
		{"parent at the top", []entry{skillMD, {name: "../x"}}, "../x", "path-escape"},
		{"parent as a directory", []entry{skillMD, {name: "pdf/../"}}, "pdf/../", "path-escape"},
		{"absolute", []entry{skillMD, {name: "/etc/x"}}, "/etc/x", "absolute-path"},
		{"backslash", []entry{skillMD, {name: `pdf\..\x`}}, `pdf\..\x`, "backslash"},
		{"drive", []entry{skillMD, {name: "c:/x"}}, "c:/x", "drive"},
		{"colon", []entry{skillMD, {name: "pdf/a:b"}}, "pdf/a:b", "name-colon"},
		{"NUL", []entry{skillMD, {name: "pdf/a\x00b"}}, "pdf/a\x00b", "name-control"},
		{"C1 control", []entry{skillMD, {name: "pdf/a\u009bb"}}, "pdf/a\u009bb", "name-control"},
		{"right to left", []entry{skillMD, {name: "pdf/a\u202egpj"}}, "pdf/a\u202egpj", "name-control"},
		{"device of Windows", []entry{skillMD, {name: "pdf/Com1 .txt"}}, "pdf/Com1 .txt", "name-reserved"},
		{"not UTF-8", []entry{skillMD, {name: "pdf/\xff"}}, "pdf/\ufffd", "name-encoding"},
		{"doubled slash", []entry{skillMD, {name: "pdf//x"}}, "pdf//x", "path-unclean"},
		{"dot", []entry{skillMD, {name: "./pdf/x"}}, "./pdf/x", "path-unclean"},
		{"no name", []entry{skillMD, {name: ""}}, "", "path-unclean"},
		{"long path", []entry{skillMD, {name: "pdf/" + strings.Repeat("a/", 255) + "x"}}, ("pdf/" + strings.Repeat("a/", 255))[:80] + "…", "path-too-long"},
		{"long part", []entry{skillMD, {name: "pdf/" + long(256)}}, "pdf/" + long(256), "path-too-long"},
		{"symbolic link", []entry{skillMD, {name: "pdf/l", content: "/etc/passwd", mode: fs.ModeSymlink | 0o777}}, "pdf/l", "link"},
		{"link as a directory", []entry{skillMD, {name: "pdf/l/", mode: fs.ModeSymlink | 0o777}}, "pdf/l/", "link"},
		{"device", []entry{skillMD, {name: "pdf/d", mode: fs.ModeDevice | 0o666}}, "pdf/d", "special-file"},
		{"pipe", []entry{skillMD, {name: "pdf/p", mode: fs.ModeNamedPipe | 0o666}}, "pdf/p", "special-file"},
		{"directory without a slash", []entry{skillMD, {name: "pdf/d", mode: fs.ModeDir | 0o755}}, "pdf/d", "directory-mismatch"},
		{"encrypted", []entry{skillMD, {name: "pdf/e", change: func(h *zip.FileHeader) { h.Flags |= 1 }}}, "pdf/e", "encrypted"},
		{"other compression", []entry{skillMD, {name: "pdf/c", change: func(h *zip.FileHeader) { h.Method = 12 }}}, "pdf/c", "compression"},
		{"same name twice", []entry{skillMD, {name: "pdf/a"}, {name: "pdf/a"}}, "pdf/a", "collision"},
		{"same directory twice", []entry{skillMD, {name: "pdf/a/"}, {name: "pdf/a/"}}, "pdf/a/", "collision"},
		{"names equal but for case", []entry{skillMD, {name: "pdf/README.md"}, {name: "pdf/Readme.md"}}, "pdf/Readme.md", "collision"},
		{"names equal but for composition", []entry{skillMD, {name: "pdf/é"}, {name: "pdf/e\u0301"}}, "pdf/e\u0301", "collision"},
		{"names equal but for sharp s", []entry{skillMD, {name: "pdf/ß"}, {name: "pdf/ss"}}, "pdf/ss", "collision"},
		{"directories equal but for case", []entry{skillMD, {name: "pdf/A/x"}, {name: "pdf/a/y"}}, "pdf/a/y", "collision"},
		{"file that is a directory", []entry{skillMD, {name: "pdf/a"}, {name: "pdf/a/b"}}, "pdf/a/b", "collision"},
		{"directory that is a file", []entry{skillMD, {name: "pdf/a/b"}, {name: "pdf/a"}}, "pdf/a", "collision"},
		{"two spellings of SKILL.md", []entry{skillMD, {name: "pdf/skill.md"}}, "pdf/skill.md", "collision"},
		{"513 entries", many(513), "pdf/f512", "too-many-entries"},
		{"bomb", []entry{skillMD, {name: "pdf/b", content: strings.Repeat("0", 1<<20)}}, "pdf/b", "compression-ratio"},
		{"large file", []entry{skillMD, {name: "pdf/b", change: size(16<<20 + 1)}}, "pdf/b", "file-too-large"},
		{"file of 2^63 bytes", []entry{skillMD, {name: "pdf/b", change: size(1 << 63)}}, "pdf/b", "file-too-large"},
		{"large together", []entry{skillMD, {name: "pdf/a", content: noise(64 << 10), change: size(9 << 20)}, {name: "pdf/b", content: noise(64 << 10), change: size(9 << 20)}},
			"pdf/b", "archive-unpacked-too-large"},
		{"litter counts as well", []entry{skillMD, {name: "__MACOSX/b", content: strings.Repeat("0", 1<<20)}}, "__MACOSX/b", "compression-ratio"},
		{"no SKILL.md", []entry{{name: "pdf/README.md"}}, "", "no-skill-md"},
		{"SKILL.md too deep", []entry{{name: "pdf/a/SKILL.md"}}, "", "no-skill-md"},
		{"nothing", nil, "", "no-skill-md"},
		{"only directories", []entry{{name: "pdf/"}}, "", "no-skill-md"},
		{"SKILL.md is a directory", []entry{{name: "pdf/SKILL.md/"}, {name: "pdf/x"}}, "", "no-skill-md"},
		{"other folder", []entry{{name: "docx/SKILL.md"}}, "docx/", "folder-name"},
		{"folder in other case", []entry{{name: "PDF/SKILL.md"}}, "PDF/", "folder-name"},
		{"two folders", []entry{skillMD, {name: "docx/SKILL.md"}}, "docx/SKILL.md", "several-folders"},
		{"beside the folder", []entry{skillMD, {name: "LICENSE"}}, "LICENSE", "beside-folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := openZIP(archive(t, tt.entries...), "dir/pdf.zip", skill.Limits{})
			refusals, ok := refusalsOf(err)
			if !ok {
				t.Fatalf("not refused: %v", err)
			}
			want := skill.Refusal{Entry: tt.entry, Code: tt.code, Message: refusals[0].Message}
			if diff := cmp.Diff([]skill.Refusal{want}, refusals); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if text := err.Error(); refusals[0].Message == "" || strings.ContainsAny(text, "\x00\u009b\n") {
				t.Errorf("error %q", text)
			}
		})
	}
}

func TestRefusalListIsLimited(t *testing.T) {
	_, err := openZIP(archive(t, entry{name: "x/SKILL.md"}, entry{name: "x/../a"}, entry{name: "x/b", mode: fs.ModeSymlink}), "pdf.zip", skill.Limits{})
	refusals, _ := refusalsOf(err)
	var got []string
	for _, r := range refusals {
		got = append(got, r.Code)
	}
	if diff := cmp.Diff([]string{"path-escape", "link", "folder-name"}, got); diff != "" {
		t.Error(diff)
	}
	if !strings.HasSuffix(err.Error(), "(and 2 more)") {
		t.Error(err)
	}
	evil := []entry{skillMD}
	for i := range 100 {
		evil = append(evil, entry{name: fmt.Sprintf("../%d", i)})
	}
	_, err = openZIP(archive(t, evil...), "pdf.zip", skill.Limits{})
	if refusals, _ := refusalsOf(err); len(refusals) != 20 {
		t.Errorf("%d refusals", len(refusals))
	}
}

func TestNonArchivesAreRefused(t *testing.T) {
	good := archive(t, skillMD)
	for name, src := range map[string][]byte{
		"nothing": {}, "text": []byte("# PDF\n"), "cut short": good[:len(good)-5], "cut in the middle": good[:len(good)/2],
		"only the end": good[len(good)-22:], "zeros": make([]byte, 1000), "trailer over nothing": append(make([]byte, 100), good[len(good)-22:]...),
	} {
		_, err := openZIP(src, "pdf.zip", skill.Limits{})
		if refusals, ok := refusalsOf(err); !ok || refusals[0].Code != "not-a-zip" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := openZIP(good, "pdf.zip", skill.Limits{PackedBytes: int64(len(good)) - 1})
	if refusals, ok := refusalsOf(err); !ok || refusals[0].Code != "archive-too-large" {
		t.Errorf("larger than the limit: %v", err)
	}
}

func TestArchivesAtTheLimitsAreAccepted(t *testing.T) {
	for name, tt := range map[string]struct {
		src    []byte
		limits skill.Limits
	}{
		"512 entries":        {archive(t, many(512)...), skill.Limits{}},
		"16 MiB in a file":   {archive(t, skillMD, entry{name: "pdf/b", content: noise(128 << 10), change: func(h *zip.FileHeader) { h.UncompressedSize64 = 16 << 20 }}), skill.Limits{UnpackedBytes: 17 << 20}},
		"64 KiB of zeros":    {archive(t, skillMD, entry{name: "pdf/b", content: strings.Repeat("0", 64<<10)}), skill.Limits{}},
		"a path of 512":      {archive(t, skillMD, entry{name: "pdf/" + strings.Repeat(long(100)+"/", 5) + "abc"}), skill.Limits{}},
		"deep in one letter": {archive(t, skillMD, entry{name: "pdf/" + strings.Repeat("a/", 253) + "b"}), skill.Limits{}},
	} {
		if _, err := openZIP(tt.src, "pdf.zip", tt.limits); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	src := archive(t, skillMD)
	n := int64(len(doc(ok)))
	exact := skill.Limits{PackedBytes: int64(len(src)), Entries: 1, FileBytes: n, UnpackedBytes: n}
	if _, err := openZIP(src, "pdf.zip", exact); err != nil {
		t.Error(err)
	}
	for name, less := range map[string]func(*skill.Limits){
		"too-many-entries":           func(l *skill.Limits) { l.Entries = -1 },
		"file-too-large":             func(l *skill.Limits) { l.FileBytes-- },
		"archive-unpacked-too-large": func(l *skill.Limits) { l.UnpackedBytes-- },
	} {
		l := exact
		less(&l)
		_, err := openZIP(src, "pdf.zip", l)
		if refusals, ok := refusalsOf(err); !ok || refusals[0].Code != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// W3: the folder must have the name of the archive unless any is accepted. One top
// folder is stripped, a flat archive is named by its file, and files that macOS adds are
// ignored. The numbers of downloads do not count.
func TestW3ArchiveFolder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		archive string
		any     bool
		entries []entry
		folder  string // "" where refused
	}{
		{"folder", "pdf.zip", false, []entry{skillMD, {name: "pdf/a/b"}}, "pdf"},
		{"folder with its own entry", "pdf.zip", false, []entry{{name: "pdf/"}, skillMD, {name: "pdf/a/b"}, {name: "pdf/a/"}}, "pdf"},
		{"path and other ending", "/tmp/x/pdf.SKILL", false, []entry{skillMD}, "pdf"},
		{"path of another system", `C:\x\pdf.ZIP`, false, []entry{skillMD}, "pdf"},
		{"other folder", "docx.zip", false, []entry{skillMD}, ""},
		{"any folder", "docx.zip", true, []entry{skillMD}, "pdf"},
		{"no name", "", false, []entry{skillMD}, "pdf"},
		{"folder in another composition", "café.zip", false, []entry{{name: "cafe\u0301/SKILL.md"}}, "cafe\u0301"},
		{"downloaded again", "pdf (1).zip", false, []entry{skillMD}, "pdf"},
		{"downloaded again, by other browsers", "pdf(12).zip", false, []entry{skillMD}, "pdf"},
		{"downloaded again, by another browser", "pdf 2.zip", false, []entry{skillMD}, "pdf"},
		{"downloaded from a hub", "pdf-3.zip", false, []entry{skillMD}, "pdf"},
		{"downloaded again from a hub", "pdf-3 (1).zip", false, []entry{skillMD}, "pdf"},
		{"downloaded again, with a number in the name", "pdf-3 (1).zip", false, []entry{{name: "pdf-3/SKILL.md"}}, "pdf-3"},
		{"flat, downloaded again", "pdf (1).zip", false, []entry{{name: "SKILL.md"}}, "pdf"},
		{"flat, with a number in the name", "pdf-3.zip", false, []entry{{name: "SKILL.md"}}, "pdf-3"},
		{"other folder with a number", "pdf.zip", false, []entry{{name: "pdf-3/SKILL.md"}}, ""},
		{"other folder, downloaded again", "pdf-a (1).zip", false, []entry{skillMD}, ""},
		{"nothing but a number", " (1).zip", false, []entry{skillMD}, ""},
		{"flat", "pdf.zip", false, []entry{{name: "SKILL.md"}, {name: "a/b"}, {name: "c/d"}}, "pdf"},
		{"flat, other spelling", "pdf.zip", false, []entry{{name: "skill.md"}}, "pdf"},
		{"flat with a skill inside", "pdf.zip", false, []entry{{name: "SKILL.md"}, {name: "x/SKILL.md"}}, "pdf"},
		{"what a Mac adds", "pdf.zip", false, []entry{skillMD, {name: "__MACOSX/"}, {name: "__MACOSX/pdf/._SKILL.md"}, {name: "pdf/.DS_Store"}, {name: ".DS_Store"}}, "pdf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := openZIP(archive(t, tt.entries...), tt.archive, skill.Limits{AllowFolderMismatch: tt.any})
			if (err == nil) != (tt.folder != "") {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if b.Folder != tt.folder {
				t.Errorf("folder %q, want %q", b.Folder, tt.folder)
			}
			m, ds, err := skill.ReadManifest(b)
			if err != nil || len(ds) > 0 || !skillpath.IsSkillFile(m[0].Path) {
				t.Errorf("%v %v %v", m, ds, err)
			}
			if strings.Contains(fmt.Sprint(m), "MACOSX") || strings.Contains(fmt.Sprint(m), "DS_Store") {
				t.Errorf("litter: %v", m)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadReturnsAtMostDeclaredSize(t *testing.T) {
	content := strings.Repeat("0123456789", 1000)
	for name, declared := range map[string]uint64{"less": 10, "more": 20_000} {
		src := archive(t, entry{name: "pdf/SKILL.md", content: content, change: func(h *zip.FileHeader) { h.UncompressedSize64 = declared }})
		b, err := openZIP(src, "pdf.zip", skill.Limits{})
		if err != nil {
			t.Fatal(name, err)
		}
		f, err := b.Open("SKILL.md")
		if err != nil {
			continue
		}
		got, err := io.ReadAll(f)
		if err == nil || len(got) > int(declared) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, ds, err := skill.ReadManifest(b); err == nil && len(ds) == 0 {
			t.Errorf("%s: hashed", name)
		}
	}
}

func TestWrongChecksumIsAnError(t *testing.T) {
	src := archive(t, entry{name: "pdf/SKILL.md", content: doc(ok), change: func(h *zip.FileHeader) { h.CRC32++ }})
	b, err := openZIP(src, "pdf.zip", skill.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := skill.Parse(b, b.Folder); err == nil {
		t.Error("parsed")
	}
}

// Entries that are written as a stream have their sizes behind the data, which
// is how all archives above are made; these have them before it.
func TestArchivesWithoutDataDescriptorsAreRead(t *testing.T) {
	var buf bytes.Buffer
	zw := zip.NewWriter(&buf)
	data := []byte(doc(ok))
	w, err := zw.CreateRaw(&zip.FileHeader{Name: "pdf/SKILL.md", Method: zip.Store, CRC32: crc32.ChecksumIEEE(data),
		CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data))})
	if err != nil {
		t.Fatal(err)
	}
	w.Write(data)
	zw.Close()
	b, err := openZIP(buf.Bytes(), "pdf.zip", skill.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if s, ds, err := skill.Parse(b, b.Folder); err != nil || len(ds) > 0 || s.Name != "pdf" {
		t.Errorf("%+v %v %v", s, ds, err)
	}
}

// Many entries may share the same packed bytes, which a sum of packed sizes
// does not see.
func TestOverlappingEntriesCountUnpackedSize(t *testing.T) {
	_, err := openZIP(overlapping(t), "pdf.zip", skill.Limits{})
	if refusals, ok := refusalsOf(err); !ok || refusals[0].Code != "archive-unpacked-too-large" {
		t.Error(err)
	}
}

// overlapping returns an archive in which 31 entries share their data.
func overlapping(t testing.TB) []byte {
	t.Helper()
	src := archive(t, skillMD, entry{name: "pdf/a", content: noise(1 << 20)})
	// Point 30 more entries of the central directory at the data of pdf/a.
	end := bytes.LastIndex(src, []byte("PK\x05\x06"))
	dir := bytes.LastIndex(src, []byte("PK\x01\x02"))
	record := src[dir:end]
	var more []byte
	for i := range 30 {
		r := bytes.Clone(record)
		r[46+4] = "bcdefghijklmnopqrstuvwxyz01234"[i] // the letter of the name
		more = append(more, r...)
	}
	trailer := bytes.Clone(src[end:])
	binary.LittleEndian.PutUint16(trailer[8:], 32)
	binary.LittleEndian.PutUint16(trailer[10:], 32)
	binary.LittleEndian.PutUint32(trailer[12:], binary.LittleEndian.Uint32(trailer[12:])+uint32(len(more)))
	return append(append(bytes.Clone(src[:end]), more...), trailer...)
}

// lies makes an entry say that it is smaller than it is.
func lies(h *zip.FileHeader) { h.UncompressedSize64 = 10 }

func TestReaderErrorIsReturned(t *testing.T) {
	src := archive(t, skillMD)
	r := &failing{bytes.NewReader(src), false}
	b, err := skill.OpenZIP(r, int64(len(src)), "pdf.zip", skill.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r.fails = true
	if _, _, err := skill.Parse(b, "pdf"); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

var errDisk = errors.New("disk failed")

type failing struct {
	io.ReaderAt
	fails bool
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if f.fails {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(p, off)
}

// refusalsOf returns the reasons in err if it is a [*skill.RefusedError].
func refusalsOf(err error) ([]skill.Refusal, bool) {
	refused, ok := errors.AsType[*skill.RefusedError](err)
	if !ok {
		return nil, false
	}
	return refused.Refusals, true
}
