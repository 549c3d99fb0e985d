// Command clients records what MCP clients show their models:
//
//	go run ./test/clients -loadout PROGRAM -modules DIR/node_modules [-client NAME] [-update]
//
// The script run in this directory builds loadout, installs pinned clients and
// calls it. The command runs each client twice with a fake model: with a probe,
// an MCP server whose instructions and descriptions are longer than any known
// limit, and with loadout and 50 skills. It compares what the requests to the
// model contain of these servers with the recordings, or replaces them. It also
// checks the first use after "loadout setup", and skills in a client's roots. It
// needs no network.
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
			failed = append(failed, fmt.Errorf("setup: %w", err))
		}
	}
	if *only == "" || *only == "roots" {
		if err := checkRoots(*loadout, *modules); err != nil {
			failed = append(failed, fmt.Errorf("roots: %w", err))
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
	rec := &recording{Client: r.client.name}
	var err error
	if rec.Version, err = r.version(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bodies, messages, err := r.run("probe", []string{self, "probe"}, probeTool, "{}")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(rec.addMessages(messages), rec.addProbe(bodies)); err != nil {
		return nil, err
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
	bodies, messages, err = r.run("loadout", []string{r.loadout, "mcp", "--skills", skills}, "load_skill", `{"name":"`+catalogName(7)+`"}`)
	if err != nil {
		return nil, err
	}
	return rec, errors.Join(rec.addMessages(messages), rec.addLoadout(bodies))
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

// run runs the client with a server until the fake model has called the tool. It
// returns the requests to the model and the messages to the server. A client may
// ask its model before the server is ready; then the run is repeated.
func (r *recorder) run(server string, command []string, tool, arguments string) (bodies [][]byte, messages []byte, err error) {
	const tries = 3
	for try := 1; ; try++ {
		bodies, messages, err = r.runOnce(server, command, tool, arguments)
		if err == nil || try == tries {
			return bodies, messages, err
		}
		fmt.Printf("%s with %s: %v; trying again\n", r.client.name, server, err)
	}
}

func (r *recorder) runOnce(server string, command []string, tool, arguments string) (bodies [][]byte, messages []byte, err error) {
	dir, err := os.MkdirTemp("", "clients-run-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	model := newFakeModel(tool, arguments)
	defer model.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	log := filepath.Join(dir, "messages")
	one := &run{home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project"), model: model.URL, server: server,
		command: append([]string{self, "tee", log}, command...)}
	if err := errors.Join(writeSkills(one.home, "home"), writeSkills(one.project, "project"), writeFile(filepath.Join(one.project, ".git", "HEAD"), "ref: refs/heads/main\n")); err != nil {
		return nil, nil, err
	}
	args, env, err := r.client.prepare(one)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(r.modules, r.client.program), args...)
	cmd.Dir = one.project
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + one.home, "TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8"}, env...)
	cmd.WaitDelay = 10 * time.Second
	out, runErr := cmd.CombinedOutput()
	bodies = model.recorded()
	messages, _ = os.ReadFile(log) // missing if the server was not started
	if r.keep != "" {
		for i, b := range bodies {
			_ = writeFile(filepath.Join(r.keep, fmt.Sprintf("%s-%s-%d.json", r.client.name, server, i)), string(b))
		}
		_ = writeFile(filepath.Join(r.keep, r.client.name+"-"+server+".messages"), string(messages))
		_ = writeFile(filepath.Join(r.keep, r.client.name+"-"+server+".out"), string(out))
	}
	if !bytes.Contains(messages, []byte(`"tools/call"`)) {
		text := strings.TrimSpace(string(out))
		return nil, nil, fmt.Errorf("the tool %s was not called in %d requests (%v): %s", tool, len(bodies), runErr, text[max(0, len(text)-2000):])
	}
	return bodies, messages, nil
}
