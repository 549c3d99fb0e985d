package hubclient

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/skill"
)

// Change describes the result of applying a document.
type Change struct {
	File      string             `json:"file"`
	Line      int                `json:"line"`
	Kind      string             `json:"kind"`
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Outcome   string             `json:"outcome"`
	Diff      []Field            `json:"diff"`
	Findings  []skill.Diagnostic `json:"findings"`
}

// Field describes one changed field of a resource.
type Field struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// Documents holds the content of several files, joined into one text.
type Documents struct {
	Text   []byte
	Kind   string   // media type
	files  []string // display names
	begins []int    // for each file, the number of lines that precede it in the text
}

// ReadDocuments reads and joins files. Several files become one YAML stream, in
// which JSON documents are valid too.
func ReadDocuments(files []string, stdin io.Reader) (*Documents, error) {
	out := &Documents{Kind: "application/yaml"}
	var b strings.Builder
	line, twice := 0, false
	for i, name := range files {
		if name == "-" && twice {
			return nil, exit.Errorf(exit.Usage, "use -f - only once", "standard input given twice")
		}
		twice = twice || name == "-"
		data, err := readDocument(name, stdin)
		if err != nil {
			return nil, err
		}
		text := strings.TrimPrefix(string(data), "\ufeff")
		if len(files) == 1 && strings.HasSuffix(strings.ToLower(name), ".json") {
			out.Kind = "application/json"
		}
		if i > 0 { // separate it from the previous document
			between := "\n...\n---\n"
			if strings.HasPrefix(text, "%") { // a directive must come before the document start
				between = "\n...\n"
			}
			b.WriteString(between)
			line += strings.Count(between, "\n")
		}
		if name == "-" {
			name = "standard input"
		}
		out.files, out.begins = append(out.files, name), append(out.begins, line)
		b.WriteString(text)
		line += strings.Count(text, "\n")
	}
	out.Text = []byte(b.String())
	return out, nil
}

// readDocument reads one file, or stdin if name is "-".
func readDocument(name string, stdin io.Reader) ([]byte, error) {
	const most = 1 << 20 // limit of the hub, in bytes
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			code, hint := exit.FileHint(err, "the path given with -f")
			return nil, exit.Errorf(code, hint, "%s: %w", name, fileerror.Cause(err))
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "name a file, not a directory", "read %s: %w", name, fileerror.Cause(err))
	}
	if len(data) > most {
		return nil, exit.Errorf(exit.Failure, "split it into several files", "%s is larger than %s", name, console.FormatSize(most))
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		if name == "-" {
			return nil, exit.Errorf(exit.Failure, "see: loadout apply --help", "standard input has no documents")
		}
		return nil, exit.Errorf(exit.Failure, "see: loadout apply --help", "%s has no documents", name)
	}
	return data, nil
}

// Locate sets the change's file and makes its line numbers relative to that
// file.
func (d *Documents) Locate(c *Change) {
	at := 0
	for i, before := range d.begins {
		if c.Line > before {
			at = i
		}
	}
	c.File, c.Line = d.files[at], max(c.Line-d.begins[at], 0)
	for i := range c.Findings {
		if f := &c.Findings[i]; f.Line > d.begins[at] {
			f.Line -= d.begins[at]
		}
	}
	if c.Diff == nil {
		c.Diff = []Field{}
	}
	if c.Findings == nil {
		c.Findings = []skill.Diagnostic{}
	}
}

// Title identifies the changed resource. If its name is unknown, Title includes
// the file and line.
func (c Change) Title() string {
	parts := []string{c.Kind, c.Namespace, c.Name}
	if c.Namespace == "" {
		parts = []string{c.Kind, c.Name}
	}
	if c.Name == "" {
		return strings.TrimSpace(fmt.Sprintf("%s (%s:%d)", c.Kind, c.File, max(c.Line, 1)))
	}
	return strings.Join(parts, "/")
}
