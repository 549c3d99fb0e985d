package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/operator"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/policy"
)

var update = flag.Bool("update", false, "write what commands print into the scripts")

func TestMain(m *testing.M) {
	// The race detector makes every process of a command wait for a second.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(cleanup{m}, map[string]func(){
		"loadout":           func() { runPatiently(testCaller) },
		"loadout-detecting": func() { runPatiently(nil) }, // determines who runs it, as the real program does
		"mcp-client":        runMCPClient,
	})
}

// runPatiently runs a command that has its skills from the start, on a slow machine too.
func runPatiently(caller func() presence.Caller) {
	setup.MinSkillWait = "1m"
	runAs(caller, testOperator())
}

// testCaller is the user of most tests, which have no terminal and may
// themselves be run by an agent.
func testCaller() presence.Caller { return presence.Caller{Terminal: "of a test", Assumed: true} }

// testOperator is the administrator's file of a test. A variable names its
// directory for the commands of tests only.
func testOperator() operator.File { return operator.File{Root: os.Getenv("TEST_OPERATOR")} }

// cleanup removes the built programs after all tests.
type cleanup struct{ *testing.M }

func (c cleanup) Run() int {
	defer func() {
		if builtIn != "" {
			os.RemoveAll(builtIn)
		}
	}()
	return c.M.Run()
}

// TestScript runs the scripts of testdata/script. Each has the home directory
// $WORK/home, which contains all XDG directories.
//
// The scripts can use the commands of testscript and those in commands.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Cmds:                commands,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "sandbox":
				return hasSandbox() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			if err := os.MkdirAll(home, 0o755); err != nil {
				return err
			}
			for _, v := range []string{"LOADOUT_CONFIG", "LOADOUT_CACHE", "LOADOUT_STATE", "XDG_CACHE_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"} {
				e.Setenv(v, "")
			}
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("HOME", home)
			e.Setenv("USERPROFILE", home)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			return nil
		},
	})
}

// commands adds commands to those of testscript.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits":   cmdExits,
	"json":    cmdJSON,
	"shape":   cmdShape,
	"lines":   cmdLines,
	"evilzip": cmdEvilZip,
	"many":    cmdMany,
	"raw":     cmdRaw,
	"capture": cmdCapture,
	"plain":   cmdPlain,
	"expire":  cmdExpire,
}

// cmdExpire lets the grants of a directory that expire do it right after they were given:
//
//	expire DIR
func cmdExpire(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expire DIR")
	}
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.json"))
	ts.Check(err)
	expired := 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		ts.Check(err)
		var g policy.Grant
		ts.Check(json.Unmarshal(data, &g))
		if g.Expires.IsZero() {
			continue
		}
		from, err := json.Marshal(g.Expires)
		ts.Check(err)
		to, err := json.Marshal(g.Created.Add(1))
		ts.Check(err)
		ts.Check(os.WriteFile(name, bytes.ReplaceAll(data, from, to), 0o600))
		expired++
	}
	if expired == 0 {
		ts.Fatalf("no grant of %s expires", args[0])
	}
}

// cmdExits runs a command and checks its exit code, and what holds for all
// commands:
//
//	exits CODE loadout ARGS...
//
// An error is one line and below it the next step; nothing that drives a
// terminal is printed; with --json standard output is one document, or empty
// where the command could not run.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ee, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = ee.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
	stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	for _, out := range []string{stdout, stderr} {
		if i := strings.IndexFunc(out, terminal.IsControl); i >= 0 {
			ts.Fatalf("the output has the control character %q", out[i:i+1])
		}
		if i := strings.Index(out, "goroutine "); i >= 0 {
			ts.Fatalf("the output has a stack: %s", out[i:])
		}
	}
	if slices.Contains(args, "--json") && stdout != "" {
		parseJSON(ts, stdout)
	}
	if code != exit.OK && code != exit.Interrupted && args[1] == "loadout" {
		checkHint(ts, code, stdout, stderr)
	}
}

var hint = regexp.MustCompile(`(?m)^loadout: [^\n]+\n(  [^\n]+\n)*  \S[^\n]*\n\z`)

func checkHint(ts *testscript.TestScript, code int, stdout, stderr string) {
	if code == exit.Failure && stdout != "" {
		return // it ran and reported findings
	}
	if !hint.MatchString(stderr) {
		ts.Fatalf("standard error does not end in an error and a next step")
	}
}

func parseJSON(ts *testscript.TestScript, text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("no JSON: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("more than one JSON document")
	}
	return v
}

// cmdJSON checks values in a JSON document:
//
//	json FILE PATH VALUE
//
// PATH is as skills[0].name or skills[name=pdf].path; an array has a length. VALUE is text, a
// number, true, false or null; /…/ is a regular expression.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE")
	}
	v := lookup(ts, parseJSON(ts, ts.ReadFile(args[0])), args[1])
	got := fmt.Sprint(v)
	if v == nil {
		got = "null"
	}
	same := got == args[2]
	if re, ok := strings.CutPrefix(args[2], "/"); ok {
		if re, ok = strings.CutSuffix(re, "/"); ok {
			same = regexp.MustCompile("(?s)" + re).MatchString(got)
		}
	}
	if same == neg {
		ts.Fatalf("%s is %s", args[1], got)
	}
}

func lookup(ts *testscript.TestScript, v any, path string) any {
	for _, part := range regexp.MustCompile(`\[[^\]]*\]|[^.\[\]]+`).FindAllString(path, -1) {
		part = strings.Trim(part, "[]")
		switch x := v.(type) {
		case map[string]any:
			found, ok := x[part]
			if !ok {
				ts.Fatalf("%s: there is no %s", path, part)
			}
			v = found
		case []any:
			if part == "length" {
				v = len(x)
				continue
			}
			i, err := strconv.Atoi(part)
			if key, value, ok := strings.Cut(part, "="); ok {
				i = slices.IndexFunc(x, func(item any) bool { return fmt.Sprint(item.(map[string]any)[key]) == value })
			} else if err != nil {
				i = -1
			}
			if i < 0 || i >= len(x) {
				ts.Fatalf("%s: there is no item %s of %d", path, part, len(x))
			}
			v = x[i]
		default:
			ts.Fatalf("%s: %v has no %s", path, v, part)
		}
	}
	return v
}

// cmdShape checks the fields of a JSON document against another that has the
// name of a type for each value: string, int, number, bool or any. Every item
// of an array has the shape of the first in the other. A field whose name ends
// in ? may be left out, no other may be missing, and none may be there besides.
//
//	shape FILE SHAPE
func cmdShape(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shape FILE SHAPE")
	}
	if err := shaped("", parseJSON(ts, ts.ReadFile(args[0])), parseJSON(ts, ts.ReadFile(args[1]))); err != nil {
		ts.Fatalf("%v", err)
	}
}

func shaped(at string, got, want any) error {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %v is no object", at, got)
		}
		for name, w := range want {
			name, optional := strings.CutSuffix(name, "?")
			v, ok := g[name]
			if !ok && !optional {
				return fmt.Errorf("%s: there is no field %s", at, name)
			}
			if ok {
				if err := shaped(at+"."+name, v, w); err != nil {
					return err
				}
			}
		}
		for name := range g {
			if _, ok := want[name]; !ok {
				if _, ok := want[name+"?"]; !ok {
					return fmt.Errorf("%s: there is a field %s", at, name)
				}
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok {
			return fmt.Errorf("%s: %v is no array", at, got)
		}
		for i, v := range g {
			if err := shaped(fmt.Sprintf("%s[%d]", at, i), v, want[0]); err != nil {
				return err
			}
		}
	case string:
		ok := false
		switch v := got.(type) {
		case string:
			ok = want == "string"
		case bool:
			ok = want == "bool"
		case json.Number:
			_, err := v.Int64()
			ok = want == "number" || want == "int" && err == nil
		}
		if !ok && want != "any" {
			return fmt.Errorf("%s: %v is no %s", at, got, want)
		}
	}
	return nil
}

// cmdLines checks how many lines a file has, and the width of the longest:
//
//	lines FILE COUNT [WIDTH]
//
// COUNT may be - for any.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: lines FILE COUNT [WIDTH]")
	}
	text := ts.ReadFile(args[0])
	if n := strings.Count(text, "\n"); args[1] != "-" && strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d lines, want %s", args[0], n, args[1])
	}
	if len(args) > 2 {
		most, err := strconv.Atoi(args[2])
		ts.Check(err)
		for line := range strings.Lines(text) {
			if n := terminal.Width(strings.TrimSuffix(line, "\n")); n > most {
				ts.Fatalf("%s has a line of %d columns: %s", args[0], n, line)
			}
		}
	}
}

// cmdRaw writes a file that a script cannot hold: its name and its text are in
// Go syntax.
//
//	raw FILE 'TEXT'
func cmdRaw(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: raw FILE TEXT")
	}
	for i, a := range args {
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(a, `"`, `\"`) + `"`)
		ts.Check(err)
		args[i] = text
	}
	file := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, []byte(args[1]), 0o644))
}

// cmdCapture puts what the first group of an expression matches in a file into
// a variable:
//
//	capture VARIABLE FILE EXPRESSION
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: capture VARIABLE FILE EXPRESSION")
	}
	m := regexp.MustCompile("(?m)" + args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if m == nil {
		ts.Fatalf("no match for %s in %s", args[2], args[1])
	}
	ts.Setenv(args[0], m[1])
}

// cmdMany makes a number of skills:
//
//	many DIR NUMBER
func cmdMany(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: many DIR NUMBER")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for i := range n {
		dir := filepath.Join(ts.MkAbs(args[0]), fmt.Sprintf("skill-%05d", i))
		ts.Check(os.MkdirAll(dir, 0o755))
		text := fmt.Sprintf("---\nname: skill-%05d\ndescription: Does thing number %d. Use for that.\n---\nDo it.\n", i, i)
		ts.Check(os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644))
	}
}

// cmdEvilZip writes an archive that has to be refused:
//
//	evilzip KIND FILE
func cmdEvilZip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || evilZips[args[0]] == nil {
		ts.Fatalf("usage: evilzip KIND FILE")
	}
	var b bytes.Buffer
	zw := zip.NewWriter(&b)
	add := func(name string, mode fs.FileMode, text string) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(mode)
		w, err := zw.CreateHeader(h)
		ts.Check(err)
		_, err = io.WriteString(w, text)
		ts.Check(err)
	}
	add("evil/SKILL.md", 0o644, "---\nname: evil\ndescription: Tries things. Use never.\n---\nBody\n")
	evilZips[args[0]](add)
	ts.Check(zw.Close())
	data := b.Bytes()
	switch args[0] {
	case "damaged":
		copy(data[len(data)/3:], "xxxxxxxx")
	case "cut":
		data = data[:len(data)/2]
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o644))
}

var evilZips = map[string]func(add func(name string, mode fs.FileMode, text string)){
	"escape":    func(add func(string, fs.FileMode, string)) { add("evil/../../x", 0o644, "x") },
	"absolute":  func(add func(string, fs.FileMode, string)) { add("/etc/x", 0o644, "x") },
	"backslash": func(add func(string, fs.FileMode, string)) { add(`evil\..\x`, 0o644, "x") },
	"drive":     func(add func(string, fs.FileMode, string)) { add("C:/x", 0o644, "x") },
	"link":      func(add func(string, fs.FileMode, string)) { add("evil/x", fs.ModeSymlink|0o777, "/etc/passwd") },
	"device":    func(add func(string, fs.FileMode, string)) { add("evil/x", fs.ModeDevice|0o644, "") },
	"collision": func(add func(string, fs.FileMode, string)) {
		add("evil/read.md", 0o644, "x")
		add("evil/READ.md", 0o644, "y")
	},
	"bomb":    func(add func(string, fs.FileMode, string)) { add("evil/x", 0o644, strings.Repeat("\x00", 8<<20)) },
	"escapes": func(add func(string, fs.FileMode, string)) { add("evil/\x1b[31mred\x1b]0;x\x07", 0o644, "x") },
	"many": func(add func(string, fs.FileMode, string)) {
		for i := range 600 {
			add(fmt.Sprintf("evil/f%d", i), 0o644, "")
		}
	},
	"folders": func(add func(string, fs.FileMode, string)) { add("other/SKILL.md", 0o644, "x") },
	"damaged": func(add func(string, fs.FileMode, string)) { add("evil/x", 0o644, "x") },
	"cut":     func(add func(string, fs.FileMode, string)) { add("evil/x", 0o644, "x") },
	"broken":  func(add func(string, fs.FileMode, string)) { add("evil/skill.md", 0o644, "no frontmatter") },
}
