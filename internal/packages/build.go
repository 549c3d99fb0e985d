package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// build installs the packages of j into the store. The caller holds the lock of
// the entry.
func (b *Builder) build(ctx context.Context, j *job, st *store, progress func(string)) (*entry, error) {
	r, err := b.recipe(j)
	if err != nil {
		return nil, err
	}
	if b.opts.Backend == nil {
		return nil, &sandbox.UnavailableError{Backend: "none", Missing: "a sandbox to install packages in", Fix: "see `loadout sandbox`"}
	}
	d, err := st.begin(j.entry)
	if err != nil {
		return nil, err
	}
	defer d.discard()
	tree, err := d.give(j.input)
	if err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("installing %s with %s from %s", few(j.names), r.tool, r.from.host))
	in := &intake{draft: d, limits: b.limits, prefix: r.result + "/"}
	if err := b.install(ctx, j, r, tree, in); err != nil {
		return nil, err
	}
	if err := d.seal(in.files); err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("installed %d files", len(in.files)))
	return st.publish(d)
}

// install runs the installer and passes its files to in.
func (b *Builder) install(ctx context.Context, j *job, r *recipe, tree sandbox.Tree, in *intake) error {
	seen := newWatch(b.log)
	spec := &sandbox.Spec{
		Trees: []sandbox.Tree{tree}, Mounts: r.mounts, Limits: b.limits.Sandbox,
		Network: sandbox.Network{Mode: sandbox.ProxyNetwork, Allow: slices.Concat(r.from.allow, b.opts.Hosts), Private: b.opts.Private, Log: slog.New(seen)},
	}
	s, err := b.opts.Backend.Start(ctx, spec)
	if err != nil {
		return err
	}
	defer s.Close()
	output := &tail{}
	res, err := sandbox.RunIn(ctx, s, spec, &sandbox.Cmd{Args: r.argv, Env: r.env, Dir: appDir}, &sandbox.RunOptions{Stdout: output, Stderr: output})
	if err != nil {
		return err
	}
	if res.Reason != sandbox.OK {
		s.Close() // completes the network log
		return b.failed(j, r, res, output.String(), seen.unreached())
	}
	if r.then != nil {
		if _, err := sandbox.RunIn(ctx, s, spec, &sandbox.Cmd{Args: r.then, Env: maps.Clone(r.env), Timeout: time.Minute}, nil); err != nil {
			return err
		}
	}
	err = s.Collect(ctx, in.collectFile)
	switch {
	case errors.Is(err, errNotAccepted):
		return &FailedError{Tool: r.tool, Needs: j.names, Reason: strings.TrimPrefix(err.Error(), errNotAccepted.Error()+": ")}
	case err != nil:
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("collect installed packages: %w", err)
	case !in.whole:
		return &FailedError{Tool: r.tool, Needs: j.names, Reason: "it left more files than a sandbox hands over"}
	}
	return nil
}

// failed returns the error for a failed installer.
func (b *Builder) failed(j *job, r *recipe, res *sandbox.Result, output string, unreached []string) error {
	if res.Reason == sandbox.StartFailed {
		return &FailedError{Tool: r.tool, Needs: j.names, Reason: res.Detail}
	}
	if r.tool == "pip" && strings.Contains(output, "No module named pip") {
		return &MissingToolError{Tool: "uv or pip", Needs: j.names, Hint: hintUV}
	}
	if res.Reason == sandbox.Exited && res.Signal == "" && len(unreached) > 0 {
		return &OfflineError{Needs: j.names, Source: j.needs.Source, Hosts: unreached}
	}
	e := &FailedError{Tool: r.tool, Needs: j.names, Reason: res.Detail, Output: output, Denied: res.Denied}
	switch {
	case e.Reason != "":
	case res.Signal != "":
		e.Reason = "it was ended by " + res.Signal
	default:
		e.Reason = fmt.Sprintf("it ended with code %d", res.ExitCode)
	}
	switch {
	case len(e.Denied) > 0:
		e.Hint = "only registries that the operator has chosen can be reached, and private addresses only if they are listed"
	case r.tool != "npm" && !b.opts.AllowSource:
		e.Hint = "only wheels are installed, as building others runs their code"
	}
	return e
}

// tail keeps the end of its input.
type tail struct{ b []byte }

const maxTail = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if len(t.b) > 2*maxTail {
		t.b = append(t.b[:0], t.b[len(t.b)-maxTail:]...)
	}
	return len(b), nil
}

var (
	password = regexp.MustCompile(`(://)[^/\s@]+@`)
	colour   = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
)

func (t *tail) String() string {
	s := string(t.b[max(0, len(t.b)-maxTail):])
	if len(t.b) > maxTail { // drop the partial first line
		_, s, _ = strings.Cut(s, "\n")
	}
	return strings.TrimSpace(password.ReplaceAllString(printable(colour.ReplaceAllString(s, "")), "$1"))
}

// errNotAccepted reports a file of an installer that is rejected.
var errNotAccepted = errors.New("not accepted")

func notAccepted(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotAccepted, fmt.Sprintf(format, args...))
}

// intake collects the files of an installer within limits.
type intake struct {
	draft  *draft
	limits Limits
	prefix string
	files  []file
	bytes  int64
	whole  bool // the last file was collected
}

// collectFile collects one file; it is a callback of [sandbox.Sandbox].
func (in *intake) collectFile(f sandbox.File, r io.Reader) error {
	if f.Path == last {
		in.whole = true
		return nil
	}
	name, ok := strings.CutPrefix(f.Path, in.prefix)
	if !ok {
		return nil // logs and other files outside the result
	}
	switch {
	case !acceptable(name):
		return notAccepted("it left a file of a name that is not accepted")
	case strings.Count(name, "/") > in.limits.Depth:
		return notAccepted("it left directories more than %d deep", in.limits.Depth)
	case len(in.files) == in.limits.Files:
		return notAccepted("it left more than %d files", in.limits.Files)
	case f.Size < 0 || f.Size > in.limits.Bytes-in.bytes:
		return notAccepted("it left more than %d MiB", in.limits.Bytes>>20)
	}
	sum, err := in.draft.write(name, f, r)
	if err != nil {
		return err
	}
	in.bytes += f.Size
	in.files = append(in.files, file{Path: name, Size: f.Size, SHA256: sum, Exec: f.Exec})
	return nil
}

// acceptable reports whether a path is valid and means the same on every
// system.
func acceptable(p string) bool {
	return p != "" && len(p) <= 1024 && path.Clean("/"+p) == "/"+p && !strings.ContainsFunc(p, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\\'
	}) && filepath.IsLocal(p)
}
