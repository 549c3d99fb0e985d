package loadout

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

	"github.com/loadout-dev/loadout/sandbox"
)

// WASMCommand is the first argument with which [Scripts.Executable] runs a
// WebAssembly module instead of a user's command.
const WASMCommand = "loadout-wasm"

// compileTime limits the compilation of a module.
const compileTime = 2 * time.Minute

// wasmCommand returns the command for a WebAssembly script. It runs our own
// executable in the sandbox like any interpreter, with the compiled code of the
// module if there is a cache.
func (j *job) wasmCommand(ctx context.Context, s *sandbox.Spec, file string) (*sandbox.Cmd, error) {
	s.Mounts = append(s.Mounts, sandbox.Mount{Host: j.scripts.Executable, Path: j.scripts.Executable})
	l := s.Limits
	timeout, output := l.Wall, 5*l.Output
	if j.service != nil {
		timeout, output = 0, 0
	}
	args := []string{j.scripts.Executable, WASMCommand, "--memory", strconv.FormatInt(l.Memory/2, 10), "--timeout", timeout.String(),
		"--output", strconv.FormatInt(output, 10)}
	dir, err := j.compiledDir(ctx, s, file)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		s.Mounts = append(s.Mounts, sandbox.Mount{Host: dir, Path: dir})
		args = append(args, "--cache", dir)
	}
	args = append(args, "--dir", sandbox.WorkDir+"="+sandbox.WorkDir, "--dir", sandbox.TmpDir+"="+sandbox.TmpDir)
	for _, t := range s.Trees {
		if !t.Writable() {
			args = append(args, "--dir", t.Path+"="+t.Path+":ro")
		}
	}
	for _, m := range s.Mounts {
		if m.Path == sandbox.WorkspaceDir {
			access := ":ro"
			if m.Writable {
				access = ""
			}
			args = append(args, "--dir", m.Path+"="+m.Path+access)
		}
	}
	args = append(args, "--", file)
	return &sandbox.Cmd{Args: append(args, j.run.Args...)}, nil
}

// compiledDir returns the directory with the compiled code of the module. It
// compiles the module in a separate sandbox if necessary. It returns "" if
// there is no cache or the module is invalid; the run then reports that.
func (j *job) compiledDir(ctx context.Context, run *sandbox.Spec, file string) (string, error) {
	if j.scripts.CacheDir == "" {
		return "", nil
	}
	f, ok := j.mainPart().manifest.Find(j.script)
	if !ok {
		return "", fmt.Errorf("%s is not in the manifest", j.script)
	}
	// Compiled code runs unchecked, so each module has its own directory,
	// written only by its compilation. The name includes the compiling program,
	// which accepts only its own code.
	by, err := os.Stat(j.scripts.Executable)
	if err != nil {
		return "", fmt.Errorf("the program that runs WebAssembly: %w", err)
	}
	dir := filepath.Join(j.scripts.CacheDir, "wasm", fmt.Sprintf("%s-%x-%x", f.SHA256, by.Size(), by.ModTime().UnixNano()))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	j.progress("compiling %s", j.script)
	fresh, err := compileInto(ctx, j.scripts, dir, run, file)
	if fresh != "" {
		defer os.RemoveAll(fresh)
	}
	if err != nil || fresh == "" {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(dir); there != nil { // otherwise another process was first
			return "", fmt.Errorf("keep the compiled code of %s: %w", file, err)
		}
	}
	return dir, nil
}

// compileInto compiles the module into a new directory beside dir. It returns
// "" for a module that does not compile.
func compileInto(ctx context.Context, sc *Scripts, dir string, run *sandbox.Spec, file string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", fmt.Errorf("make a place for compiled code: %w", err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".fresh-")
	if err != nil {
		return "", fmt.Errorf("make a place for compiled code: %w", err)
	}
	root, err := os.OpenRoot(fresh)
	if err != nil {
		return fresh, err
	}
	defer root.Close()
	spec := &sandbox.Spec{Limits: sandbox.Limits{Memory: 1 << 30, Work: 256 << 20, FileSize: 128 << 20, Wall: compileTime, CPU: compileTime},
		Digest: run.Digest, Mounts: []sandbox.Mount{{Host: sc.Executable, Path: sc.Executable}}}
	for _, t := range run.Trees {
		if t.Path == sandbox.SkillDir {
			spec.Trees = append(spec.Trees, t)
		}
	}
	res, err := sandbox.Run(ctx, sc.Sandbox, spec, &sandbox.Cmd{Args: []string{sc.Executable, WASMCommand, "--compile", "--cache", sandbox.OutDir, "--", file}},
		&sandbox.RunOptions{Collect: func(f sandbox.File, r io.Reader) (bool, error) { return keepCompiled(root, f, r) }})
	if err != nil {
		return fresh, fmt.Errorf("compile %s: %w", file, err)
	}
	if res.ExitCode != 0 || len(res.Files) == 0 {
		os.RemoveAll(fresh)
		return "", nil
	}
	return fresh, os.Chmod(fresh, 0o755)
}

func keepCompiled(root *os.Root, f sandbox.File, r io.Reader) (bool, error) {
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
