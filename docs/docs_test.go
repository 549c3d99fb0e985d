// Package docs_test compares the documentation with the program: links resolve, pages
// show what commands print, and tables match the code. Run "go test ./docs -update" to
// update outputs in console blocks, and read the difference.
package docs_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/requestedbounds"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/internal/testprogram"
	"github.com/loadout-dev/loadout/skill"
)

var update = flag.Bool("update", false, "rewrite outputs in console blocks that are not what the command prints")

// built is the path of the command.
var built string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "loadout-docs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = filepath.Join(dir, "loadout")
	if runtime.GOOS == "windows" {
		built += ".exe"
	}
	if err := testprogram.Loadout.Install(built); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// page is a Markdown file by its path from the root of the repository.
type page struct {
	path   string
	lines  []string
	blocks []block
}

// block is a fenced block, or a comment of the form <!-- word: rest --> that
// tells the tests what to do; a comment of several lines has the others as
// its text.
type block struct {
	info  string // "console", or of a comment its first line
	text  []string
	first int // index of the first line of text in the page
}

func readPage(t *testing.T, path string) *page {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{path: path, lines: strings.Split(string(b), "\n")}
	for i := 0; i < len(p.lines); i++ {
		line := strings.TrimSpace(p.lines[i])
		end := ""
		switch {
		case strings.HasPrefix(line, "```"):
			end = line[:len(line)-len(strings.TrimLeft(line, "`"))]
		case strings.HasPrefix(line, "<!--") && strings.HasSuffix(line, "-->"):
			info := strings.TrimSuffix(strings.TrimPrefix(line, "<!--"), "-->")
			p.blocks = append(p.blocks, block{info: "<" + strings.TrimSpace(info), first: i + 1})
			continue
		case strings.HasPrefix(line, "<!--"):
			end, line = "-->", "<"+strings.TrimSpace(strings.TrimPrefix(line, "<!--"))
		default:
			continue
		}
		j := i + 1
		for j < len(p.lines) && strings.TrimSpace(p.lines[j]) != end {
			j++
		}
		if j == len(p.lines) {
			t.Fatalf("%s:%d: the block has no end", path, i+1)
		}
		p.blocks = append(p.blocks, block{info: strings.TrimLeft(line, "`"), text: p.lines[i+1 : j], first: i + 1})
		i = j
	}
	return p
}

// prose returns the lines with the content of blocks removed.
func (p *page) prose() []string {
	out := slices.Clone(p.lines)
	for _, b := range p.blocks {
		for i := range b.text {
			out[b.first+i] = ""
		}
	}
	return out
}

func (p *page) at(line int) string { return fmt.Sprintf("%s:%d", p.path, line+1) }

// pages reads all Markdown documents of the repository, without test data and templates.
func pages(t *testing.T) []*page {
	t.Helper()
	var out []*page
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && name != ".."):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md") && !strings.HasSuffix(name, ".template.md"):
			rel, err := filepath.Rel("..", path)
			if err != nil {
				return err
			}
			out = append(out, readPage(t, filepath.ToSlash(rel)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every relative link leads to a file, and its anchor to a heading of it.
func TestLinksResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	anchors := map[string][]string{}
	all := pages(t)
	for _, p := range all {
		anchors[p.path] = headings(p)
	}
	for _, p := range all {
		for i, line := range p.prose() {
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				target, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(target, ":") {
					continue // another scheme
				}
				file := p.path
				if target != "" {
					file = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), target))
				}
				if _, err := os.Stat(filepath.Join("..", file)); err != nil {
					t.Errorf("%s: %s leads nowhere", p.at(i), m[1])
				} else if anchor != "" && !slices.Contains(anchors[file], anchor) {
					t.Errorf("%s: %s has no heading #%s; it has %s", p.at(i), file, anchor, strings.Join(anchors[file], ", "))
				}
			}
		}
	}
}

// code is a span of code in a line.
var code = regexp.MustCompile("`[^`]+`")

// headings are the anchors that a page has, as GitHub makes them.
func headings(p *page) []string {
	var out []string
	drop := regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
	for _, line := range p.prose() {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		anchor := strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		n := 0
		for _, a := range out {
			if a == anchor || strings.HasPrefix(a, anchor+"-") {
				n++
			}
		}
		if n > 0 && slices.Contains(out, anchor) {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		out = append(out, anchor)
	}
	return out
}

// Every page below docs is reached from the index.
func TestIndexNamesEveryPage(t *testing.T) {
	index := strings.Join(readPage(t, "docs/README.md").lines, "\n")
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f != "README.md" && !strings.Contains(index, "]("+f+")") {
			t.Errorf("docs/README.md does not link to %s", f)
		}
	}
}

// Documents name only existing commands and flags.
func TestCommandsExist(t *testing.T) {
	known := commands(t)
	for _, p := range pages(t) {
		for i, line := range p.prose() {
			for _, span := range code.FindAllString(line, -1) {
				checkCommand(t, known, p.at(i), strings.Trim(span, "`"))
			}
		}
		for _, b := range p.blocks {
			for i, line := range b.text {
				line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
				if b.info != "text" {
					checkCommand(t, known, p.at(b.first+i), line)
				}
			}
		}
	}
}

// commands are the flags that each command has, by the words of the command.
func commands(t *testing.T) map[string][]string {
	t.Helper()
	flagName := regexp.MustCompile(`(?m)^ +(?:(-\w), +|    )?(--[\w-]+)`)
	commandName := regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)
	out := map[string][]string{}
	var visit func(words ...string)
	visit = func(words ...string) {
		help, err := exec.Command(built, append(words, "--help")...).Output()
		if err != nil {
			t.Fatalf("loadout %s --help: %v", strings.Join(words, " "), err)
		}
		text := string(help)
		if !strings.Contains(text, strings.Join(append([]string{"  loadout"}, words...), " ")) {
			return // not a command: its words are arguments of the one before
		}
		flags := []string{"--help"}
		for _, m := range flagName.FindAllStringSubmatch(text, -1) {
			flags = append(flags, m[1], m[2])
		}
		out[strings.Join(words, " ")] = flags
		for section := range strings.SplitSeq(text, "\n\n") {
			title, list, _ := strings.Cut(section, "\n")
			if !strings.HasSuffix(title, ":") || slices.Contains([]string{"Usage:", "Aliases:", "Examples:", "Flags:", "Global Flags:"}, title) {
				continue // not a list of commands, which has the title of its group
			}
			for _, m := range commandName.FindAllStringSubmatch(list, -1) {
				visit(append(slices.Clone(words), m[1])...)
			}
		}
	}
	visit()
	return out
}

// checkCommand checks a line of code that begins with the command, up to the
// end of the command in the shell.
func checkCommand(t *testing.T, known map[string][]string, at, line string) {
	words := strings.Fields(regexp.MustCompile(`[|;&#<>)]`).Split(line, 2)[0])
	if len(words) < 2 || words[0] != "loadout" {
		return
	}
	name := ""
	for _, w := range words[1:] {
		if w == "--" {
			return // what follows is for another program
		}
		switch {
		case strings.HasPrefix(w, "-"):
			w, _, _ = strings.Cut(w, "=")
			if regexp.MustCompile(`^--?[a-z-]+$`).MatchString(w) && !slices.Contains(known[name], w) {
				t.Errorf("%s: loadout %s has no flag %s", at, name, w)
			}
		case known[strings.TrimSpace(name+" "+w)] != nil:
			name = strings.TrimSpace(name + " " + w)
		case name == "" && regexp.MustCompile(`^[a-z-]+$`).MatchString(w):
			t.Errorf("%s: no command loadout %s", at, w)
			return
		}
	}
}

// The example in the documentation is the one the command prints.
func TestConfigurationExample(t *testing.T) {
	p := readPage(t, "docs/configuration.md")
	found := false
	for _, b := range p.blocks {
		if b.info != "yaml" {
			continue
		}
		text := strings.Join(b.text, "\n") + "\n"
		if strings.HasPrefix(text, "# Configuration of Loadout: every key") {
			if found = true; text != config.Example() {
				if *update {
					p.replace(t, b, strings.Split(strings.TrimSuffix(config.Example(), "\n"), "\n"))
					return
				}
				t.Errorf("%s: this is not what loadout config example prints; run: go test ./docs -update", p.at(b.first))
			}
		}
		loads(t, p.at(b.first), text)
	}
	if !found {
		t.Error("docs/configuration.md has no example with every key")
	}
}

// loads checks that a user's configuration file with this text is valid.
func loads(t *testing.T, at, text string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, config.FileName)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Input{WorkDir: dir, Home: dir, Getenv: func(string) string { return "" }, File: file})
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	for _, n := range c.Notes {
		t.Errorf("%s: %s: %s", at, n.Where, n.Message)
	}
}

// replace rewrites the page with other lines in a block.
func (p *page) replace(t *testing.T, b block, lines []string) {
	t.Helper()
	p.lines = slices.Concat(p.lines[:b.first], lines, p.lines[b.first+len(b.text):])
	if err := os.WriteFile(filepath.Join("..", p.path), []byte(strings.Join(p.lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s is updated", p.at(b.first))
}

// Every variable that the program reads is in the table of variables.
func TestVariablesAreListed(t *testing.T) {
	text := strings.Join(readPage(t, "docs/terminal.md").lines, "\n") + strings.Join(readPage(t, "docs/configuration.md").lines, "\n")
	name := regexp.MustCompile(`(?i)(?:getenv\(|env: +)"([A-Z][A-Z_]+)"`)
	for _, dir := range []string{"../cmd/loadout", "../internal/config", "../internal/clientconfig"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range name.FindAllStringSubmatch(string(src), -1) {
				if !strings.Contains(text, "`"+m[1]+"`") && !strings.Contains(text, m[1]+"\n") {
					t.Errorf("%s reads %s, which neither docs/terminal.md nor docs/configuration.md names", f, m[1])
				}
			}
		}
	}
}

// The documented files of clients match the code.
func TestClientFiles(t *testing.T) {
	text := strings.Join(readPage(t, "docs/mcp-clients.md").lines, "\n")
	env := map[string]string{"APPDATA": `%APPDATA%`}
	for _, c := range clientconfig.All() {
		if !strings.Contains(text, "loadout connect "+c.Name) {
			t.Errorf("docs/mcp-clients.md does not tell how to connect %s", c.Name)
		}
		for _, scope := range c.Scopes {
			for _, system := range []string{"linux", "darwin", "windows"} {
				place := clientconfig.Environment{OS: system, Home: "~", Dir: ".", Getenv: func(name string) string { return env[name] }}
				file, err := c.Path(place, scope)
				if err != nil {
					t.Fatal(err)
				}
				file = strings.TrimPrefix(strings.ReplaceAll(file, `\`, "/"), "./")
				if !strings.Contains(text, "`"+file+"`") {
					t.Errorf("docs/mcp-clients.md does not name %s, the file of %s for scope %s on %s", file, c.Name, scope, system)
				}
			}
		}
	}
}

// TestLimits compares the limits in docs/sandbox.md with the defaults.
func TestLimits(t *testing.T) {
	c, err := config.Load(config.Input{Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	l := prepare.DefaultLimits()
	mib := func(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
	want := map[string]string{
		"time":                            fmt.Sprintf("%d s (`sandbox.seconds`)", c.Sandbox.Seconds),
		"memory of all processes":         fmt.Sprintf("%d MiB (`sandbox.memory_mb`)", c.Sandbox.MemoryMB),
		"data written to `/work`":         fmt.Sprintf("%d MiB (`sandbox.disk_mb`)", c.Sandbox.DiskMB),
		"processes and threads":           fmt.Sprintf("%d, more for Node.js", l.Processes),
		"processors":                      fmt.Sprintf("%.0f, if control groups are available", l.Cores),
		"data written to `/tmp`":          mib(l.Tmp),
		"size of one file":                mib(l.FileSize) + ", at most the limit of `/work`",
		"files in `/work`, and in `/tmp`": fmt.Sprint(l.Inodes),
		"open files":                      fmt.Sprint(l.OpenFiles),
		"captured output, per stream":     mib(l.Output),
		"processor time":                  "the same",
	}
	found := 0
	for i, line := range readPage(t, "docs/sandbox.md").lines {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			continue
		}
		if value, ok := want[strings.TrimSpace(cells[0])]; ok {
			if found++; strings.TrimSpace(cells[1]) != value {
				t.Errorf("docs/sandbox.md:%d: the limit is %s", i+1, value)
			}
		}
	}
	if found != len(want) {
		t.Errorf("docs/sandbox.md has %d of %d limits", found, len(want))
	}
}

// TestAsks checks that Loadout understands the requests that docs/sandbox.md describes.
func TestAsks(t *testing.T) {
	p := readPage(t, "docs/sandbox.md")
	asks := 0
	for _, b := range p.blocks {
		if b.info != "yaml" || len(b.text) == 0 || b.text[0] != "metadata:" {
			continue
		}
		asks++
		s, ds, err := parsed("---\nname: x\ndescription: X.\n" + strings.Join(b.text, "\n") + "\n---\n")
		if err != nil {
			t.Fatalf("%v: %v", err, ds)
		}
		front, err := s.FrontmatterJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := requestedbounds.Parse(front); len(problems) > 0 {
			t.Errorf("%s: %v", p.at(b.first), problems)
		}
	}
	if asks == 0 {
		t.Error("docs/sandbox.md has no example of requests")
	}
	for name := range p.section("What a skill can request").rows("key", "meaning") {
		value := map[string]any{"network": "example.com", "secrets": "KEY", "workspace_write": true, "inject": []map[string]string{{"secret": "KEY", "host": "example.com"}}}[name]
		if value == nil {
			value = 2
		}
		front, err := json.Marshal(map[string]any{"sandbox": map[string]any{name: value}})
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := requestedbounds.Parse(front); len(problems) > 0 {
			t.Errorf("docs/sandbox.md: %s: %v", name, problems)
		}
	}
}

// Every SKILL.md field that the pages show can be copied into a skill that
// loadout validate accepts, and is understood.
func TestFieldExamples(t *testing.T) {
	var servers, providers int
	for _, name := range []string{"docs/authors.md", "docs/servers.md", "docs/sandbox.md"} {
		p := readPage(t, name)
		for _, b := range p.blocks {
			text := strings.Join(b.text, "\n")
			if b.info != "yaml" || !strings.HasPrefix(text, "metadata:\n") {
				continue
			}
			s, ds, err := parsed("---\nname: x\ndescription: X.\n" + text + "\n---\nText.\n")
			if err != nil || len(ds.Problems()) > 0 {
				t.Errorf("%s: %v: %v", p.at(b.first), err, ds)
				continue
			}
			if strings.Contains(text, "mcpServers:") {
				servers += len(s.MCPServers.Names)
			}
			if s.Provider != nil && len(s.Tools) == 1 && s.Config != nil {
				providers++
			}
		}
	}
	if servers != 3 || providers != 1 {
		t.Errorf("the examples have %d servers and %d providers with tools", servers, providers)
	}
}

func parsed(text string) (*skill.Skill, skill.Diagnostics, error) {
	s, ds := skill.ParseBytes([]byte(text), skill.FileName, "x")
	if s == nil || !ds.Valid() {
		return nil, ds, errors.New("it is not valid")
	}
	return s, ds, nil
}

// The table of extensions in docs/authors.md matches the code.
func TestExtensions(t *testing.T) {
	rows := readPage(t, "docs/authors.md").section("Scripts").rows("extension", "run by")
	for _, r := range script.Table() {
		row, ok := rows[r.Extension]
		if !ok {
			t.Errorf("docs/authors.md has no row for %s", r.Extension)
			continue
		}
		delete(rows, r.Extension)
		if len(r.Interpreters) > 0 && !strings.Contains(row[1], "`"+r.Interpreters[0]+"`") {
			t.Errorf("docs/authors.md: %s is run by %s", r.Extension, strings.Join(r.Interpreters, ", "))
		}
	}
	for ext := range rows {
		t.Errorf("docs/authors.md: nothing is known of %s", ext)
	}
}
