package skill_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

// finding is an expected diagnostic.
type finding struct {
	sev          skill.Severity
	code         string
	line, column int
}

func findings(ds skill.Diagnostics) []finding {
	var out []finding
	for _, d := range ds {
		out = append(out, finding{d.Severity, d.Code, d.Line, d.Column})
	}
	return out
}

// doc is a SKILL.md of the skill "pdf" with the given frontmatter.
func doc(frontmatter string) string { return "---\n" + frontmatter + "---\n# PDF\n" }

const ok = "name: pdf\ndescription: Reads PDF files.\n"

// The rows follow the table "Malformations" in the notes on the format: how often each
// occurs, and that all are understood.
var malformations = []struct {
	name         string
	src          string
	folder       string // "pdf" where empty
	file         string // SKILL.md where empty
	want         []finding
	loads, valid bool
}{
	{name: "nothing wrong", src: doc(ok), loads: true, valid: true},
	{name: "field outside the six", src: doc(ok + "version: 1.0\nauthor: me\n"),
		want: []finding{{skill.Info, "unexpected-fields", 4, 1}}, loads: true},
	{name: "flow collection", src: doc(ok + "metadata: {a: b}\n"),
		want: []finding{{skill.Info, "yaml-flow", 4, 11}}, loads: true},
	{name: "flow list inside metadata", src: doc(ok + "metadata:\n  tags: [a, b]\n"),
		want: []finding{{skill.Info, "yaml-flow", 5, 9}, {skill.Info, "metadata-values", 5, 3}}, loads: true},
	{name: "name is not the directory", src: doc(ok), folder: "pdf-tools",
		want: []finding{{skill.Warning, "name-folder", 2, 7}}, loads: true},
	{name: "name differs from the directory in case", src: doc("name: PDF\ndescription: d\n"), folder: "pdf",
		want: []finding{{skill.Warning, "name-case", 2, 7}, {skill.Warning, "name-folder", 2, 7}}, loads: true},
	{name: "metadata values are no strings", src: doc(ok + "metadata:\n  a: 1\n  b: 2024-01-31\n  c: true\n  d:\n    e: f\n"),
		want: []finding{{skill.Info, "metadata-values", 5, 3}}, loads: true, valid: true},
	{name: "upper-case name", src: doc("name: Pdf\ndescription: d\n"), folder: "Pdf",
		want: []finding{{skill.Warning, "name-case", 2, 7}}, loads: true},
	{name: "name with a space", src: doc("name: pdf tools\ndescription: d\n"), folder: "pdf tools",
		want: []finding{{skill.Warning, "name-characters", 2, 7}}, loads: true},
	{name: "name with an underscore", src: doc("name: pdf_tools\ndescription: d\n"), folder: "pdf_tools",
		want: []finding{{skill.Warning, "name-characters", 2, 7}}, loads: true},
	{name: "name with a slash", src: doc("name: pdf/tools\ndescription: d\n"), folder: "tools",
		want: []finding{{skill.Warning, "name-characters", 2, 7}, {skill.Warning, "name-folder", 2, 7}, {skill.Warning, "name-unusable", 2, 7}}, loads: true},
	{name: "name with a dot", src: doc("name: pdf.tools\ndescription: d\n"), folder: "pdf.tools",
		want: []finding{{skill.Warning, "name-characters", 2, 7}}, loads: true},
	{name: "name with a doubled hyphen", src: doc("name: pdf--tools\ndescription: d\n"), folder: "pdf--tools",
		want: []finding{{skill.Warning, "name-hyphen-double", 2, 7}}, loads: true},
	{name: "name with a hyphen at its edge", src: doc("name: pdf-\ndescription: d\n"), folder: "pdf-",
		want: []finding{{skill.Warning, "name-hyphen-edge", 2, 7}}, loads: true},
	{name: "name that is not ASCII", src: doc("name: 文档\ndescription: d\n"), folder: "文档",
		want: []finding{{skill.Info, "name-not-portable", 2, 7}}, loads: true, valid: true},
	{name: "no frontmatter, a heading", src: "# PDF\n\nRead it.\n",
		want: []finding{{skill.Error, "frontmatter-missing", 1, 1}}},
	{name: "fields without a fence", src: "name: pdf\ndescription: d\n\n# PDF\n",
		want: []finding{{skill.Error, "frontmatter-unfenced", 1, 1}}},
	{name: "fields in a code block", src: "```yaml\n---\nname: pdf\n---\n```\n",
		want: []finding{{skill.Error, "frontmatter-code-block", 1, 1}}},
	{name: "unquoted colon", src: doc("name: pdf\ndescription: Reads PDF files: text and tables.\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 3, 14}}, loads: true},
	{name: "stray bracket", src: doc("name: pdf\ndescription: [internal] reads PDF files\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 3, 14}}, loads: true},
	{name: "stray brace", src: doc("name: pdf\ndescription: {name} reads PDF files\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 3, 14}}, loads: true},
	{name: "stray comma", src: doc("name: pdf\ndescription: , reads PDF files\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 3, 14}}, loads: true},
	{name: "stray at sign", src: doc("name: pdf\ndescription: @team reads PDF files\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 3, 14}}, loads: true},
	{name: "line without a colon", src: doc("name: pdf\ndescription: d\nlicense MIT\n"),
		want: []finding{{skill.Error, "yaml-invalid", 4, 1}}},
	{name: "C1 control character", src: doc("name: pdf\ndescription: a\u009bb\n"),
		want: []finding{{skill.Error, "control-character", 3, 15}}},
	{name: "repaired: a quoted word begins the value", src: doc("name: pdf\ndescription: \"PDF\" files and more\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 3, 14}}, loads: true},
	{name: "repaired: an unknown escape", src: doc("name: pdf\ndescription: \"Reads C:\\pdf\"\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 3, 14}}, loads: true},
	{name: "repaired: a nested value", src: doc(ok + "metadata:\n  note: see: there\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 5, 9}}, loads: true},
	{name: "repaired: a key of all plain characters", src: doc(ok + "azAZ-_09: see: there\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 4, 11}, {skill.Info, "unexpected-fields", 4, 1}}, loads: true},
	{name: "repaired: a list item", src: doc(ok + "metadata:\n  note: x\ntriggers:\n  - \"a\" or b\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 7, 5}, {skill.Info, "unexpected-fields", 6, 1}}, loads: true},
	{name: "repaired: what follows keeps its line", src: doc("name: pdf\ndescription: a: b\n  c\n\n  d\nlicense: x\nlicense: y\n"),
		want: []finding{{skill.Warning, "yaml-repaired", 3, 14}, {skill.Warning, "duplicate-key", 8, 1}}, loads: true},
	{name: "CR LF throughout", src: strings.ReplaceAll(doc(ok), "\n", "\r\n"),
		want: []finding{{skill.Info, "line-endings-crlf", 2, 1}}, loads: true, valid: true},
	{name: "CR LF and LF mixed", src: "---\nname: pdf\r\ndescription: d\n---\n# PDF\n",
		want: []finding{{skill.Warning, "line-endings-mixed", 2, 1}}, loads: true, valid: true},
	{name: "skill.md", src: doc(ok), file: "skill.md",
		want: []finding{{skill.Warning, "file-name", 0, 0}}, loads: true, valid: true},
	{name: "Skill.md", src: doc(ok), file: "Skill.md",
		want: []finding{{skill.Warning, "file-name", 0, 0}}, loads: true},
	{name: "SKILL.MD", src: doc(ok), file: "SKILL.MD",
		want: []finding{{skill.Warning, "file-name", 0, 0}}, loads: true},
	{name: "description with a comment", src: doc("name: pdf\ndescription: Fixes issue #12 and others\n"),
		want: []finding{{skill.Warning, "description-comment", 3, 14}}, loads: true, valid: true},
	{name: "description with a quoted number sign", src: doc("name: pdf\ndescription: 'Fixes issue #12 and C#'\n"), loads: true, valid: true},
	{name: "description with C#", src: doc("name: pdf\ndescription: Fixes C# and F#\n"), loads: true, valid: true},
	{name: "angle brackets in the description", src: doc("name: pdf\ndescription: Reads <file> as text.\n"),
		want: []finding{{skill.Warning, "description-angle-brackets", 3, 14}}, loads: true, valid: true},
	{name: "placeholder description", src: doc("name: pdf\ndescription: \"TODO: describe\"\n"),
		want: []finding{{skill.Warning, "description-placeholder", 3, 14}}, loads: true, valid: true},
	{name: "name missing", src: doc("description: d\n"),
		want: []finding{{skill.Warning, "name-missing", 2, 1}}, loads: true},
	{name: "metadata is a text", src: doc(ok + "metadata: '{\"a\": 1}'\n"),
		want: []finding{{skill.Warning, "metadata-not-a-map", 4, 11}}, loads: true, valid: true},
	{name: "metadata is null", src: doc(ok + "metadata:\n"),
		want: []finding{{skill.Warning, "metadata-not-a-map", 4, 10}}, loads: true, valid: true},
	{name: "empty body", src: "---\n" + ok + "---\n\n",
		want: []finding{{skill.Warning, "body-empty", 5, 1}}, loads: true, valid: true},
	{name: "description of 1025 characters", src: doc("name: pdf\ndescription: " + strings.Repeat("x", 1025) + "\n"),
		want: []finding{{skill.Warning, "description-too-long", 3, 14}}, loads: true},
	{name: "description of 1024 characters, 3072 bytes", src: doc("name: pdf\ndescription: " + strings.Repeat("文", 1024) + "\n"),
		want: []finding{{skill.Warning, "catalog-line-tokens", 2, 1}}, loads: true, valid: true},
	{name: "unclosed frontmatter", src: "---\n" + ok + "\n# PDF\n",
		want: []finding{{skill.Error, "frontmatter-unclosed", 1, 1}}},
	{name: "byte order mark", src: "\ufeff" + doc(ok),
		want: []finding{{skill.Warning, "byte-order-mark", 1, 1}}, loads: true},
	{name: "compatibility is a list", src: doc(ok + "compatibility:\n  - macOS\n  - Linux\n"),
		want: []finding{{skill.Warning, "compatibility-type", 5, 3}}, loads: true},
	{name: "description missing", src: doc("name: pdf\n"),
		want: []finding{{skill.Error, "description-missing", 2, 1}}},
	{name: "leading blank line", src: "\n \n" + doc(ok),
		want: []finding{{skill.Warning, "leading-blank-lines", 1, 1}}, loads: true},
	{name: "--- inside a value", src: doc("name: pdf\ndescription: Reads --- and writes.\n"),
		loads: true, valid: true}, // the reference sees the description "Reads"
	{name: "--- inside the first value", src: doc("name: pdf\nlicense: a --- b\ndescription: d\n"),
		want: []finding{{skill.Info, "description-missing", 1, 1}}, loads: true},
	{name: "Unicode tag characters", src: doc("name: pdf\ndescription: \"d\U000E0041\U000E0042\"\n"),
		want: []finding{{skill.Warning, "hidden-characters", 3, 14}}, loads: true, valid: true},
	{name: "not UTF-8", src: doc("name: pdf\ndescription: caf\xe9\n"),
		want: []finding{{skill.Error, "encoding-not-utf-8", 3, 17}}},
	{name: "not UTF-8 in the body", src: doc(ok) + "caf\xe9\n",
		want: []finding{{skill.Warning, "body-not-utf-8", 6, 4}}, loads: true},
	{name: "NUL byte", src: doc("name: pdf\ndescription: a\x00b\n"),
		want: []finding{{skill.Error, "nul-byte", 3, 15}}},
	{name: "NUL byte in the body", src: doc(ok) + "a\x00b\n",
		want: []finding{{skill.Warning, "body-nul-byte", 6, 2}}, loads: true, valid: true},
	{name: "UTF-16", src: "\xff\xfe-\x00-\x00-\x00\n\x00",
		want: []finding{{skill.Error, "encoding-utf-16", 1, 1}}},
	{name: "duplicate keys", src: doc(ok + "license: a\nlicense: b\n"),
		want: []finding{{skill.Warning, "duplicate-key", 5, 1}}, loads: true},
	{name: "name of 65 characters", src: doc("name: " + strings.Repeat("x", 65) + "\ndescription: d\n"), folder: strings.Repeat("x", 65),
		want: []finding{{skill.Warning, "name-too-long", 2, 7}}, loads: true},
	{name: "tab-indented", src: doc(ok + "metadata:\n\ta: b\n"),
		want: []finding{{skill.Error, "yaml-invalid", 5, 1}}},
	{name: "tab between key and value", src: doc("name: pdf\ndescription:\tReads.\n"),
		want: []finding{{skill.Info, "yaml-tab", 3, 1}}, loads: true},
}

func TestMalformationsAreLocatedAndRepaired(t *testing.T) {
	for _, tt := range malformations {
		t.Run(tt.name, func(t *testing.T) {
			folder, file := tt.folder, tt.file
			if folder == "" {
				folder = "pdf"
			}
			if file == "" {
				file = skill.FileName
			}
			s, ds := skill.ParseBytes([]byte(tt.src), file, folder)
			if diff := cmp.Diff(tt.want, findings(ds), cmp.AllowUnexported(finding{})); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s\n%v", diff, ds)
			}
			if ds.Loads() != tt.loads || ds.Valid() != tt.valid {
				t.Errorf("loads %v, valid %v; want %v, %v", ds.Loads(), ds.Valid(), tt.loads, tt.valid)
			}
			if tt.loads && (s == nil || s.Name == "" || s.Description == "") {
				t.Errorf("a skill that loads has a name and a description: %+v", s)
			}
			for _, d := range ds {
				if d.Severity != skill.Info && d.Fix == "" {
					t.Errorf("nothing tells how to mend %s", d)
				}
			}
		})
	}
}

func TestRepairChangesBrokenValueOnly(t *testing.T) {
	s, ds := skill.ParseBytes([]byte(doc("name: pdf\n"+
		"description: Reads: text\n  and tables: all\n"+
		"tags: [a, b]\nmetadata: {k: v}\nlicense: 'it''s: mine'\nnote: |\n  x: y: z\n")), skill.FileName, "pdf")
	if !ds.Loads() || !s.Repaired {
		t.Fatalf("loads %v, verbatim %v: %v", ds.Loads(), !s.Repaired, ds)
	}
	if s.Description != "Reads: text and tables: all" || s.License != "it's: mine" || s.Metadata["k"] != "v" {
		t.Errorf("got %q, %q, %v", s.Description, s.License, s.Metadata)
	}
	if diff := cmp.Diff([]string{"a", "b"}, s.Tags); diff != "" {
		t.Error(diff)
	}
}

func TestRepairDropsQuotesAroundWholeValue(t *testing.T) {
	for value, want := range map[string]string{
		`"C:\pdf is read"`: `C:\pdf is read`,
		`"PDF" and more`:   `"PDF" and more`,
		`"a" or "b"`:       `"a" or "b"`,
		`'it's: read`:      `'it's: read`,
	} {
		s, ds := skill.ParseBytes([]byte(doc("name: pdf\ndescription: "+value+"\n")), skill.FileName, "pdf")
		if !ds.Loads() || s.Description != want {
			t.Errorf("%s is read as %q, want %q: %v", value, s.Description, want, ds)
		}
	}
}

func TestBodyFollowsFenceUnchanged(t *testing.T) {
	const front = "---\nname: pdf\ndescription: d\n---"
	for _, body := range []string{
		"", "\n", "\n# A\n", "\nno line end", "\n\n\n  # A\n\n", "\n# A\r\n\r\ntext\r\n", "\r\n# A\r\n", " \t\n# A\n",
		"\n# A\n---\nnot: frontmatter\n---\nmore\n", "\n---\n", "\n---\n---\n", "\na\x00b\xff\n", "\n\ufeff# A\n",
	} {
		src := front + body
		want := body
		if i := strings.IndexByte(body, '\n'); i >= 0 {
			want = body[i+1:] // after the line of the fence
		} else {
			want = ""
		}
		s, _ := skill.ParseBytes([]byte(src), skill.FileName, "pdf")
		if s == nil || s.Instructions != want {
			t.Errorf("%q: body %q, want %q", src, s.Instructions, want)
		}
		if string(s.Frontmatter) != "name: pdf\ndescription: d\n" {
			t.Errorf("%q: frontmatter %q", src, s.Frontmatter)
		}
	}
}

func TestParseFindsFileInAnyCase(t *testing.T) {
	file := &fstest.MapFile{Data: []byte(doc(ok))}
	for _, tt := range []struct {
		files    []string
		warnings int
	}{
		{[]string{"SKILL.md", "skill.md"}, 0},
		{[]string{"skill.md"}, 1},
		{[]string{"Skill.md", "skill.md"}, 1},
		{[]string{"SKILL.MD"}, 1},
	} {
		fsys := fstest.MapFS{}
		for _, f := range tt.files {
			fsys[f] = file
		}
		s, ds, err := skill.Parse(fsys, "pdf")
		if err != nil || s == nil || len(ds) != tt.warnings {
			t.Errorf("%v: %v, %v", tt.files, ds, err)
		}
	}
	_, ds, err := skill.Parse(fstest.MapFS{"Skill.md": file, "skill.md": file}, "pdf")
	if err != nil || !ds.Valid() {
		t.Errorf("of two spellings the one that the reference knows is read: %v, %v", ds, err)
	}
}

func TestParseReturnsErrorForMissingFile(t *testing.T) {
	for _, fsys := range []fs.FS{
		fstest.MapFS{"README.md": {}}, fstest.MapFS{}, fstest.MapFS{"skill.md/x": {}},
	} {
		if _, _, err := skill.Parse(fsys, "x"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: error %v, want one that wraps fs.ErrNotExist", fsys, err)
		}
	}
	if _, _, err := skill.Parse(fstest.MapFS{"SKILL.md": {Mode: fs.ModeNamedPipe}}, "x"); err == nil {
		t.Error("a pipe is not opened")
	}
	if _, _, err := skill.Parse(fstest.MapFS{"SKILL.md/x": {}}, "x"); err == nil {
		t.Error("a directory is not a file")
	}
}

func TestVerdictsWithoutDiagnostics(t *testing.T) {
	var ds skill.Diagnostics
	if !ds.Loads() || !ds.Valid() || ds.Problems() != nil {
		t.Error("nothing found means valid and usable")
	}
	ds = skill.Diagnostics{{Severity: skill.Info, Rule: 8}, {Severity: skill.Warning}, {Severity: skill.Error}}
	if ds.Loads() || ds.Valid() || len(ds.Problems()) != 2 {
		t.Error("the verdicts are independent of each other")
	}
	if got := (skill.Diagnostic{Severity: skill.Error, Code: "c", Line: 3, Message: "m"}).String(); got != "3:1: error: m [c]" {
		t.Error(got)
	}
}
