package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// callTimeout is the timeout for engine commands that should finish quickly,
// such as removing a container.
const callTimeout = 30 * time.Second

// engine is the command-line client of a container engine. The client inherits
// the environment of this program, because environment variables configure it.
// Containers do not inherit the environment.
type engine struct {
	path    string
	kind    string // docker or podman
	version string
}

// command returns a command that runs the client directly, without a shell.
func (e *engine) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.path, args...)
	cmd.WaitDelay = time.Second
	return cmd
}

// callError is the error of a client call, with the last line of the client's
// output.
type callError struct {
	args []string
	said string
	err  error
}

func (e *callError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("%s: %v", e.args[0], e.err)
	}
	return e.args[0] + ": " + e.said
}

func (e *callError) Unwrap() error { return e.err }

// call runs the client and returns its output.
func (e *engine) call(ctx context.Context, in io.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cmd := e.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out.String(), &callError{args, lastLine(errs.String()), err}
	}
	return strings.TrimSpace(out.String()), nil
}

func lastLine(s string) string {
	last := ""
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "See '") {
			last = line
		}
	}
	return last
}

// findEngine finds a client whose engine responds.
func (b *Backend) findEngine(ctx context.Context) (*engine, error) {
	names := []string{"docker", "podman"}
	if b.opts.Engine != "" {
		names = []string{b.opts.Engine}
	}
	var found []error
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		e := &engine{path: path, kind: "docker"}
		if strings.Contains(filepath.Base(path), "podman") {
			e.kind = "podman"
		}
		if e.version, err = e.call(ctx, nil, "version", "--format", versionFormat[e.kind]); err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found = append(found, &sandbox.UnavailableError{Backend: b.Name(), Missing: "a responding engine for " + name, Err: err, Fix: startEngine[e.kind]})
	}
	if len(found) > 0 {
		return nil, found[0]
	}
	return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "the program " + strings.Join(names, " or "), Fix: "install Docker or Podman"}
}

var (
	versionFormat = map[string]string{"docker": "{{.Server.Version}}", "podman": "{{.Client.Version}}"}
	startEngine   = map[string]string{
		"docker": "start it: systemctl start docker, or Docker Desktop; the user must be in the group docker",
		"podman": "start it: podman machine start; on Linux check podman info",
	}
)

// ensureImage checks that the image exists locally, and pulls a missing image
// if that is allowed.
func (b *Backend) ensureImage(ctx context.Context, e *engine) error {
	_, err := e.call(ctx, nil, "image", "inspect", "--format", "{{.Id}}", b.opts.Image)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	fix := e.kind + " pull " + b.opts.Image
	if !b.opts.Pull {
		return &sandbox.UnavailableError{Backend: b.Name(), Missing: "the image " + b.opts.Image, Fix: "run " + fix}
	}
	cmd := e.command(ctx, "pull", b.opts.Image) // pulling an image has no timeout
	if out, err := cmd.CombinedOutput(); err != nil {
		return &sandbox.UnavailableError{Backend: b.Name(), Missing: "the image " + b.opts.Image, Err: errors.Join(err, errors.New(lastLine(string(out)))), Fix: "run " + fix}
	}
	return nil
}
