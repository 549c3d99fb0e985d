package loadout_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/skillfile"
)

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

func fileTree() files {
	return files{
		"pdf/SKILL.md":               skillText("pdf", "# PDF\n"),
		"pdf/references/guide.md":    "# Guide\n",
		"pdf/references/forms.md":    "# Forms\n",
		"pdf/scripts/fill.py":        "print()\n",
		"pdf/assets/logo.png":        png,
		"pdf/assets/really.jpg":      png,
		"pdf/assets/a.jpg":           "\xff\xd8\xff\x00",
		"pdf/assets/gif":             "GIF89a\x00",
		"pdf/assets/a.webp":          "RIFF\x00\x00\x00\x00WEBPVP8 ",
		"pdf/assets/a.ico":           "\x00\x00\x01\x00",
		"pdf/assets/fake.png":        "\x00\x01\x02",
		"pdf/assets/drawing.svg":     "<svg/>",
		"pdf/assets/font.ttf":        "\x00\x01\x00\x00",
		"pdf/assets/latin1.txt":      "caf\xe9",
		"pdf/assets/late.txt":        strings.Repeat("a", 9000) + "\xff",
		"pdf/empty.md":               "",
		"pdf/..notes.md":             "a name with dots\n",
		"pdf/.git/config":            "secret",
		"pdf/__pycache__/fill.pyc":   "\x00",
		"pdf/text":                   "no extension\n",
		"other/SKILL.md":             skillText("other", "# Other\n"),
		"secret.txt":                 "outside of every skill",
		"broken-names/SKILL.md":      skillText("broken-names", "x"),
		"broken-names/with space.md": "spaces\n",
	}
}

func TestReadFile(t *testing.T) {
	rt, _ := runtimeOf(t, fileTree())
	pdf := entry(t, rt, "pdf")
	for _, tt := range []struct {
		name string
		path string
		want loadout.Content
	}{
		{"text", "references/guide.md", loadout.Content{Path: "references/guide.md", Size: 8, MIME: "text/markdown", Text: "# Guide\n"}},
		{"a path that can be shortened", "./references//../references/guide.md", loadout.Content{Path: "references/guide.md", Size: 8, MIME: "text/markdown", Text: "# Guide\n"}},
		{"a path as on Windows", `references\guide.md`, loadout.Content{Path: "references/guide.md", Size: 8, MIME: "text/markdown", Text: "# Guide\n"}},
		{"a name that begins with dots", "..notes.md", loadout.Content{Path: "..notes.md", Size: 17, MIME: "text/markdown", Text: "a name with dots\n"}},
		{"an empty file", "empty.md", loadout.Content{Path: "empty.md", MIME: "text/markdown"}},
		{"text without an extension", "text", loadout.Content{Path: "text", Size: 13, MIME: "text/plain", Text: "no extension\n"}},
		{"a drawing is text", "assets/drawing.svg", loadout.Content{Path: "assets/drawing.svg", Size: 6, MIME: "image/svg+xml", Text: "<svg/>"}},
		{"an image", "assets/logo.png", loadout.Content{Path: "assets/logo.png", Size: 16, MIME: "image/png", Data: []byte(png), Binary: true}},
		{"an image of another kind than its name says", "assets/really.jpg", loadout.Content{Path: "assets/really.jpg", Size: 16, MIME: "image/png", Data: []byte(png), Binary: true}},
		{"a JPEG", "assets/a.jpg", loadout.Content{Path: "assets/a.jpg", Size: 4, MIME: "image/jpeg", Data: []byte("\xff\xd8\xff\x00"), Binary: true}},
		{"a GIF without an extension", "assets/gif", loadout.Content{Path: "assets/gif", Size: 7, MIME: "image/gif", Data: []byte("GIF89a\x00"), Binary: true}},
		{"a WebP", "assets/a.webp", loadout.Content{Path: "assets/a.webp", Size: 16, MIME: "image/webp", Data: []byte("RIFF\x00\x00\x00\x00WEBPVP8 "), Binary: true}},
		{"an icon, which models do not take", "assets/a.ico", loadout.Content{Path: "assets/a.ico", Size: 4, MIME: "image/x-icon", Binary: true}},
		{"an image by its name only", "assets/fake.png", loadout.Content{Path: "assets/fake.png", Size: 3, MIME: "image/png", Binary: true}},
		{"a font", "assets/font.ttf", loadout.Content{Path: "assets/font.ttf", Size: 4, MIME: "font/ttf", Binary: true}},
		{"text of another encoding", "assets/latin1.txt", loadout.Content{Path: "assets/latin1.txt", Size: 4, MIME: "text/plain", Binary: true}},
		{"what turns out not to be text after a while", "assets/late.txt", loadout.Content{Path: "assets/late.txt", Size: 9001, MIME: "text/plain", Binary: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := rt.ReadFile(t.Context(), pdf, tt.path, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			want.SHA256 = skillfile.Hash([]byte(fileTree()["pdf/"+want.Path]))
			if c.Path != want.Path || c.Size != want.Size || c.SHA256 != want.SHA256 || c.MIME != want.MIME ||
				c.Text != want.Text || !bytes.Equal(c.Data, want.Data) || c.Binary != want.Binary || c.Next != 0 || c.TooLarge {
				t.Errorf("got %+v, want %+v", *c, want)
			}
		})
	}
}

// K7: for any path, only a file of the skill is read.
func TestK7ReadFileStaysInsideSkill(t *testing.T) {
	rt, dir := runtimeOf(t, fileTree())
	pdf := entry(t, rt, "pdf")
	for _, tt := range []struct {
		path string
		want error
		text string // of the message
	}{
		{"../secret.txt", fs.ErrInvalid, "give a file of the skill"},
		{"references/../../secret.txt", fs.ErrInvalid, "give a file of the skill"},
		{`..\secret.txt`, fs.ErrInvalid, "give a file of the skill"},
		{`references\..\..\secret.txt`, fs.ErrInvalid, "give a file of the skill"},
		{"/etc/passwd", fs.ErrInvalid, "give a file of the skill"},
		{filepath.Join(dir, "pdf", "SKILL.md"), fs.ErrInvalid, "give a file of the skill"},
		{`C:\Windows\win.ini`, fs.ErrNotExist, "has no file"},
		{"", fs.ErrInvalid, "give a file of the skill"},
		{".", fs.ErrInvalid, "give a file of the skill"},
		{"..", fs.ErrInvalid, "give a file of the skill"},
		{"references\x00/guide.md", fs.ErrInvalid, "give a file of the skill"},
		{"references", fs.ErrInvalid, "references is a directory; its files are references/forms.md, references/guide.md"},
		{"references/", fs.ErrInvalid, "its files are references/forms.md, references/guide.md"},
		{".git/config", fs.ErrNotExist, "is not part of the skill"},
		{"__pycache__/fill.pyc", fs.ErrNotExist, "is not part of the skill"},
		{"guide.md", fs.ErrNotExist, "did you mean references/guide.md?"},
		{"reference/Guide.MD", fs.ErrNotExist, "did you mean references/guide.md?"},
		{"references/missing.md", fs.ErrNotExist, "it has ..notes.md, SKILL.md, assets/a.ico"},
		{"SKILL.md/x", nil, ""},
		{"%2e%2e/secret.txt", fs.ErrNotExist, "has no file"},
	} {
		c, err := rt.ReadFile(t.Context(), pdf, tt.path, 0, 0)
		if err == nil {
			t.Errorf("%q is read: %+v", tt.path, c)
			continue
		}
		if tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%q: error %q does not match %v", tt.path, err, tt.want)
		}
		if !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), "skill pdf") {
			t.Errorf("%q: error %q does not contain %q", tt.path, err, tt.text)
		}
	}
}

func TestReadFileFollowsSymlinksInsideSkillOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege here")
	}
	tree := fileTree()
	rt, dir := runtimeOf(t, tree)
	for name, to := range map[string]string{
		"inside.md":    "references/guide.md",
		"outside.md":   "../secret.txt",
		"absolute.md":  filepath.Join(dir, "secret.txt"),
		"dir":          "references",
		"outer":        "..",
		"nowhere.md":   "missing.md",
		"round.md":     "round.md",
		"hidden.md":    ".git/config",
		"passwd":       "/etc/passwd",
		"neighbour.md": "../other/SKILL.md",
	} {
		if err := os.Symlink(to, filepath.Join(dir, "pdf", name)); err != nil {
			t.Fatal(err)
		}
	}
	pdf := entry(t, rt, "pdf")
	for path, want := range map[string]string{"inside.md": "# Guide\n", "dir/guide.md": "# Guide\n"} {
		if c, err := rt.ReadFile(t.Context(), pdf, path, 0, 0); err != nil || c.Text != want {
			t.Errorf("%s: got %+v, %v; want %q", path, c, err, want)
		}
	}
	for path, text := range map[string]string{
		"outside.md":         "symbolic link out of the skill",
		"absolute.md":        "symbolic link out of the skill",
		"outer/secret.txt":   "symbolic link out of the skill",
		"outer/pdf/SKILL.md": "symbolic link out of the skill",
		"passwd":             "symbolic link out of the skill",
		"neighbour.md":       "symbolic link out of the skill",
		"nowhere.md":         "has no file nowhere.md",
		"round.md":           "skill pdf",
		"outer":              "skill pdf",
	} {
		c, err := rt.ReadFile(t.Context(), pdf, path, 0, 0)
		if err == nil {
			t.Errorf("%s is read: %+v", path, c)
		} else if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %q does not contain %q, or names local paths", path, err, text)
		}
	}
}

func TestReadFileOfEmptyDirectory(t *testing.T) {
	rt, dir := runtimeOf(t, fileTree())
	if err := os.Mkdir(filepath.Join(dir, "pdf", "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.ReadFile(t.Context(), entry(t, rt, "pdf"), "void", 0, 0); !errors.Is(err, fs.ErrInvalid) || !strings.HasSuffix(err.Error(), "void is a directory; it has no files") {
		t.Errorf("got %v", err)
	}
}

func TestReadFileDoesNotBlockOnPipe(t *testing.T) {
	rt, dir := runtimeOf(t, fileTree())
	if !makePipe(filepath.Join(dir, "pdf", "pipe")) {
		t.Skip("no named pipes here")
	}
	if c, err := rt.ReadFile(t.Context(), entry(t, rt, "pdf"), "pipe", 0, 0); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("got %+v, %v; want it to be refused", c, err)
	}
}

func TestReadFileReportsMissingPermission(t *testing.T) {
	rt, dir := runtimeOf(t, fileTree())
	file := filepath.Join(dir, "pdf", "references", "guide.md")
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(file); err == nil {
		f.Close()
		t.Skip("this user may read everything")
	}
	if _, err := rt.ReadFile(t.Context(), entry(t, rt, "pdf"), "references/guide.md", 0, 0); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want that permission is missing", err)
	}
}

func TestReadFileInParts(t *testing.T) {
	const text = "aé指😀b" // 1, 2, 3, 4 and 1 bytes
	rt, _ := runtimeOf(t, files{"pdf/SKILL.md": skillText("pdf", "x"), "pdf/t.txt": text, "pdf/b.bin": "\x00\x01",
		"pdf/long.txt": strings.Repeat("x", loadout.MaxReadBytes+10)})
	pdf := entry(t, rt, "pdf")
	for _, tt := range []struct {
		name          string
		offset, limit int64
		from          int64 // actual start
		text          string
		next          int64
	}{
		{"all of it", 0, 0, 0, text, 0},
		{"exactly all of it", 0, 11, 0, text, 0},
		{"one byte", 0, 1, 0, "a", 1},
		{"less than a character at the end is left for the next part", 0, 4, 0, "aé", 3},
		{"from a border", 3, 3, 3, "指", 6},
		{"from within a character is from its start", 5, 3, 3, "指", 6},
		{"a limit below one character gives one", 6, 1, 6, "😀", 10},
		{"the rest", 10, 100, 10, "b", 0},
		{"the end", 11, 10, 11, "", 0},
		{"a negative limit is none", 0, -5, 0, text, 0},
	} {
		c, err := rt.ReadFile(t.Context(), pdf, "t.txt", tt.offset, tt.limit)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if c.Text != tt.text || c.Offset != tt.from || c.Next != tt.next || c.Size != 11 {
			t.Errorf("%s: got %q at %d, next %d; want %q at %d, next %d", tt.name, c.Text, c.Offset, c.Next, tt.text, tt.from, tt.next)
		}
	}
	for _, offset := range []int64{-1, 12} {
		if _, err := rt.ReadFile(t.Context(), pdf, "t.txt", offset, 0); !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), "has 11 bytes") {
			t.Errorf("offset %d: got %v", offset, err)
		}
	}
	if _, err := rt.ReadFile(t.Context(), pdf, "b.bin", 1, 0); !errors.Is(err, loadout.ErrNotText) {
		t.Errorf("an offset into a binary file: got %v", err)
	}
	c, err := rt.ReadFile(t.Context(), pdf, "long.txt", 0, 1<<40)
	if err != nil || len(c.Text) != loadout.MaxReadBytes || c.Next != loadout.MaxReadBytes {
		t.Errorf("one part has %d bytes, next %d, %v; want %d at most", len(c.Text), c.Next, err, loadout.MaxReadBytes)
	}
}

// The concatenated parts of a file are the file, for any limit.
func TestFilePartsMakeTheFile(t *testing.T) {
	rt, dir := runtimeOf(t, files{"pdf/SKILL.md": skillText("pdf", "x")})
	pdf := entry(t, rt, "pdf")
	rapid.Check(t, func(r *rapid.T) {
		text := strings.ReplaceAll(rapid.String().Draw(r, "text"), "\x00", "")
		files{"t.txt": text}.write(t, filepath.Join(dir, "pdf"))
		got := ""
		for offset, parts := int64(0), 0; ; parts++ {
			limit := rapid.Int64Range(1, 9).Draw(r, "limit")
			c, err := rt.ReadFile(t.Context(), pdf, "t.txt", offset, limit)
			if err != nil {
				r.Fatal(err)
			}
			if !utf8.ValidString(c.Text) || c.Offset != offset {
				r.Fatalf("part %q at %d of %q, asked from %d", c.Text, c.Offset, text, offset)
			}
			got += c.Text
			if c.Next == 0 {
				break
			}
			offset = c.Next
		}
		if got != text {
			r.Fatalf("the parts give %q, the file is %q", got, text)
		}
	})
}

func TestReadFileHashesLargeFiles(t *testing.T) {
	rt, dir := runtimeOf(t, files{"pdf/SKILL.md": skillText("pdf", "x")})
	file := filepath.Join(dir, "pdf", "big.csv")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	const size = 16<<20 + 1
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := rt.ReadFile(t.Context(), entry(t, rt, "pdf"), "big.csv", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !c.TooLarge || c.Size != size || c.SHA256 != skillfile.Hash(make([]byte, size)) || c.MIME != "text/csv" || c.Text != "" || c.Data != nil {
		t.Errorf("got %+v", *c)
	}
}

func FuzzReadFileNeverLeavesTheSkill(f *testing.F) {
	for _, p := range []string{"SKILL.md", "../x", "/etc/passwd", `..\..\x`, "a/../../b", "outside", "dir/../outside", "\x00", "%2e%2e/", "."} {
		f.Add(p, int64(0), int64(0))
	}
	dir := f.TempDir()
	write := func(name, text string) {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			f.Fatal(err)
		}
	}
	inside := []string{skillText("pdf", "inside"), "inside too"}
	write("skills/pdf/SKILL.md", inside[0])
	write("skills/pdf/dir/a.md", inside[1])
	write("skills/secret", "SECRET")
	if err := os.Symlink("../secret", filepath.Join(dir, "skills/pdf/outside")); err != nil {
		f.Skip("no links here")
	}
	rt := newRuntime(f, filepath.Join(dir, "skills"))
	pdf, err := rt.Catalog().Snapshot().Get("pdf")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string, offset, limit int64) {
		c, err := rt.ReadFile(t.Context(), pdf, path, offset, limit)
		if err == nil && !slices.ContainsFunc(inside, func(s string) bool { return strings.Contains(s, c.Text) }) {
			t.Errorf("%q gives %q", path, c.Text)
		}
	})
}
