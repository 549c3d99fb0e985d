package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestConsole runs the commands of each console block and compares their output. The
// blocks of a page run in order in one home directory with one project. Comments that
// begin with "run" prepare files. Differences in blanks are ignored; "…" stands for any
// text, and on its own line for any lines.
//
// A comment "sandbox" before a block marks blocks that run scripts. They are skipped
// without a sandbox.
//
// A comment "shape: COMMANDS" before a JSON block requires that the block has exactly
// the fields that the commands print; {} stands for anything.
func TestConsole(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("paths in the outputs are those of Linux")
	}
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, "../README.md") {
		t.Run(strings.TrimSuffix(f, ".md"), func(t *testing.T) {
			t.Parallel()
			readPage(t, path.Join("docs", f)).play(t, newConsole(t))
		})
	}
}

func (p *page) play(t *testing.T, c *console) {
	blocks := slices.Clone(p.blocks)
	shift := 0
	without := false // the sandbox that this block needs
	for i, b := range blocks {
		b.first += shift
		if without && !strings.HasPrefix(b.info, "<") {
			without = false
			continue
		}
		switch {
		case b.info == "<sandbox":
			without = !hasSandbox()
		case without:
		case b.info == "console":
			if lines, same := c.session(t, p, b); !same && *update {
				p.replace(t, b, lines)
				shift += len(lines) - len(b.text)
			}
		case strings.HasPrefix(b.info, "<run"):
			// The files are prepared as if they had been there at first.
			if out, err := c.run(strings.Join(b.text, "\n") + "\nrm -f ~/.local/state/loadout/project-skills.json"); err != nil {
				t.Fatalf("%s: %v\n%s", p.at(b.first), err, out)
			}
		case strings.HasPrefix(b.info, "<shape: "):
			if i+1 == len(blocks) || blocks[i+1].info != "json" {
				t.Errorf("%s: no JSON block follows", p.at(b.first))
				continue
			}
			c.shape(t, p.at(b.first), strings.TrimPrefix(b.info, "<shape: "), strings.Join(blocks[i+1].text, "\n"))
		}
	}
}

// hasSandbox reports whether scripts can run here.
var hasSandbox = sync.OnceValue(func() bool {
	return exec.Command(built, "sandbox", "run", "--", "true").Run() == nil
})

// console is a shell with its own home directory.
type console struct{ home, dir string }

func newConsole(t *testing.T) *console {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	c := &console{home: home, dir: filepath.Join(home, "project")}
	for _, d := range []string{filepath.Join(c.dir, ".git"), filepath.Join(home, "go", "bin")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A copy could not be started while a process that was begun meanwhile has it
	// open for writing.
	if err := os.Link(built, filepath.Join(home, "go", "bin", "loadout")); err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs a shell command and returns its output, with the home directory replaced by
// ~.
func (c *console) run(script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + c.home, "PATH=" + c.home + "/go/bin:/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TERM=dumb"}
	out, err := cmd.CombinedOutput()
	return strings.ReplaceAll(string(out), c.home, "~"), err
}

// session runs the commands of a block. It returns the block as it should be
// and whether that is how it is.
func (c *console) session(t *testing.T, p *page, b block) (lines []string, same bool) {
	same = true
	for i := 0; i < len(b.text); {
		command, ok := strings.CutPrefix(b.text[i], "$ ")
		if !ok {
			t.Errorf("%s: expected a command behind $", p.at(b.first+i))
			return b.text, true
		}
		end := i + 1
		for end < len(b.text) && !strings.HasPrefix(b.text[end], "$ ") {
			end++
		}
		want := b.text[i+1 : end]
		out, err := c.run(command)
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatalf("%s: %s: %v", p.at(b.first+i), command, err)
		}
		got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if out == "" {
			got = nil
		}
		lines = append(lines, b.text[i])
		if match(want, got) {
			lines = append(lines, want...)
		} else {
			same = false
			for _, line := range got {
				lines = append(lines, short(line))
			}
			if !*update {
				t.Errorf("%s: %s prints\n\n%s\nand not\n\n%s\n", p.at(b.first+i), command, out, strings.Join(want, "\n"))
			}
		}
		i = end
	}
	return lines, same
}

// short truncates a line to the width of a page.
func short(line string) string {
	const most = 110
	if r := []rune(line); len(r) > most {
		cut := string(r[:most])
		return strings.TrimRight(cut[:strings.LastIndexByte(cut, ' ')], " ,.:;") + "…"
	}
	return line
}

// match reports whether lines match the expected ones.
func match(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case strings.TrimSpace(want[0]) == "…":
		return match(want[1:], got) || len(got) > 0 && match(want, got[1:])
	}
	return len(got) > 0 && like(want[0], got[0]) && match(want[1:], got[1:])
}

// like reports whether a text matches a pattern in which "…" stands for any text,
// ignoring blanks.
func like(want, got string) bool {
	want, got = strings.Join(strings.Fields(want), " "), strings.Join(strings.Fields(got), " ")
	if want == got {
		return true
	}
	if !strings.Contains(want, "…") {
		return false
	}
	parts := strings.Split(want, "…")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(got)
}

// shape compares the fields of a documented JSON value with the fields that commands
// print.
func (c *console) shape(t *testing.T, at, script, documented string) {
	t.Helper()
	want := fields(t, at, strings.NewReader(documented))
	out, _ := c.run("{ " + script + "; } 2>/dev/null") // which may exit with 1
	got := fields(t, at, strings.NewReader(out))
	for _, f := range slices.Sorted(maps.Keys(got)) {
		if !want[f] && !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(w string) bool {
			open, any := strings.CutSuffix(w, "{}")
			return any && strings.HasPrefix(f, open)
		}) {
			t.Errorf("%s: %s prints the field %s, which is not in the JSON below", at, script, f)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(want)) {
		if !got[f] && !strings.HasSuffix(f, "{}") {
			t.Errorf("%s: %s prints no field %s; it prints %s", at, script, f, strings.Join(slices.Sorted(maps.Keys(got)), " "))
		}
	}
}

// fields are the fields of JSON values: skills[].name, and so on. What is
// below {} is skills[].metadata{}.
func fields(t *testing.T, at string, r io.Reader) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if len(v) == 0 {
				out[path+"{}"] = true
			}
			for k, x := range v {
				at := strings.TrimPrefix(path+"."+k, ".")
				out[at] = true
				walk(at, x)
			}
		case []any:
			for _, x := range v {
				walk(path+"[]", x)
			}
		}
	}
	dec := json.NewDecoder(r)
	for {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Errorf("%s: %v", at, err)
			return out
		}
		walk("", v)
	}
}

// Programs in the documentation compile and print the text block that follows. Program
// fragments compile with ctx and rt as parameters.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("linking takes seconds")
	}
	for _, p := range pages(t) {
		for i, b := range p.blocks {
			if b.info != "go" || len(b.text) == 0 || i > 0 && strings.HasPrefix(p.blocks[i-1].info, "<example: ") {
				continue // TestProgramsAreExamples has the examples
			}
			t.Run(p.at(b.first), func(t *testing.T) {
				t.Parallel()
				src := strings.Join(b.text, "\n") + "\n"
				if b.text[0] != "package main" {
					compile(t, inFunction(t, src))
					return
				}
				bin := compile(t, src)
				if i+1 == len(p.blocks) || p.blocks[i+1].info != "text" || i > 0 && p.blocks[i-1].info == "<sandbox" && !hasSandbox() {
					return
				}
				cmd := exec.Command(bin)
				cmd.Dir = filepath.Dir(bin)
				cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				want := p.blocks[i+1].text
				if !match(want, strings.Split(string(bytes.TrimRight(out, "\n")), "\n")) {
					t.Errorf("it prints\n\n%s\nand not\n\n%s", out, strings.Join(want, "\n"))
				}
			})
		}
	}
}

// compile builds a program inside the module and returns its path.
func compile(t *testing.T, src string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "program.exe")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, file)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, src)
	}
	return bin
}

// inFunction returns a program that contains the statements and the imports they need.
func inFunction(t *testing.T, statements string) string {
	t.Helper()
	imports := ""
	for _, path := range []string{"context", "errors", "fmt", "net/http", "embed", "os", module, module + "/catalog", module + "/llm", module + "/mcpserver", module + "/session", module + "/skill"} {
		if name := path[strings.LastIndexByte(path, '/')+1:]; name == "context" || name == "loadout" || regexp.MustCompile(`\b`+name+`\.`).MatchString(statements) {
			imports += fmt.Sprintf("import %q\n", path)
		}
	}
	const head = "func part(ctx context.Context, rt *loadout.Runtime) error {\n"
	file, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+head+statements+"\nreturn nil }", 0)
	if err != nil {
		t.Fatal(err)
	}
	used := ""
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if def, ok := s.(*ast.AssignStmt); ok && def.Tok == token.DEFINE {
			for _, name := range def.Lhs {
				used += fmt.Sprintf("_ = %s\n", name.(*ast.Ident).Name)
			}
		}
	}
	return "package main\n" + imports + head + statements + used + "return nil\n}\nfunc main() {}\n"
}

const module = "github.com/loadout-dev/loadout"
