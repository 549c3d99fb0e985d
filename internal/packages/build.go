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
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/sandbox"
)

// build installs the packages of a job into the store. The caller must hold the
// entry's lock.
func (b *Builder) build(ctx context.Context, j *job, st *store, progress func(string)) (*entry, error) {
	r, err := b.recipe(j)
	if err != nil {
		return nil, err
	}
	if b.opts.Backend == nil {
		return nil, &sandbox.UnavailableError{Backend: "none", Missing: "a sandbox for the installation of packages", Fix: "see `loadout sandbox`"}
	}
	d, err := st.begin(j.entry)
	if err != nil {
		return nil, err
	}
	defer d.discard()
	tree, err := d.writeInput(j.input)
	if err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("installing %s with %s from %s", formatNames(j.names), r.tool, r.from.host))
	in := &fileCollector{draft: d, limits: b.limits, prefix: r.result + "/"}
	if err := b.install(ctx, j, r, tree, in); err != nil {
		return nil, err
	}
	if err := d.finish(in.files); err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("installed %d files", len(in.files)))
	return st.publish(d)
}

// install runs the installer and passes the installed files to collector.
func (b *Builder) install(ctx context.Context, j *job, r *recipe, tree sandbox.Tree, collector *fileCollector) error {
	seen := newWatch(b.log)
	spec := &sandbox.Spec{
		Trees: []sandbox.Tree{tree}, Mounts: r.mounts, Limits: b.limits.Sandbox,
		Network: sandbox.Network{Allow: slices.Concat(r.from.allow, b.opts.Hosts), Private: b.opts.Private, Log: slog.New(seen)},
	}
	s, err := b.opts.Backend.Start(ctx, spec)
	if err != nil {
		return err
	}
	defer s.Close()
	said := &outputTail{}
	res, err := execute.RunIn(ctx, s, spec, &sandbox.Cmd{Args: r.argv, Env: r.env, Dir: appDir}, &execute.Options{Stdout: said, Stderr: said})
	if err != nil {
		return err
	}
	if res.Reason != sandbox.OK {
		s.Close() // completes the network log
		return b.installError(j, r, res, said.String(), seen.unreachedHosts())
	}
	if r.after != nil {
		if _, err := execute.RunIn(ctx, s, spec, &sandbox.Cmd{Args: r.after, Env: maps.Clone(r.env), Timeout: time.Minute}, nil); err != nil {
			return err
		}
	}
	err = s.Collect(ctx, collector.collectFile)
	switch {
	case errors.Is(err, errRejected):
		return &FailedError{Tool: r.tool, Needs: j.names, Reason: strings.TrimPrefix(err.Error(), errRejected.Error()+": ")}
	case err != nil:
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("collect installed packages: %w", err)
	case !collector.sawLast:
		return &FailedError{Tool: r.tool, Needs: j.names, Reason: "wrote more files than the sandbox can collect"}
	}
	return nil
}

// installError returns the error for a failed installer.
func (b *Builder) installError(j *job, r *recipe, res *execute.Result, output string, unreachedHosts []string) error {
	if res.Reason == sandbox.StartFailed {
		return &FailedError{Tool: r.tool, Needs: j.names, Reason: res.Detail}
	}
	if r.tool == "pip" && strings.Contains(output, "No module named pip") {
		return &MissingToolError{Tool: "uv or pip", Needs: j.names, Hint: hintUV}
	}
	if res.Reason == sandbox.Exited && res.Signal == "" && len(unreachedHosts) > 0 {
		return &OfflineError{Needs: j.names, Source: j.needs.Source, Hosts: unreachedHosts}
	}
	e := &FailedError{Tool: r.tool, Needs: j.names, Reason: res.Detail, Output: output, Denied: res.Denied}
	switch {
	case e.Reason != "":
	case res.Signal != "":
		e.Reason = "killed by " + res.Signal
	default:
		e.Reason = fmt.Sprintf("exited with code %d", res.ExitCode)
	}
	switch {
	case len(e.Denied) > 0:
		e.Hint = "only the configured registries are reachable; private addresses must be listed"
	case r.tool != "npm" && !b.opts.AllowSource:
		e.Hint = "only wheels are installed, because building a source distribution runs its code"
	}
	return e
}

// outputTail is a writer that stores the end of the data written to it.
type outputTail struct{ b []byte }

const maxTail = 4 << 10

func (t *outputTail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if len(t.b) > 2*maxTail {
		t.b = append(t.b[:0], t.b[len(t.b)-maxTail:]...)
	}
	return len(b), nil
}

var (
	urlPassword   = lazyregexp.New(`(://)[^/\s@]+@`)
	colorSequence = lazyregexp.New("\x1b\\[[0-9;?]*[A-Za-z]")
)

func (t *outputTail) String() string {
	s := string(t.b[max(0, len(t.b)-maxTail):])
	if len(t.b) > maxTail { // drop the incomplete first line
		_, s, _ = strings.Cut(s, "\n")
	}
	return strings.TrimSpace(urlPassword.ReplaceAllString(printable(colorSequence.ReplaceAllString(s, "")), "$1"))
}

// errRejected is returned if a file written by an installer is not accepted.
var errRejected = errors.New("rejected")

func rejectedError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errRejected, fmt.Sprintf(format, args...))
}

// fileCollector collects the files written by an installer and enforces limits.
type fileCollector struct {
	draft   *draft
	limits  Limits
	prefix  string
	files   []file
	bytes   int64
	sawLast bool // the last file was collected
}

// collectFile collects a single file. It is the callback for
// [sandbox.Sandbox.Collect].
func (in *fileCollector) collectFile(f sandbox.File, r io.Reader) error {
	if f.Path == lastFile {
		in.sawLast = true
		return nil
	}
	name, ok := strings.CutPrefix(f.Path, in.prefix)
	if !ok {
		return nil // logs and other files that are not part of the result
	}
	switch {
	case !isAcceptable(name):
		return rejectedError("invalid file name")
	case strings.Count(name, "/") > in.limits.Depth:
		return rejectedError("directories nested too deeply (limit %d)", in.limits.Depth)
	case len(in.files) == in.limits.Files:
		return rejectedError("too many files (limit %d)", in.limits.Files)
	case f.Size < 0 || f.Size > in.limits.Bytes-in.bytes:
		return rejectedError("files too large (limit %d MiB in total)", in.limits.Bytes>>20)
	}
	sum, err := in.draft.writeFile(name, f, r)
	if err != nil {
		return err
	}
	in.bytes += f.Size
	in.files = append(in.files, file{Path: name, Size: f.Size, SHA256: sum, Exec: f.Exec})
	return nil
}

// isAcceptable reports whether a path is valid and unambiguous on every system.
func isAcceptable(p string) bool {
	return p != "" && len(p) <= 1024 && path.Clean("/"+p) == "/"+p && !strings.ContainsFunc(p, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\\'
	}) && filepath.IsLocal(p)
}
