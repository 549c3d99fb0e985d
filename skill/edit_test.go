package skill_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// mended applies edits until none is offered, and returns the codes that each one
// resolved.
func mended(t testing.TB, src, folder string) (string, []string) {
	t.Helper()
	var done []string
	for range 30 {
		_, ds := skill.ParseBytes([]byte(src), "SKILL.md", folder)
		var e *skill.Edit
		for _, d := range ds {
			if e = d.SuggestEdit([]byte(src), folder); e != nil {
				done = append(done, d.Code)
				break
			}
		}
		if e == nil {
			return src, done
		}
		src = applied(t, src, e)
	}
	t.Fatalf("no end of edits: %q; %q", done, src)
	return "", nil
}

// applied applies an edit like an editor.
func applied(t testing.TB, src string, e *skill.Edit) string {
	t.Helper()
	at := func(line, column int) int {
		lines := strings.SplitAfter(src, "\n")
		if line < 1 || line > len(lines) {
			t.Fatalf("%+v: no line %d in %q", e, line, src)
		}
		row := []rune(lines[line-1])
		if column < 1 || column > len(row)+1 {
			t.Fatalf("%+v: no column %d in %q", e, column, lines[line-1])
		}
		return len(strings.Join(lines[:line-1], "")) + len(string(row[:column-1]))
	}
	from, to := at(e.StartLine, e.StartColumn), at(e.EndLine, e.EndColumn)
	if from > to {
		t.Fatalf("%+v ends before it begins in %q", e, src)
	}
	return src[:from] + e.Text + src[to:]
}

func TestMend(t *testing.T) {
	const body = "---\nDo it.\n"
	long := strings.Repeat("Reads tide tables of a port. ", 45)
	for _, tt := range []struct {
		code, folder, src, want string
	}{
		{"name-missing", "tides", "---\ndescription: d\n" + body, "---\nname: tides\ndescription: d\n" + body},
		{"name-missing", "", "---\ndescription: d\n---\n# Tide tables\n", "---\nname: tide-tables\ndescription: d\n---\n# Tide tables\n"},
		{"name-empty", "tides", "---\nname:\ndescription: d\n" + body, "---\nname: tides\ndescription: d\n" + body},
		{"name-case", "", "---\nname: Tide\ndescription: d\n" + body, "---\nname: tide\ndescription: d\n" + body},
		{"name-characters", "", "---\nname: tide tables\ndescription: d\n" + body, "---\nname: tide-tables\ndescription: d\n" + body},
		{"name-hyphen-double", "", "---\nname: tide--tables\ndescription: d\n" + body, "---\nname: tide-tables\ndescription: d\n" + body},
		{"name-hyphen-edge", "", "---\nname: tide-\ndescription: d\n" + body, "---\nname: tide\ndescription: d\n" + body},
		{"name-not-portable", "", "---\nname: marées\ndescription: d\n" + body, "---\nname: marees\ndescription: d\n" + body},
		{"name-folder", "tides", "---\nname: other\ndescription: d\n" + body, "---\nname: tides\ndescription: d\n" + body},
		{"name-too-long", "", "---\nname: " + strings.Repeat("a", 70) + "\ndescription: d\n" + body, "---\nname: " + strings.Repeat("a", 63) + "\ndescription: d\n" + body},
		{"yaml-repaired", "", "---\nname: a\ndescription: Use when: the tide\n  turns\n" + body, "---\nname: a\ndescription: 'Use when: the tide turns'\n" + body},
		{"yaml-repaired", "", "---\nname: a\ndescription: \"Reads\n" + body, "---\nname: a\ndescription: '\"Reads'\n" + body},
		{"yaml-invalid", "", "---\nname: a\ndescription: d\nmetadata:\n\tx: y\n" + body, "---\nname: a\ndescription: d\nmetadata:\n  x: y\n" + body},
		{"yaml-tab", "", "---\nname: a\ndescription:\td\n" + body, "---\nname: a\ndescription:  d\n" + body},
		{"yaml-flow", "", "---\nname: a\ndescription: d\nmetadata: {a: b, c: 'd'}\n" + body, "---\nname: a\ndescription: d\nmetadata:\n  a: b\n  c: d\n" + body},
		{"duplicate-key", "", "---\nname: a\ndescription: d\ndescription: e\n" + body, "---\nname: a\ndescription: e\n" + body},
		{"metadata-values", "", "---\nname: a\ndescription: d\nmetadata:\n  version: 1.10\n  x: y # z\n" + body, "---\nname: a\ndescription: d\nmetadata:\n  version: \"1.10\"\n  x: y # z\n" + body},
		{"unexpected-fields", "", "---\nname: a\ntags:\n- x\n- y\ndescription: d\nauthor: ada\n" + body, "---\nname: a\ndescription: d\nmetadata:\n  tags:\n  - x\n  - y\n  author: ada\n" + body},
		{"unexpected-fields", "", "---\nname: a\ndescription: d\nmetadata:\n    x: y\nauthor: ada\n" + body, "---\nname: a\ndescription: d\nmetadata:\n    x: y\n    author: ada\n" + body},
		{"unexpected-fields", "", "---\nname: a\ndescription: d\nmetadata:\n  author: bob\nauthor: ada\n" + body, ""},
		{"tools-field", "", "---\nname: a\ndescription: d\ntools: Read Grep\n" + body, "---\nname: a\ndescription: d\nallowed-tools: Read Grep\n" + body},
		{"allowed-tools-commas", "", "---\nname: a\ndescription: d\nallowed-tools: Read, Grep\n" + body, "---\nname: a\ndescription: d\nallowed-tools: Read Grep\n" + body},
		{"allowed-tools-list", "", "---\nname: a\nallowed-tools:\n  - Read\n  - Grep\ndescription: d\n" + body, "---\nname: a\nallowed-tools: Read Grep\ndescription: d\n" + body},
		{"description-list", "", "---\nname: a\ndescription:\n  - One\n  - two\n" + body, "---\nname: a\ndescription: One, two\n" + body},
		{"description-angle-brackets", "", "---\nname: a\ndescription: Reads <file> now\n" + body, "---\nname: a\ndescription: Reads file now\n" + body},
		{"description-too-long", "", "---\nname: a\ndescription: " + long + "\n" + body, "---\nname: a\ndescription: " + strings.TrimSpace(strings.Repeat("Reads tide tables of a port. ", 35)) + "\n---\n\n" + strings.TrimSpace(strings.Repeat("Reads tide tables of a port. ", 10)) + "\nDo it.\n"},
		{"hidden-characters", "", "---\nname: a\ndescription: Re\u200bads\n" + body, "---\nname: a\ndescription: Reads\n" + body},
		{"compatibility-type", "", "---\nname: a\ndescription: d\ncompatibility: <<\n" + body, "---\nname: a\ndescription: d\ncompatibility: \"<<\"\n" + body},
		{"byte-order-mark", "", "\ufeff---\nname: a\ndescription: d\n" + body, "---\nname: a\ndescription: d\n" + body},
		{"leading-blank-lines", "", "\n \n---\nname: a\ndescription: d\n" + body, "---\nname: a\ndescription: d\n" + body},
		{"line-endings-crlf", "", "---\r\nname: a\r\ndescription: d\r\n---\r\nDo it.\r\n", "---\nname: a\ndescription: d\n" + body},
		{"control-character", "", "---\nname: a\ndescription: d\x01e\x02f\n" + body, "---\nname: a\ndescription: def\n" + body},
		{"file-empty", "tides", "\n", "---\nname: tides\ndescription: \"\"\n---\n\n"},
		{"frontmatter-missing", "", "# Tide tables\n\nRead them.", "---\nname: tide-tables\ndescription: \"\"\n---\n\n# Tide tables\n\nRead them."},
		{"frontmatter-code-block", "", "```yaml\nname: a\ndescription: d\n```\nDo it.\n", "---\nname: a\ndescription: d\n" + body},
		{"frontmatter-unfenced", "", "name: a\ndescription: d\n\nDo it.\n", "---\nname: a\ndescription: d\n---\n\nDo it.\n"},
		{"frontmatter-unfenced", "", "name: a\ndescription: d\n---\nDo it.\n", "---\nname: a\ndescription: d\n" + body},
		{"frontmatter-fence", "", "----\nname: a\ndescription: d\n" + body, "---\nname: a\ndescription: d\n" + body},
		{"frontmatter-unclosed", "", "---\nname: a\ndescription: d\n\nDo it.\n", "---\nname: a\ndescription: d\n---\n\nDo it.\n"},
		{"body-nul-byte", "", "---\nname: a\ndescription: d\n---\nDo\x00 it.\n", "---\nname: a\ndescription: d\n" + body},
		{"description-missing", "", "---\nname: a\n" + body, ""},
		{"description-empty", "", "---\nname: a\ndescription:\n" + body, ""},
		{"body-empty", "", "---\nname: a\ndescription: d\n---\n", ""},
	} {
		_, ds := skill.ParseBytes([]byte(tt.src), "SKILL.md", tt.folder)
		found := false
		for _, d := range ds {
			if d.Code != tt.code {
				continue
			}
			found = true
			e := d.SuggestEdit([]byte(tt.src), tt.folder)
			switch {
			case e == nil && tt.want != "":
				t.Errorf("%s: no edit for %q", tt.code, tt.src)
			case e != nil && tt.want == "":
				t.Errorf("%s: %q becomes %q", tt.code, tt.src, applied(t, tt.src, e))
			case e != nil:
				if got := applied(t, tt.src, e); got != tt.want {
					t.Errorf("%s: %q\nbecomes %q\nwant    %q", tt.code, tt.src, got, tt.want)
				}
			}
		}
		if !found {
			t.Errorf("%s is not found in %q: %v", tt.code, tt.src, ds)
		}
	}
}

// One click after another makes a messy file a valid one.
func TestMendToEnd(t *testing.T) {
	src := "\ufeff\n---\r\nName: x\r\nname: Tide Tables\r\ndescription: Reads <tables>: all of them\r\ntags: [sea, \"time\"]\r\nversion: 1.10\r\nallowed-tools: Read, Grep\r\n---\r\n# Tides\r\nRead.\r\n"
	got, done := mended(t, src, "tide-tables")
	_, ds := skill.ParseBytes([]byte(got), "SKILL.md", "tide-tables")
	if !ds.Valid() || !ds.Loads() {
		t.Errorf("%q\nafter %q: %v", got, done, ds)
	}
}

// Whoever writes a SKILL.md against this waits no longer than he would for reading it a
// few times.
func TestMendLimits(t *testing.T) {
	fill := func(line string, n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.ReplaceAll(line, "#", strconv.Itoa(i)))
		}
		return b.String()
	}
	for what, front := range map[string]string{
		"flow":    fill("k#: [a, {b: c}]\n", 60<<10),
		"twice":   fill("k: v\n", 60<<10),
		"broken":  fill("k#: a: b\n", 60<<10),
		"deep":    "k: " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\n",
		"numbers": "metadata:\n" + fill("  k#: 1\n", 60<<10),
		"long":    "description: " + fill("a ", 60<<10) + "\n",
		"aliases": "a: &a [x]\n" + fill("k#: [*a, *a]\n", 50<<10),
		"tabs":    fill("k#:\tv\n", 60<<10),
	} {
		src := []byte("---\nname: Tides\n" + front + "---\n" + fill("Do # things.\n", 500<<10))
		// Not by the clock alone: machines are slow, and so is the race detector. A machine
		// may also pause, so the best of some tries counts.
		slow := ""
		for try := 0; try == 0 || slow != "" && try < 5; try++ {
			start := time.Now()
			_, ds := skill.ParseBytes(src, "SKILL.md", "other")
			parsed := time.Since(start)
			for _, d := range ds[:min(len(ds), 50)] {
				d.SuggestEdit(src, "other")
			}
			elapsed := time.Since(start)
			figures := fmt.Sprintf("%s: %d diagnostics took %s, and reading it %s", what, len(ds), elapsed, parsed)
			t.Log(figures)
			if slow = ""; elapsed > time.Duration(50*(len(ds)+1))*max(parsed, 2*time.Millisecond) {
				slow = figures
			}
		}
		if slow != "" {
			t.Error(slow)
		}
	}
}

func FuzzMend(f *testing.F) {
	f.Add("---\nname: Tide Tables\ndescription: a: b\ntags: [x, y]\n---\nDo it.", "tides")
	f.Add("name: a\ndescription: <d>\n", "")
	f.Add("---\n\"---0", "a") // no closing fence, and a syntax error
	f.Add("---\nname: a\r\ndescription:\n - d\n - \"e\n---", "a")
	f.Fuzz(func(t *testing.T, src, folder string) {
		_, ds := skill.ParseBytes([]byte(src), "SKILL.md", folder)
		for _, d := range ds[:min(len(ds), 20)] {
			e := d.SuggestEdit([]byte(src), folder)
			if e == nil {
				continue
			}
			after := applied(t, src, e)
			if strings.HasPrefix(d.Code, "body-") {
				continue
			}
			_, left := skill.ParseBytes([]byte(after), "SKILL.md", folder)
			if ds.Loads() && !left.Loads() {
				t.Errorf("%s: %q becomes %q, which does not load: %v", d.Code, src, after, left)
			}
		}
	})
}
