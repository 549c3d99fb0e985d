package bwrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"github.com/loadout-dev/loadout/sandbox"
)

func (p *program) atLeast(major, minor int) bool {
	return p.major > major || p.major == major && p.minor >= minor
}

// findProgram returns the bubblewrap executable and its version. The result is
// cached.
func (b *Backend) findProgram(ctx context.Context) (*program, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.found != nil {
		return b.found, nil
	}
	const fix = "install bubblewrap: apt-get install bubblewrap"
	path, err := exec.LookPath(b.opts.Program)
	if err != nil {
		e := &sandbox.UnavailableError{Backend: b.Name(), Missing: "the program bwrap", Fix: fix}
		if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
			e.Err = err
		}
		return nil, e
	}
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.Dir = []string{}, "/"
	out, err := cmd.Output()
	if err != nil {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "a working bwrap", Err: err, Fix: fix}
	}
	p := &program{path: path}
	version := strings.TrimSpace(strings.TrimPrefix(string(out), "bubblewrap "))
	if n, err := fmt.Sscanf(version, "%d.%d", &p.major, &p.minor); n != 2 {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: fmt.Sprintf("a bwrap with a readable version, not %q", version), Err: err, Fix: fix}
	}
	if !p.atLeast(0, 7) {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "bubblewrap 0.7 or newer, which can limit the size of file systems; found " + version, Fix: fix}
	}
	b.found = p
	return p, nil
}
