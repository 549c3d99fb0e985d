// Command clients records what MCP clients show their models:
//
//	go run ./test/clients -loadout PROGRAM -modules DIR/node_modules [-client NAME] [-update]
//
// The script run in this directory builds loadout, installs pinned clients and
// calls it. The command runs each client with a fake model: with a probe,
// an MCP server whose instructions and descriptions are longer than any known
// limit, and with loadout and 50 skills. It compares what the requests to the
// model contain of these servers with the recordings, or replaces them. It also
// checks the first use after "loadout setup", reading tools without a user, and
// skills in a client's roots. It needs no network.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := mainErr(); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func mainErr() error {
	switch args := os.Args[1:]; {
	case len(args) > 0 && args[0] == "probe":
		return runProbe()
	case len(args) > 2 && args[0] == "tee":
		return runTee(args[1], args[2:])
	}
	loadout := flag.String("loadout", "", "absolute path of the loadout `program`")
	modules := flag.String("modules", "", "absolute path of the `directory` of the installed npm packages")
	only := flag.String("client", "", "record only the client `NAME`; setup checks only the first use, and roots only the roots")
	update := flag.Bool("update", false, "replace the recordings")
	keep := flag.String("keep", "", "write the requests to `DIR`")
	flag.Parse()
	if *loadout == "" || *modules == "" {
		return errors.New("missing -loadout or -modules")
	}
	var failed []error
	for _, c := range clients {
		if *only != "" && c.name != *only {
			continue
		}
		r := &recorder{client: c, loadout: *loadout, modules: *modules, keep: *keep}
		if err := r.check(*update); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	if *only == "" || *only == "setup" {
		if err := checkSetup(*loadout, *modules); err != nil {
			failed = append(failed, fmt.Errorf("check setup: %w", err))
		}
	}
	if *only == "" || *only == "codex" {
		if err := checkReadTool(*loadout, *modules); err != nil {
			failed = append(failed, fmt.Errorf("read_tool: %w", err))
		}
	}
	if *only == "" || *only == "roots" {
		if err := checkRoots(*loadout, *modules); err != nil {
			failed = append(failed, fmt.Errorf("check roots: %w", err))
		}
	}
	return errors.Join(failed...)
}

// recorder records what a client shows its model.
type recorder struct {
	client           client
	loadout, modules string
	keep             string // directory for requests; "" for none
}

// recordings is the directory of the recordings.
const recordings = "internal/clientprofile/testdata/recordings"

// check records the client, and compares the recording with the saved one or
// replaces the saved one.
func (r *recorder) check(update bool) error {
	rec, err := r.record()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(rec); err != nil {
		return err
	}
	file := filepath.Join(recordings, r.client.name+".json")
	if update {
		fmt.Println("wrote", file)
		return writeFile(file, b.String())
	}
	saved, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(saved, b.Bytes()) {
		fresh := filepath.Join(os.TempDir(), "recorded-"+r.client.name+".json") // opencode would read opencode.json there
		if err := writeFile(fresh, b.String()); err != nil {
			return err
		}
		return fmt.Errorf("recorded output has changed: compare %s with %s, and accept the change with -update", file, fresh)
	}
	fmt.Println(r.client.name, "shows what is recorded")
	return nil
}

// record runs the client with both servers.
func (r *recorder) record() (*recording, error) {
	rec := &recording{Client: r.client.name, Unasked: []string{}}
	var err error
	if rec.Version, err = r.version(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	probe := scenario{server: "probe", command: []string{self, "probe"}, tool: readingTool, arguments: "{}", allowed: true}
	o, err := r.run(probe)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(rec.addMessages(o.messages), rec.addProbe(o.bodies)); err != nil {
		return nil, err
	}
	probe.allowed = false
	for _, probe.tool = range []string{readingTool, destructiveTool} {
		if o, err = r.run(probe); err != nil {
			return nil, err
		}
		if o.reached {
			rec.Unasked = append(rec.Unasked, probe.tool)
		}
	}
	dir, err := os.MkdirTemp("", "clients-catalog-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	skills := filepath.Join(dir, "catalog")
	if err := writeCatalog(skills); err != nil {
		return nil, err
	}
	o, err = r.run(scenario{server: "loadout", command: []string{r.loadout, "mcp", "--skills", skills}, tool: "load_skill", arguments: `{"name":"` + catalogName(7) + `"}`, allowed: true})
	if err != nil {
		return nil, err
	}
	return rec, errors.Join(rec.addMessages(o.messages), rec.addLoadout(o.bodies))
}

// version returns the version of the installed package.
func (r *recorder) version() (string, error) {
	b, err := os.ReadFile(filepath.Join(r.modules, r.client.npm, "package.json"))
	if err != nil {
		return "", err
	}
	var p struct{ Version string }
	return p.Version, json.Unmarshal(b, &p)
}

// scenario is a server, and a call of one of its tools by the fake model.
type scenario struct {
	server          string
	command         []string
	tool, arguments string
	allowed         bool // whether the client may call the tool without asking
}

// outcome holds what a client did in a scenario.
type outcome struct {
	bodies   [][]byte // the requests to the model
	messages []byte   // the client's messages to the server
	reached  bool     // whether the call reached the server
}

// run runs the client in a scenario until the fake model has called the tool. If
// a client sends a request to its model before the server is ready, the run is
// repeated. A client that runs without a user may hide tools that need the
// user's approval.
func (r *recorder) run(s scenario) (*outcome, error) {
	const tries = 3
	for try := 1; ; try++ {
		o, err := r.runOnce(s)
		if err == nil || try == tries && s.allowed {
			return o, err
		}
		if try == tries {
			return &outcome{}, nil
		}
		fmt.Printf("%s with %s: %v; trying again\n", r.client.name, s.server, err)
	}
}

func (r *recorder) runOnce(s scenario) (*outcome, error) {
	dir, err := os.MkdirTemp("", "clients-run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	model := newFakeModel(s.tool, s.arguments)
	defer model.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log := filepath.Join(dir, "messages")
	// The client starts two levels below the root of a repository.
	outside := filepath.Join(dir, "outside")
	root := filepath.Join(outside, "root")
	parent := filepath.Join(root, "parent")
	one := &run{home: filepath.Join(dir, "home"), project: filepath.Join(parent, "project"), model: model.URL, server: s.server,
		command: append([]string{self, "tee", log}, s.command...), allowed: s.allowed}
	if err := errors.Join(writeSkills(one.home, "home"), writeSkills(one.project, "project"), writeSkills(parent, "parent"), writeSkills(root, "root"), writeSkills(outside, "outside"),
		makeRepository(root)); err != nil {
		return nil, err
	}
	args, env, err := r.client.prepare(one)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(r.modules, r.client.program), args...)
	cmd.Dir = one.project
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + one.home, "TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8"}, env...)
	cmd.WaitDelay = 10 * time.Second
	out, runErr := cmd.CombinedOutput()
	bodies, called := model.recorded()
	messages, _ := os.ReadFile(log) // missing if the server was not started
	if r.keep != "" {
		for i, b := range bodies {
			_ = writeFile(filepath.Join(r.keep, fmt.Sprintf("%s-%s-%d.json", r.client.name, s.server, i)), string(b))
		}
		_ = writeFile(filepath.Join(r.keep, r.client.name+"-"+s.server+".messages"), string(messages))
		_ = writeFile(filepath.Join(r.keep, r.client.name+"-"+s.server+".out"), string(out))
	}
	o := &outcome{bodies: bodies, messages: messages, reached: bytes.Contains(messages, []byte(`"tools/call"`))}
	if !called || s.allowed && !o.reached {
		text := strings.TrimSpace(string(out))
		return nil, fmt.Errorf("the tool %s was not called in %d requests (%v): %s", s.tool, len(bodies), runErr, text[max(0, len(text)-2000):])
	}
	return o, nil
}

// makeRepository makes a directory a repository without commits.
func makeRepository(dir string) error {
	git := filepath.Join(dir, ".git")
	return errors.Join(os.MkdirAll(filepath.Join(git, "objects"), 0o700), os.MkdirAll(filepath.Join(git, "refs"), 0o700),
		writeFile(filepath.Join(git, "HEAD"), "ref: refs/heads/main\n"))
}
