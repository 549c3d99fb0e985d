// Package evalfile reads the files with which authors evaluate a skill:
// evals/test.yaml of Loadout, and the files of other tools: evals.json and
// eval_queries.json of skill-creator, eval.yaml of dotnet/skills and Vally (both
// generations), eval.yaml with tasks and trigger_tests.yaml of waza, and query files of
// skill-reach.
//
// It converts them to cases, and counts what it does not convert, so that nothing is
// taken for measured that is not. It runs nothing. Start reading at [Read].
package evalfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/fileerror"
)

// OwnFile is the path of Loadout's own file in a skill.
const OwnFile = "evals/test.yaml"

// Limits on the files of a skill.
const (
	MaxFiles  = 200    // files read
	MaxCases  = 10_000 // cases
	MaxPrompt = 20_000 // bytes of a prompt
	maxDepth  = 4      // levels of directories searched
	maxNoted  = 50     // problems
)

// Case is a task for an agent, and whether it should load the skill for it.
type Case struct {
	ID     string `json:"id"` // as in the file, or the position in it
	File   string `json:"file"`
	Line   int    `json:"line"`
	Prompt string `json:"prompt"`
	// Trigger says whether the agent should load the skill for the prompt.
	Trigger bool `json:"trigger"`
	// Accept lists other skills that are a right answer as well.
	Accept []string `json:"accept,omitempty"`
}

// Problem is a part of a file that is invalid.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // 0 if it concerns the whole file
	Message string `json:"message"`
}

// Suite holds what the files of a skill say.
type Suite struct {
	Files []string
	Cases []Case
	// NotMeasured counts the parts of the files that are valid, but that need a model
	// or are not supported, by their kind, such as "grader file-contains".
	NotMeasured map[string]int
	Problems    []Problem
}

// Read reads the evaluation files of the skill with the given name, whose directory is
// fsys. It reads files with known names in the root, and those below evals, eval and
// tests. Invalid parts are in [Suite.Problems].
func Read(fsys fs.FS, skill string) *Suite {
	r := &reader{fsys: fsys, skill: skill, suite: &Suite{NotMeasured: map[string]int{}}, read: map[string]bool{}}
	for _, name := range r.find() {
		r.file(name)
	}
	return r.suite
}

// IsFileName reports whether a file with this name is read wherever it is in a
// directory of evaluations.
func IsFileName(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "test.yaml", "test.yml", "evals.json", "eval_queries.json", "trigger_tests.yaml", "trigger_tests.yml", "eval.yaml", "eval.yml", "eval.vally.yaml",
		"queries.json", "queries.jsonl", "queries.yaml", "queries.yml":
		return true
	}
	return strings.HasSuffix(name, ".eval.yaml") || strings.HasSuffix(name, ".eval.yml")
}

// reader reads the files of one skill.
type reader struct {
	fsys  fs.FS
	skill string
	suite *Suite
	read  map[string]bool
	name  string // of the current file
	full  bool   // there are more than MaxCases
}

// find returns the paths of the evaluation files.
func (r *reader) find() []string {
	var names []string
	if entries, err := fs.ReadDir(r.fsys, "."); err == nil {
		for _, e := range entries {
			if name := strings.ToLower(e.Name()); e.Type().IsRegular() && IsFileName(name) && name != "test.yaml" && name != "test.yml" {
				names = append(names, e.Name())
			}
		}
	}
	for _, dir := range []string{"evals", "eval", "tests"} {
		_ = fs.WalkDir(r.fsys, dir, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				if errors.Is(err, fs.ErrNotExist) {
					return fs.SkipAll // most skills have no such directory
				}
				r.problem(p, 0, "cannot be read: %v", fileerror.Cause(err))
			case d.IsDir() && strings.Count(p, "/") >= maxDepth:
				return fs.SkipDir
			case d.Type().IsRegular() && IsFileName(d.Name()):
				names = append(names, p)
			}
			return nil
		})
	}
	return names
}

// file reads a file.
func (r *reader) file(name string) {
	switch {
	case r.read[name]:
		return
	case len(r.read) == MaxFiles:
		r.problem(name, 0, "too many evaluation files (limit %d)", MaxFiles)
		r.read[name] = true
		return
	case len(r.read) > MaxFiles:
		return
	}
	r.read[name] = true
	r.suite.Files = append(r.suite.Files, name)
	for _, doc := range r.parse(name) {
		r.document(doc)
	}
}

// parse returns the documents of a file.
func (r *reader) parse(name string) []*configfile.Node {
	r.name = name
	info, err := fs.Stat(r.fsys, name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular(): // a pipe could block
		err = errors.New("not a regular file")
	case info.Size() > configfile.MaxBytes:
		err = fmt.Errorf("file too large (%d bytes, limit %d)", info.Size(), configfile.MaxBytes)
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(r.fsys, name)
	}
	if err != nil {
		r.problem(name, 0, "cannot be read: %v", fileerror.Cause(err))
		return nil
	}
	if path.Ext(name) == ".jsonl" {
		return r.parseLines(string(data))
	}
	docs, invalid := configfile.Parse(data, configfile.FormatOf(name, data))
	if invalid != nil {
		r.problem(name, invalid.Line, "%s", invalid.Message)
	}
	return docs
}

// parseLines parses a file with a JSON value on each line.
func (r *reader) parseLines(text string) []*configfile.Node {
	list := &configfile.Node{Kind: configfile.List}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.TrimSpace(line) == "" {
			continue
		}
		docs, invalid := configfile.Parse([]byte(line), configfile.JSON)
		if invalid != nil {
			r.problem(r.name, n, "%s", invalid.Message)
			continue
		}
		for _, d := range docs {
			d.Line = n
		}
		list.Items = append(list.Items, docs...)
	}
	return []*configfile.Node{list}
}

func (r *reader) problem(file string, line int, format string, args ...any) {
	if len(r.suite.Problems) < maxNoted {
		r.suite.Problems = append(r.suite.Problems, Problem{file, line, fmt.Sprintf(format, args...)})
	}
}

// add adds a case. n is the value that describes it.
func (r *reader) add(n *configfile.Node, id, prompt string, trigger bool, accept ...string) {
	prompt = strings.TrimSpace(prompt)
	switch {
	case prompt == "":
		r.problem(r.name, n.Line, "a case has no prompt")
	case len(prompt) > MaxPrompt:
		r.problem(r.name, n.Line, "prompt too long (%d bytes, limit %d)", len(prompt), MaxPrompt)
	case len(r.suite.Cases) == MaxCases:
		if !r.full {
			r.problem(r.name, n.Line, "too many cases (limit %d)", MaxCases)
		}
		r.full = true
	default:
		c := Case{ID: cmp.Or(id, strconv.Itoa(n.Line)), File: r.name, Line: n.Line, Prompt: prompt, Trigger: trigger}
		for _, name := range accept {
			if name != "" && name != r.skill && !slices.Contains(c.Accept, name) {
				c.Accept = append(c.Accept, name)
			}
		}
		r.suite.Cases = append(r.suite.Cases, c)
	}
}

// skipRest counts the fields of a map that are not in used as not measured. Items of
// lists count one by one, with their type.
func (r *reader) skipRest(n *configfile.Node, used ...string) {
	fields, _ := n.UniqueFields()
	for _, f := range fields {
		switch kind := strings.TrimSuffix(f.Key, "s"); {
		case slices.Contains(used, f.Key) || slices.Contains(descriptive, f.Key) || f.Value == nil:
		case f.Value.Kind == configfile.List:
			for _, item := range f.Value.Items {
				r.suite.NotMeasured[strings.TrimSpace(kind+" "+typeOf(item))]++
			}
		case f.Value.Kind != configfile.Null:
			r.suite.NotMeasured[f.Key]++
		}
	}
}

// descriptive lists fields that only describe a case or a file.
var descriptive = []string{"id", "name", "description", "reason", "notes", "version", "schemaVersion", "tags", "skill", "skill_name", "type", "author", "confidence", "title", "category"}

// typeOf returns the type that an assertion or grader names.
func typeOf(n *configfile.Node) string {
	for _, key := range []string{"type", "kind"} {
		if t := text(n.Get(key)); t != "" && len(t) <= 64 {
			return t
		}
	}
	return ""
}

// text returns the text of a scalar, or "".
func text(n *configfile.Node) string {
	if !n.IsScalar() {
		return ""
	}
	return n.Text
}

// texts returns the texts of a list of scalars.
func texts(n *configfile.Node) []string {
	var out []string
	if n != nil {
		for _, item := range n.Items {
			out = append(out, text(item))
		}
	}
	return out
}

// first returns the first non-empty text of the fields.
func first(n *configfile.Node, keys ...string) string {
	for _, key := range keys {
		if t := text(n.Get(key)); t != "" {
			return t
		}
	}
	return ""
}
