// Package testprogram builds the programs that tests start. All packages tested
// together share each built program, because linking the main program takes
// most of a minute. Only tests import it.
//
// Start reading at [Program].
package testprogram

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/loadout-dev/loadout/internal/filelock"
)

const module = "github.com/loadout-dev/loadout"

// Program is a program of this module to build. By default it is built without
// cgo, so that it runs in every sandbox.
type Program struct {
	Package string   // path relative to the module, such as cmd/loadout
	Race    bool     // build with the race detector
	Env     []string // environment variables for the build, such as GOOS=wasip1
	Values  []string // string variables to set, as PACKAGE.NAME=VALUE relative to the module
}

// Loadout is the loadout command, built to assume that its caller is the user,
// because tests have no terminal and may be run by an agent. It also waits up to a
// minute to find its skills, because machines may be slow.
var Loadout = Program{Package: "cmd/loadout", Values: []string{"internal/presence.assumed=of-a-test", "internal/setup.MinSkillWait=1m"}}

// Build builds the program and returns the path of the executable. Each call
// lets the go command check that the executable is up to date, which takes a
// third of a second. All tests in this work tree share the executable, so do
// not modify it. It may not be accessible to other users; use [Program.Install]
// for them.
func (p Program) Build() (path string, err error) {
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	env := append(os.Environ(), "CGO_ENABLED=0")
	flags := "-ldflags=-s -w"
	for _, v := range p.Values {
		flags += " -X " + module + "/" + v
	}
	args := []string{"build", "-buildvcs=false", flags}
	if p.Race {
		env = append(env, "CGO_ENABLED=1")
		args = append(args, "-race")
	}
	env = append(env, p.Env...)
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", p.Package, args, append(p.Env, os.Getenv("GOFLAGS"))))
	dir := filepath.Join(root, ".cache", "programs", fmt.Sprintf("%x", key[:6]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", p.Package, err)
	}
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.Package, err)
	}
	defer unlock()
	path = filepath.Join(dir, filepath.Base(p.Package))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.Command("go", append(args, "-o", path, module+"/"+p.Package)...)
	cmd.Dir, cmd.Env = root, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", p.Package, err, out)
	}
	return path, p.openSources(root, env)
}

// openSources opens the directories and embedded files that the program is
// built from. The go command records the files that a test opens. When the
// files change, the go command runs the test again instead of using a cached
// result.
func (p Program) openSources(root string, env []string) error {
	const list = "{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.EmbedFiles}}\n{{$.Dir}}/{{.}}{{end}}{{end}}{{end}}"
	cmd := exec.Command("go", "list", "-deps", "-f", list, module+"/"+p.Package)
	cmd.Dir, cmd.Env = root, env
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the sources of %s: %w", p.Package, err)
	}
	for line := range strings.Lines(string(out)) {
		f, err := os.Open(filepath.FromSlash(strings.TrimRight(line, "\r\n")))
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// Install builds the program and writes a copy to path, which every user can
// read and run. The directory of path must exist.
func (p Program) Install(path string) error {
	built, err := p.Build()
	if err != nil {
		return err
	}
	if os.Link(built, path) == nil {
		return os.Chmod(path, 0o755)
	}
	// Another process writes the copy. If this process did, children started by
	// other tests meanwhile would inherit the open file, and running it would
	// fail with ETXTBSY.
	if runtime.GOOS != "windows" {
		if out, err := exec.Command("cp", built, path).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w\n%s", p.Package, err, out)
		}
		return os.Chmod(path, 0o755)
	}
	data, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o755)
}

// findRoot returns the root directory of the module. Tests start in the
// directory of their package.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		f, err := os.Open(filepath.Join(at, "go.mod"))
		if err == nil {
			head, err := io.ReadAll(io.LimitReader(f, 4096))
			f.Close()
			if first, _, _ := strings.Cut(string(head), "\n"); err == nil && strings.TrimSpace(first) == "module "+module {
				return at, nil
			}
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in module %s", dir, module)
		}
	}
}

// lockFile waits for a lock on the file at path. On systems without file locks
// it does nothing.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(context.Background(), f); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
