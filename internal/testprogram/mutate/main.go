// Command mutate measures how many mistakes the tests notice. It draws mutations
// of single lines at random, and runs the tests of the changed package with each:
//
//	go run ./internal/testprogram/mutate -seed 7 -n 60
//
// The tests see mutations through an overlay of the go command; the work tree stays
// as it is. One build has mutations of several packages if none of these uses
// another, and so each meets its own package's tests alone. A mutation that does not compile is replaced with another one.
// A survivor is a missing test, code that no behaviour needs, or a change without
// an effect, which a person has to tell apart.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// outcome is the outcome of a package's tests for a mutation.
type outcome int

const (
	caught outcome = iota
	timedOut
	survived
	broken  // it does not compile
	failing // the tests fail without it too
)

func (o outcome) String() string {
	return [...]string{"caught", "timeout", "survived", "broken", "failing"}[o]
}

// options are the flags of the command.
type options struct {
	seed    uint64
	count   int
	list    bool
	timeout time.Duration
	exec    string
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the draw")
	flag.IntVar(&o.count, "n", 60, "number of mutations")
	flag.BoolVar(&o.list, "list", false, "print the mutations without testing them")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "time limit for the tests of a package")
	flag.StringVar(&o.exec, "exec", isolation(), "program that runs the tests, as in go test -exec")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, o, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// isolation returns a program that hides other processes from the tests, because
// a mutation may kill the wrong one. It returns "" if the system has none.
func isolation() string {
	args := []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if exec.Command(args[0], append(args[1:], "true")...).Run() != nil {
		return ""
	}
	return strings.Join(args, " ")
}

// run draws mutations of the packages, tests them, and prints each result and the
// share of those that the tests caught.
func run(ctx context.Context, out io.Writer, o options, patterns []string) error {
	all, err := listPackages(ctx, patterns)
	if err != nil {
		return err
	}
	var files []file
	for _, p := range all {
		for _, name := range p.GoFiles {
			f, err := readFile(p, name)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
	}
	dir, err := os.MkdirTemp("", "loadout-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d, t, counts := newDraw(o.seed, files), tester{options: o, dir: dir, passes: map[string]bool{}}, map[outcome]int{}
	for left := o.count; left > 0; {
		drawn := d.take(left)
		if len(drawn) == 0 {
			return fmt.Errorf("no more mutations: %d are missing", left)
		}
		for len(drawn) > 0 {
			var together []mutation
			together, drawn = splitIndependent(drawn)
			if o.list {
				for _, m := range together {
					fmt.Fprintf(out, "%s\n%s", m.position(), m.diff())
				}
				left -= len(together)
				continue
			}
			outcomes, err := t.test(ctx, together)
			if err != nil {
				return err
			}
			for i, m := range together {
				counts[outcomes[i]]++
				switch outcomes[i] {
				case broken:
					continue
				case failing:
					fmt.Fprintf(out, "replaced: %s, because the tests fail without it too\n", m.position())
					continue
				case survived:
					fmt.Fprintf(out, "%s %s\n%s", survived, m.position(), m.diff())
				default:
					fmt.Fprintln(out, outcomes[i], m.position())
				}
				left--
			}
		}
	}
	if tested := counts[caught] + counts[timedOut] + counts[survived]; tested > 0 {
		noticed := tested - counts[survived]
		fmt.Fprintf(out, "seed %d: %d of %d caught, %d %%, %d of them by a timeout\n", o.seed, noticed, tested, noticed*100/tested, counts[timedOut])
	}
	return nil
}

// goPackage is a package as the go command lists it.
type goPackage struct {
	ImportPath, Dir                 string
	Module                          struct{ Dir string }
	GoFiles                         []string
	Deps, TestImports, XTestImports []string
	uses                            map[string]bool // the packages that its tests are built from
}

// listPackages lists the packages that patterns name, and all packages of the
// module without patterns. Packages that only tests import are left out.
func listPackages(ctx context.Context, patterns []string) ([]goPackage, error) {
	listed, err := goList(ctx, "./...")
	if err != nil {
		return nil, err
	}
	wanted := listed
	if len(patterns) > 0 {
		if wanted, err = goList(ctx, patterns...); err != nil {
			return nil, err
		}
	}
	deps := map[string][]string{}
	for _, p := range listed {
		deps[p.ImportPath] = p.Deps
	}
	var out []goPackage
	for _, p := range wanted {
		if dir, err := filepath.Rel(p.Module.Dir, p.Dir); err == nil && testOnly(filepath.ToSlash(dir)) {
			continue
		}
		p.uses = map[string]bool{}
		for _, name := range slices.Concat([]string{p.ImportPath}, p.TestImports, p.XTestImports) {
			p.uses[name] = true
			for _, dep := range deps[name] {
				p.uses[dep] = true
			}
		}
		out = append(out, p)
	}
	return out, nil
}

func goList(ctx context.Context, patterns ...string) ([]goPackage, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,Module,GoFiles,Deps,TestImports,XTestImports"}, patterns...)...)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var out []goPackage
	for in := json.NewDecoder(bytes.NewReader(data)); ; {
		var p goPackage
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		out = append(out, p)
	}
}

// testOnly reports whether only tests use the package in a directory of the module.
func testOnly(dir string) bool {
	if strings.HasPrefix(dir, "test/") || strings.HasPrefix(dir, "internal/testprogram") {
		return true
	}
	for name := range strings.SplitSeq(dir, "/") {
		if strings.HasSuffix(name, "test") {
			return true
		}
	}
	return false
}

// splitIndependent returns mutations that one build can contain, because the tests
// of no mutated package use another one, and the rest.
func splitIndependent(all []mutation) (together, rest []mutation) {
	for _, m := range all {
		if slices.ContainsFunc(together, func(o mutation) bool { return o.pkg.uses[m.pkg.ImportPath] || m.pkg.uses[o.pkg.ImportPath] }) {
			rest = append(rest, m)
		} else {
			together = append(together, m)
		}
	}
	return together, rest
}

// tester runs the tests of packages with mutations.
type tester struct {
	options
	dir    string          // for the changed files
	passes map[string]bool // whether the tests of a package pass as they are
}

// test runs the tests of the packages of independent mutations.
func (t *tester) test(ctx context.Context, all []mutation) ([]outcome, error) {
	replace, names := map[string]string{}, []string{}
	for i, m := range all {
		changed := filepath.Join(t.dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(changed, m.apply(), 0o600); err != nil {
			return nil, err
		}
		replace[m.file.path] = changed
		names = append(names, m.pkg.ImportPath)
	}
	overlay := filepath.Join(t.dir, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		return nil, err
	}
	mutated, err := t.goTest(ctx, names, "-overlay="+overlay)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, known := t.passes[name]
		return known || mutated[name] == survived || mutated[name] == broken
	})
	if len(names) > 0 {
		unchanged, err := t.goTest(ctx, names)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			t.passes[name] = unchanged[name] == survived
		}
	}
	out := make([]outcome, len(all))
	for i, m := range all {
		name := m.pkg.ImportPath
		out[i] = mutated[name]
		if passes, tried := t.passes[name]; tried && !passes && out[i] != survived && out[i] != broken {
			out[i] = failing
		}
	}
	return out, nil
}

// goTest runs the tests of packages and returns the outcome of each. The tests of a
// package end at the first failure. As a flag of the go command, failfast would end
// those of the other packages too.
func (t *tester) goTest(ctx context.Context, names []string, args ...string) (map[string]outcome, error) {
	args = append([]string{"test", "-vet=off", "-timeout=" + t.timeout.String(), "-exec=" + t.exec}, args...)
	args = append(append(args, names...), "-args", "-test.failfast")
	output, err := exec.CommandContext(ctx, "go", args...).Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	out := parseResults(string(output))
	for _, name := range names {
		if _, found := out[name]; !found {
			return nil, fmt.Errorf("go test %s: no result: %w", name, err)
		}
	}
	return out, nil
}

var resultLine = regexp.MustCompile(`^(ok  |FAIL|\?   |)\t+(\S+)(.*)$`)

// parseResults finds the results of packages in the output of go test. The output of
// a package comes before the line with its result.
func parseResults(output string) map[string]outcome {
	out, timeout := map[string]outcome{}, false
	for line := range strings.Lines(output) {
		timeout = timeout || strings.HasPrefix(line, "panic: test timed out")
		m := resultLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case m == nil:
			continue
		case m[1] != "FAIL":
			out[m[2]] = survived
		case strings.HasSuffix(m[3], "[build failed]") || strings.HasSuffix(m[3], "[setup failed]"):
			out[m[2]] = broken
		case timeout:
			out[m[2]] = timedOut
		default:
			out[m[2]] = caught
		}
		timeout = false
	}
	return out
}
