//go:build linux

// Command all runs the benchmark programs, stores their results in results.json, and writes the
// tables of README.md from them:
//
//	go run ./all [-quick] [-peers] [-peer NAME=PROGRAM]… [-build] [ROW…]
//
// A ROW is a key in results.json, or the start of one. Without any, it measures all rows except
// the build from an empty cache, which takes minutes and needs -build. Rows that are not measured
// keep their earlier result with its date and commit. Run it in the directory bench.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// run holds the options and the state of one run.
type run struct {
	quick, build, install bool
	peers                 peers
	keys                  []string

	dir     string // temporary
	loadout string
	commit  string
	load    string             // load average before the run
	records map[string]samples // by key of the program
	skills  map[string]string  // generated directories by name
}

func main() {
	log.SetFlags(log.Ltime)
	r := &run{peers: peers{}, records: map[string]samples{}, skills: map[string]string{}}
	flag.BoolVar(&r.quick, "quick", false, "take few samples and store nothing, to see that each row works")
	flag.BoolVar(&r.build, "build", false, "also build the program from an empty cache")
	flag.BoolVar(&r.install, "peers", false, "install mcp-proxy from the npm registry to compare with")
	flag.Var(r.peers, "peer", "`NAME=PROGRAM` to compare with, where NAME is "+strings.Join(peerNames(), ", ")+" (repeatable)")
	readme := flag.Bool("readme", false, "measure nothing, and only write the tables of README.md")
	flag.Parse()
	r.keys, r.load = flag.Args(), measure.LoadAverage()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := readResults()
	switch {
	case err != nil:
	case *readme:
		err = writeReadme(all)
	default:
		err = r.do(ctx, all)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// do measures the selected rows and stores their results in all.
func (r *run) do(ctx context.Context, all results) (err error) {
	rows, err := r.selectRows()
	if err != nil {
		return err
	}
	if r.commit, err = readCommit(); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "loadout-bench-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	if err := os.Chmod(r.dir, 0o755); err != nil { // sandboxes run as another user
		return err
	}
	if err := adoptOrphans(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endOrphans(5*time.Second)) }()
	calls := selectPrograms(rows)
	if err := r.prepare(ctx, calls); err != nil {
		return err
	}
	failed := r.callPrograms(ctx, calls)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	missing := 0
	for _, row := range rows {
		if failed[row.program] {
			missing++
			continue
		}
		res, err := r.records[row.program].resultOf(&row)
		if err != nil {
			log.Printf("row %s: %v", row.key, err)
			missing++
			continue
		}
		res.Date, res.Commit, res.Load, res.Machine = time.Now().Format(time.DateOnly), r.commit, r.load, measure.Machine()
		res.Command = r.command(row.program)
		all[row.key] = res
	}
	if !r.quick {
		if err := errors.Join(all.write(), writeReadme(all)); err != nil {
			return err
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d rows were not measured and keep their earlier results", missing, len(rows))
	}
	return nil
}

// selectRows returns the rows whose keys begin with an argument, or all.
func (r *run) selectRows() ([]row, error) {
	var rows []row
	for _, row := range allRows() {
		if programs[row.program].slow && !r.build {
			continue
		}
		if len(r.keys) == 0 || slices.ContainsFunc(r.keys, func(k string) bool { return strings.HasPrefix(row.key, k) }) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no row begins with %s; see the keys in %s, and add -build for the cold build", strings.Join(r.keys, " or "), resultsFile)
	}
	return rows, nil
}

// selectPrograms returns the keys of the programs of rows, in the order of the rows.
func selectPrograms(rows []row) []string {
	var calls []string
	for _, row := range rows {
		if !slices.Contains(calls, row.program) {
			calls = append(calls, row.program)
		}
	}
	return calls
}

// prepare builds the programs, generates the skills and installs the peers.
func (r *run) prepare(ctx context.Context, calls []string) (err error) {
	log.Print("building the program and the benchmarks")
	if r.loadout, err = measure.BuildLoadout(r.dir); err != nil {
		return err
	}
	packages := []string{"./genskills"}
	for _, key := range calls {
		packages = append(packages, "./"+programs[key].name)
	}
	slices.Sort(packages)
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false", "-o", r.dir + "/"}, slices.Compact(packages)...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the benchmarks: %w\n%s", err, out)
	}
	for _, key := range calls {
		for _, arg := range programs[key].args {
			n := skillSets[arg]
			if n == 0 || r.skills[arg] != "" {
				continue
			}
			log.Printf("generating %d skills", n)
			r.skills[arg] = filepath.Join(r.dir, arg)
			cmd := exec.CommandContext(ctx, filepath.Join(r.dir, "genskills"), "-n", fmt.Sprint(n), "-bundle-scale", "0.05", "-out", r.skills[arg])
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("generate skills: %w\n%s", err, out)
			}
		}
	}
	if !r.install {
		return nil
	}
	log.Print("installing mcp-proxy")
	return r.peers.install(ctx, filepath.Join(r.dir, "npm"))
}

// callPrograms calls the programs and collects their records. It returns the keys of those that
// failed.
func (r *run) callPrograms(ctx context.Context, calls []string) map[string]bool {
	failed := map[string]bool{}
	for pass := 1; ; pass++ {
		called := false
		for i, key := range calls {
			passes := cmp.Or(programs[key].passes, 3)
			if r.quick {
				passes = 1
			}
			if pass > passes || failed[key] || ctx.Err() != nil {
				continue
			}
			called = true
			began := time.Now()
			err := r.call(ctx, key)
			if err != nil {
				failed[key] = true
				log.Printf("pass %d, %d of %d: %s failed: %v", pass, i+1, len(calls), key, err)
				continue
			}
			log.Printf("pass %d, %d of %d: %s: %.0f s", pass, i+1, len(calls), key, time.Since(began).Seconds())
		}
		if !called {
			return failed
		}
	}
}

// call calls a program once.
func (r *run) call(ctx context.Context, key string) error {
	p := programs[key]
	args := []string{"-json", "-loadout", r.loadout}
	for _, a := range p.args {
		args = append(args, cmp.Or(r.skills[a], a))
	}
	args = append(append(args, p.rounds, fmt.Sprint(r.rounds(&p))), r.peers.args(p.peers)...)
	if r.records[key] == nil {
		r.records[key] = samples{}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(r.dir, p.name), args...)
	var out, text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &text
	cmd.Env = append(os.Environ(), "TMPDIR="+r.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, text.Bytes()[max(0, text.Len()-4000):])
	}
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var rec measure.Record
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return fmt.Errorf("read a record: %w", err)
		}
		r.records[key].add(rec)
	}
	return lines.Err()
}

func (r *run) rounds(p *program) int {
	if r.quick {
		return p.quick
	}
	return p.many
}

// command returns the command of a program, as it can be typed.
func (r *run) command(key string) string {
	p := programs[key]
	words := append(append([]string{p.name}, p.args...), p.rounds, fmt.Sprint(r.rounds(&p)))
	for _, name := range p.peers {
		if r.peers[name] != "" {
			words = append(words, peers{name: name}.args([]string{name})...)
		}
	}
	return strings.Join(words, " ")
}

// readCommit returns the abbreviated commit. A plus sign follows if files that are measured were
// changed.
func readCommit() (string, error) {
	out, err := exec.Command("git", "rev-parse", "--short=9", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("read the commit: %w", err)
	}
	commit := strings.TrimSpace(string(out))
	changed, err := exec.Command("git", "status", "--porcelain", "--", ":/", ":(exclude)"+readmeFile, ":(exclude)"+resultsFile).Output()
	if err == nil && len(changed) > 0 {
		commit += "+"
	}
	return commit, err
}
