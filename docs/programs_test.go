package docs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxProgramLines is how long a program of docs/embedding.md may be.
const maxProgramLines = 60

// The programs of docs/embedding.md are examples of packages, which run as
// tests. A comment "example: FILE" before a program names the file. The block
// behind the program has its output.
func TestProgramsAreExamples(t *testing.T) {
	const path = "docs/embedding.md"
	found := 0
	for i := 0; ; i++ {
		p := readPage(t, path) // again after each update, which moves lines
		if i+2 >= len(p.blocks) {
			break
		}
		file, ok := strings.CutPrefix(p.blocks[i].info, "<example: ")
		if !ok {
			continue
		}
		found++
		source, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		program, output := programOf(t, string(source))
		if len(program) > maxProgramLines {
			t.Errorf("%s has %d lines, limit %d", file, len(program), maxProgramLines)
		}
		for n, want := range [][]string{program, output} {
			b := p.blocks[i+1+n]
			if slices.Equal(b.text, want) {
				continue
			}
			if *update {
				p.replace(t, b, want)
				p = readPage(t, path)
				continue
			}
			t.Errorf("%s: this is not the example in %s; run: go test ./docs -update", p.at(b.first), file)
		}
	}
	if found == 0 {
		t.Errorf("%s has no programs", path)
	}
}

// The first program only loads skills, so it does not link the code that asks users
// for approval, executes templates or opens connections. It has 5.5 MB at most if it is
// stripped.
func TestProgramThatLoadsIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("linking takes seconds")
	}
	source, err := os.ReadFile("../example_load_test.go")
	if err != nil {
		t.Fatal(err)
	}
	lines, _ := programOf(t, string(source))
	program, err := os.ReadFile(compile(t, strings.Join(lines, "\n")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(program, []byte("main.main")) { // the table of functions is there
		t.Fatal("no function names in the program")
	}
	for _, function := range []string{module + ".(*Runtime).requestApproval", "text/template.(*state).evalField", "net/http.(*Client).do"} {
		if bytes.Contains(program, []byte(function)) {
			t.Errorf("the program links %s", function)
		}
	}
}

// programOf returns a file with one example as the lines of a program, and the
// lines that it prints.
func programOf(t *testing.T, source string) (program, output []string) {
	t.Helper()
	head, rest, ok := cutExample(source)
	if !ok {
		t.Fatal("the file does not end with an example with output")
	}
	body, printed, _ := strings.Cut(rest, "\t// Output:")
	head = regexp.MustCompile(`(?m)^package \w+_test$`).ReplaceAllString(head, "package main")
	src := head + "func main() {\n" + body + "}\n"
	// The sandbox of tests has another executable for its first process.
	src = strings.ReplaceAll(src, "auto.New(testSandbox())", "auto.New(nil)")
	for line := range strings.Lines(strings.TrimSuffix(printed, "}\n")) {
		if line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "//")); line != "" || len(output) > 0 {
			output = append(output, line)
		}
	}
	return strings.Split(strings.TrimSuffix(src, "\n"), "\n"), output
}

// cutExample splits off the last function of a file, which is an example. It returns the
// text before it without its comment, and its body.
func cutExample(source string) (head, body string, ok bool) {
	at := regexp.MustCompile(`(?m)^((?://.*\n)*)func Example\w*\(\) \{\n`).FindStringIndex(source)
	if at == nil {
		return "", "", false
	}
	return source[:at[0]], source[at[1]:], true
}
