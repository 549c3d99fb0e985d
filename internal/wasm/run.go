package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

const (
	pageSize = 64 << 10
	maxPages = 1 << 16

	// exitGrace is how long to wait for a guest to exit after its context is
	// done. A guest checks its context at each call, loop and return from the
	// host. A guest that takes longer is blocked in the host.
	exitGrace = 250 * time.Millisecond
)

// workerRun holds the options of a worker's run.
type workerRun struct {
	cache          string
	memory, output int64
	timeout        time.Duration
	compile        bool
	mounts         []mount
	args           []string // path of the module, followed by the guest's arguments
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// Causes of cancelling a run's context.
var (
	errTimeout = &failure{ExitTimeout, errors.New("timeout exceeded")}
	errOutput  = &failure{ExitWorker, errors.New("output limit exceeded")}
)

// run compiles or runs the module and returns the guest's exit code. It returns
// soon after the deadline, even if the guest is blocked.
func (j *workerRun) run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if j.timeout > 0 {
		defer time.AfterFunc(j.timeout, func() { cancel(errTimeout) }).Stop()
	}
	limit := j.output
	if limit == 0 {
		limit = -1
	}
	exceeded := func() { cancel(errOutput) }
	out := &limitedWriter{w: j.stdout, remaining: limit, exceeded: exceeded}
	errOut := &limitedWriter{w: j.stderr, remaining: limit, exceeded: exceeded}

	type result struct {
		code int
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			// The decoder and the compiler read untrusted bytes.
			if p := recover(); p != nil {
				r = result{err: fmt.Errorf("WebAssembly runtime panicked: %v", p)}
			}
			done <- r
		}()
		r.code, r.err = j.compileOrRun(ctx, out, errOut)
	}()

	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		late := time.NewTimer(exitGrace)
		defer late.Stop()
		select {
		case r = <-done:
		case <-late.C:
			r.err = context.Cause(ctx)
		}
	}
	if r.err == nil && context.Cause(ctx) == errOutput {
		r.err = errOutput // the guest may have exited before it noticed
	}
	return r.code, r.err
}

// compileOrRun either compiles or runs the module, depending on the options.
func (j *workerRun) compileOrRun(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	module, err := readModule(j.args[0])
	if err != nil {
		return 0, &failure{ExitModule, err}
	}
	if j.compile {
		return 0, contextError(ctx, Compile(ctx, module, j.cache))
	}
	p, err := loadProgram(ctx, module, j.cache, uint32(j.memory/pageSize))
	if err != nil {
		return 0, contextError(ctx, err)
	}
	defer p.close()
	if err := instantiateWASI(ctx, p.runtime); err != nil {
		return 0, contextError(ctx, err)
	}
	config, closeFiles, err := j.config(ctx)
	if err != nil {
		return 0, err
	}
	defer closeFiles()
	return j.runGuest(ctx, p, config.WithStdout(stdout).WithStderr(stderr))
}

// runGuest runs the guest until it exits.
func (j *workerRun) runGuest(ctx context.Context, p *program, config wazero.ModuleConfig) (int, error) {
	guest, err := p.runtime.InstantiateModule(ctx, p.module, config)
	if err != nil {
		return guestResult(ctx, err, ExitModule)
	}
	defer guest.Close(context.Background())
	// InstantiateModule could call _start too, but its error would not
	// distinguish a link error from a crash of the guest.
	_, err = guest.ExportedFunction("_start").Call(ctx)
	if err == nil {
		return 0, nil
	}
	return guestResult(ctx, err, ExitTrap)
}

// guestResult returns the guest's exit code. If the guest did not exit by
// itself, it returns an error with the given code.
func guestResult(ctx context.Context, err error, code int) (int, error) {
	exit, ok := errors.AsType[*sys.ExitError](err)
	if !ok {
		return 0, contextError(ctx, &failure{code, err})
	}
	// A guest can also exit with the codes that indicate a cancelled context.
	if c := exit.ExitCode(); ctx.Err() == nil || c != sys.ExitCodeContextCanceled && c != sys.ExitCodeDeadlineExceeded {
		return int(min(c, 255)), nil
	}
	return 0, context.Cause(ctx)
}

// contextError returns the context's cause if ctx is done, because err is then
// probably a consequence of that. Otherwise it returns err.
func contextError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// config returns the guest's module configuration and a function that closes
// its mounts.
func (j *workerRun) config(ctx context.Context) (wazero.ModuleConfig, func(), error) {
	config := wazero.NewModuleConfig().
		WithName(""). // the name section could say wasi_snapshot_preview1
		WithStartFunctions().
		WithArgs(j.args...).
		WithStdin(j.stdin).
		WithRandSource(rand.Reader).
		WithSysWalltime().
		WithSysNanotime().
		WithOsyield(runtime.Gosched).
		WithNanosleep(func(ns int64) { sleep(ctx, time.Duration(ns)) })
	for _, kv := range j.environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			config = config.WithEnv(k, v)
		}
	}
	files := wazero.NewFSConfig()
	var roots []*os.Root
	closeAll := func() {
		for _, r := range roots {
			r.Close()
		}
	}
	for _, m := range j.mounts {
		root, err := os.OpenRoot(m.host)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("mount %s: %w", m.guest, err)
		}
		roots = append(roots, root)
		files = files.(sysfs.FSConfig).WithSysFSMount(&rootFS{root: root, readOnly: m.readOnly}, m.guest)
	}
	return config.WithFSConfig(files), closeAll, nil
}

// sleep implements sleeping in poll_oneoff. It returns early when ctx is done,
// because wazero cannot stop a guest that is blocked in the host.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// instantiateWASI provides WASI preview 1 to the guest.
func instantiateWASI(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(b)
	// wazero grows its table of open files to the requested number, which could
	// take 16 GiB in one call. Compilers do not generate this call, so it is
	// not supported.
	const notsup = 58
	b.NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = notsup }),
			[]api.ValueType{api.ValueTypeI32, api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).
		Export("fd_renumber")
	_, err := b.Instantiate(ctx)
	return err
}
