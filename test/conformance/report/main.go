// Command report evaluates the results of the conformance suite. It prints a
// summary line and every unexpected result.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

func main() {
	name := flag.String("name", "", "`NAME` of the run")
	scored := flag.String("scored", "", "`FILE` with the scenarios that count; default: all there are")
	expected := flag.String("expected", "", "`FILE` with what is expected not to pass")
	flag.Parse()
	r, err := newRun(*scored, *expected)
	if err == nil {
		err = r.read(flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(2)
	}
	fmt.Printf("conformance: %s: %s\n", *name, r.figures())
	for _, p := range r.problems() {
		fmt.Println("  " + cut(p, 300))
	}
	if len(r.problems()) > 0 {
		os.Exit(1)
	}
}

// check is the result of a check in the suite's format.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"` // SUCCESS, FAILURE, WARNING, SKIPPED or INFO
	Message string `json:"errorMessage"`
}

// run holds the results and expectations of a suite run.
type run struct {
	scored    []string           // scenarios that count; nil means all
	scenarios map[string][]check // by name

	// expected lists the scenarios and checks (scenario:check) that are allowed
	// to fail, warn or be skipped. skipped lists the checks that are allowed to
	// be skipped.
	expected, skipped []string
}

func newRun(scored, expected string) (*run, error) {
	r := &run{scenarios: map[string][]check{}}
	if scored != "" {
		b, err := os.ReadFile(scored)
		if err != nil {
			return nil, err
		}
		r.scored = strings.Fields(string(b))
	}
	if expected != "" {
		b, err := os.ReadFile(expected)
		if err != nil {
			return nil, err
		}
		var lists struct{ Server, Skipped []string }
		if err := yaml.Unmarshal(b, &lists); err != nil {
			return nil, fmt.Errorf("read %s: %w", expected, err)
		}
		r.expected, r.skipped = lists.Server, lists.Skipped
	}
	return r, nil
}

// resultDir matches the name of a scenario's result directory.
var resultDir = regexp.MustCompile(`^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

func (r *run) read(dir string) error {
	var files []string
	for _, depth := range []string{"*", "*/*"} { // scenarios of clients are grouped: auth/NAME
		some, err := filepath.Glob(filepath.Join(dir, depth, "checks.json"))
		if err != nil {
			return err
		}
		files = append(files, some...)
	}
	for _, file := range files {
		name, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return err
		}
		m := resultDir.FindStringSubmatch(filepath.ToSlash(name))
		if m == nil {
			return fmt.Errorf("invalid result directory name: %s", file)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var checks []check
		if err := json.Unmarshal(b, &checks); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		r.scenarios[m[1]] = checks
	}
	if len(r.scenarios) == 0 {
		return fmt.Errorf("no results in %s", dir)
	}
	return nil
}

func (r *run) counts(scenario string) bool {
	return r.scored == nil || slices.Contains(r.scored, scenario)
}

// figures formats three numbers: scenarios that passed, other scenarios that
// were expected to fail, and checks that passed in the scenarios that count.
func (r *run) figures() string {
	var passed, expected, others, otherPassed, checks int
	for name, all := range r.scenarios {
		ok := !slices.ContainsFunc(all, func(c check) bool { return r.failed(name, c) })
		if !r.counts(name) {
			others++
			if ok {
				otherPassed++
			}
			continue
		}
		switch {
		case ok:
			passed++
		case !slices.ContainsFunc(all, func(c check) bool { return r.failed(name, c) && r.expects(name, c) == "" }):
			expected++
		}
		for _, c := range all {
			if c.Status == "SUCCESS" {
				checks++
			}
		}
	}
	total := len(r.scored)
	if r.scored == nil {
		total = len(r.scenarios)
	}
	out := fmt.Sprintf("%d/%d scenarios, %d checks", passed, total, checks)
	if expected > 0 {
		out += fmt.Sprintf("; expected to fail: %d", expected)
	}
	if others > 0 {
		out += fmt.Sprintf("; not scored: %d/%d", otherPassed, others)
	}
	return out
}

// expects returns the expectation that covers a check, or "" if the check must
// pass.
func (r *run) expects(scenario string, c check) string {
	for _, e := range []string{scenario, scenario + ":" + c.ID} {
		if slices.Contains(r.expected, e) {
			return e
		}
	}
	return ""
}

// failed reports whether a check did not pass. A skipped check counts as failed
// unless r.skipped lists it.
func (r *run) failed(scenario string, c check) bool {
	switch c.Status {
	case "SUCCESS", "INFO":
		return false
	case "SKIPPED":
		return !slices.Contains(r.skipped, scenario+":"+c.ID)
	}
	return true
}

// problems returns the unexpected results: checks that did not pass, scenarios
// that did not run or checked nothing, and unused expectations.
func (r *run) problems() []string {
	var out []string
	used := map[string]bool{}
	for name, all := range r.scenarios {
		succeeded := false
		for _, c := range all {
			succeeded = succeeded || c.Status == "SUCCESS"
			if !r.failed(name, c) {
				continue
			}
			if e := r.expects(name, c); e != "" {
				used[e] = true
			} else {
				out = append(out, fmt.Sprintf("%s %s %s: %s", c.Status, name, c.ID, c.Message))
			}
		}
		if !succeeded && !used[name] {
			out = append(out, "NOTHING CHECKED "+name)
		}
	}
	for _, name := range r.scored {
		if r.scenarios[name] == nil {
			out = append(out, "NOT RUN "+name)
		}
	}
	for _, e := range r.expected {
		name, _, _ := strings.Cut(e, ":")
		if r.scenarios[name] != nil && !used[e] {
			out = append(out, "PASSES NOW, expected to fail: "+e)
		}
	}
	slices.Sort(out)
	return out
}

// cut returns s on a single line, truncated to limit characters.
func cut(s string, limit int) string {
	line := []rune(strings.Join(strings.Fields(s), " "))
	if len(line) <= limit {
		return string(line)
	}
	return string(line[:limit-1]) + "…"
}
