package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// WASMCommand is the first argument that makes our executable run a WebAssembly
// module instead of a user's command.
const WASMCommand = "loadout-wasm"

// compileTime is the time limit for compiling a module.
const compileTime = 2 * time.Minute

// wasmRunner runs WebAssembly modules with our own executable, which runs in
// the sandbox like any interpreter.
type wasmRunner struct {
	executable string
	cacheDir   string // directory of compiled modules; "" for none
	sandbox    sandbox.Backend
}

// wasmModule describes a run of a skill's WebAssembly module.
type wasmModule struct {
	dir    string // of the skill in the sandbox
	script string // path in the skill
	hash   string // hash of the content
	args   []string
	// unlimited disables the time and output limits, for services.
	unlimited bool
}

// command returns the command that runs a module. If there is a cache, the
// command uses compiled code from it.
func (w *wasmRunner) command(ctx context.Context, s *sandbox.Spec, m wasmModule, progress Progress) (*sandbox.Cmd, error) {
	s.Mounts = append(s.Mounts, sandbox.Mount{Host: w.executable, Path: w.executable})
	l := s.Limits
	timeout, output := l.Wall, 5*l.Output
	if m.unlimited {
		timeout, output = 0, 0
	}
	args := []string{w.executable, WASMCommand, "--memory", strconv.FormatInt(l.Memory/2, 10), "--timeout", timeout.String(),
		"--output", strconv.FormatInt(output, 10)}
	file := path.Join(m.dir, m.script)
	dir, err := w.compiledDir(ctx, s, m, file, progress)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		s.Mounts = append(s.Mounts, sandbox.Mount{Host: dir, Path: dir})
		args = append(args, "--cache", dir)
	}
	args = append(args, wasmDirs(s)...)
	args = append(args, "--", file)
	return &sandbox.Cmd{Args: append(args, m.args...)}, nil
}

// wasmDirs returns the options that give a module access to its directories.
func wasmDirs(s *sandbox.Spec) []string {
	args := []string{"--dir", mountpoint.Work + "=" + mountpoint.Work, "--dir", mountpoint.Tmp + "=" + mountpoint.Tmp}
	for _, t := range s.Trees {
		if !prepare.IsWritable(t.Path) {
			args = append(args, "--dir", t.Path+"="+t.Path+":ro")
		}
	}
	for _, m := range s.Mounts {
		if m.Path == mountpoint.Workspace {
			access := ":ro"
			if m.Writable {
				access = ""
			}
			args = append(args, "--dir", m.Path+"="+m.Path+access)
		}
	}
	return args
}

// compiledDir returns the directory with the compiled code of the module. If
// necessary, it compiles the module in a separate sandbox. It returns "" if
// there is no cache, or if the module is invalid, which the run then reports.
func (w *wasmRunner) compiledDir(ctx context.Context, run *sandbox.Spec, m wasmModule, file string, progress Progress) (string, error) {
	if w.cacheDir == "" {
		return "", nil
	}
	// Compiled code runs unchecked, so each module has its own directory, to
	// which only its compilation writes. The name depends on the compiling
	// program, which accepts only code that it compiled itself.
	by, err := os.Stat(w.executable)
	if err != nil {
		return "", fmt.Errorf("find WebAssembly runner: %w", err)
	}
	dir := filepath.Join(w.cacheDir, "wasm", fmt.Sprintf("%s-%x-%x", m.hash, by.Size(), by.ModTime().UnixNano()))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	progress.report("compiling %s", m.script)
	fresh, err := w.compileInto(ctx, dir, run, m.dir, file)
	if fresh != "" {
		defer os.RemoveAll(fresh)
	}
	if err != nil || fresh == "" {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(dir); there != nil { // another process stored it first
			return "", fmt.Errorf("store compiled code of %s: %w", file, err)
		}
	}
	return dir, nil
}

// compileInto compiles the module into a new directory next to dir. skillDir is the
// path of its skill in the sandbox. If the module does not compile, compileInto
// returns "".
func (w *wasmRunner) compileInto(ctx context.Context, dir string, run *sandbox.Spec, skillDir, file string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", fmt.Errorf("create cache directory: %w", err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".fresh-")
	if err != nil {
		return "", fmt.Errorf("create cache directory: %w", err)
	}
	root, err := os.OpenRoot(fresh)
	if err != nil {
		return fresh, err
	}
	defer root.Close()
	spec := &sandbox.Spec{Limits: sandbox.Limits{Memory: 1 << 30, Work: 256 << 20, FileSize: 128 << 20, Wall: compileTime, CPU: compileTime},
		Digest: run.Digest, Mounts: []sandbox.Mount{{Host: w.executable, Path: w.executable}}}
	for _, t := range run.Trees {
		if t.Path == skillDir {
			spec.Trees = append(spec.Trees, t)
		}
	}
	res, err := execute.Run(ctx, w.sandbox, spec, &sandbox.Cmd{Args: []string{w.executable, WASMCommand, "--compile", "--cache", mountpoint.Out, "--", file}},
		&execute.Options{Collect: func(f sandbox.File, r io.Reader) (bool, error) { return saveCompiled(root, f, r) }})
	if err != nil {
		return fresh, fmt.Errorf("compile %s: %w", file, err)
	}
	if res.ExitCode != 0 || len(res.Files) == 0 {
		os.RemoveAll(fresh)
		return "", nil
	}
	return fresh, os.Chmod(fresh, 0o755)
}

func saveCompiled(root *os.Root, f sandbox.File, r io.Reader) (bool, error) {
	name, ok := strings.CutPrefix(f.Path, "out/")
	if !ok {
		return false, nil
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return false, err
	}
	w, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(w, r)
	return true, errors.Join(err, w.Close())
}
