// Package wasm implements the worker that runs a skill's WebAssembly script,
// which is a WASI preview 1 command.
//
// The worker is a separate process. It is started inside the sandbox, like a
// shell for a shell script, with the same directories and variables. The
// process calls [Main] and exits with the returned code. The security boundary
// is the process, not this package, because the machine code comes from an
// untrusted module. Inside the process this package adds:
//
//   - Files are accessed through [os.Root], so a symlink cannot lead out of a
//     mount. A mount can be read-only, and a guest cannot create links, open
//     devices or block on pipes. wazero's own directory mount follows relative
//     symlinks to any directory.
//   - A deadline stops every guest, including guests that loop, sleep or wait
//     for input.
//   - Memory, output and the size of a module are limited. Tables (up to 1 GiB
//     each in wazero) and the compiler's memory are limited only by the sandbox.
//   - The guest has no sockets and no host functions except WASI.
//
// # Compiled code
//
// Compiling a module takes up to a second; loading compiled code takes
// milliseconds. Compiled code runs without checks, so anyone who can write it
// controls everyone who runs it. Each module therefore has its own directory,
// which the caller names after the digest of the module. A worker in compile
// mode (or [Compile]) fills it once and can write only this directory. Every
// run mounts it read-only. A run never writes compiled code; without a usable
// entry it compiles in memory. On systems without a wazero compiler the guest
// is interpreted, and compile mode only checks the module.
package wasm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// Exit codes of [Main], in addition to the guest's. They follow env(1),
// timeout(1) and the shell.
const (
	ExitTimeout = 124 // the deadline passed
	ExitWorker  = 125 // the worker failed, or the output limit was reached
	ExitModule  = 126 // the module is missing, too large, invalid, or not a WASI command
	ExitTrap    = 134 // the guest was stopped by a trap: unreachable code, out of bounds, call stack exhausted
)

// MaxModule is the maximum size of a module in bytes.
const MaxModule = 32 << 20

// Default values of the options of [Main].
const (
	DefaultMemory  = 512 << 20
	DefaultTimeout = time.Minute
	DefaultOutput  = 4 << 20
)

// Usage describes the command line of [Main] for its callers.
const Usage = "[--cache DIR] [--memory BYTES] [--timeout D] [--output BYTES] [--dir GUEST=HOST[:ro]]... -- MODULE [ARG]..." +
	" or --compile --cache DIR [--timeout D] -- MODULE"

// Main runs the worker and returns the exit code for the process. It must be
// called once, by a process that then exits with that code. A guest that is
// blocked after a deadline, in the compiler or in reading stdin or writing
// stdout, keeps its goroutine until the process exits.
//
// The arguments are (see [Usage]):
//
//	--dir GUEST=HOST[:ro]   mount the directory HOST at GUEST; repeatable. GUEST is absolute, or "."
//	                        for C and Rust programs that open relative paths. The first mount is the
//	                        working directory of a guest without PWD.
//	--memory BYTES          the guest's linear memory, default 512 MiB, rounded down to 64 KiB
//	--timeout D             a Go duration, default 1m; 0 means none, for a server
//	--output BYTES          limit for each of stdout and stderr, default 4 MiB; 0 means none. A guest
//	                        that writes more is stopped.
//	--cache DIR             the directory of this module, read-only
//	--compile               fill --cache and run nothing
//	-- MODULE ARG…          the guest's argv, with MODULE as its first element
//
// environ is the guest's whole environment. The result is the guest's exit code
// (255 for a larger one), or one of the Exit codes after printing the reason to
// stderr on a single line. After a trap, the guest's stack follows.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) (code int) {
	j, err := parseArgs(args)
	if err == nil {
		j.stdin, j.stdout, j.stderr, j.environ = stdin, stdout, stderr, environ
		code, err = j.run(context.Background())
	}
	if err != nil {
		fmt.Fprintf(stderr, "loadout wasm: %v\n", err)
		return exitCode(err)
	}
	return code
}

func parseArgs(args []string) (*workerRun, error) {
	j := &workerRun{}
	f := flag.NewFlagSet("wasm", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&j.cache, "cache", "", "")
	f.Int64Var(&j.memory, "memory", DefaultMemory, "")
	f.Int64Var(&j.output, "output", DefaultOutput, "")
	f.DurationVar(&j.timeout, "timeout", DefaultTimeout, "")
	f.BoolVar(&j.compile, "compile", false, "")
	f.Func("dir", "", func(s string) error {
		m, err := parseMount(s)
		j.mounts = append(j.mounts, m)
		return err
	})
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	j.args = f.Args()
	switch {
	case len(j.args) == 0:
		return nil, errors.New("missing module; usage: " + Usage)
	case j.memory < pageSize || j.memory > maxPages*pageSize:
		return nil, fmt.Errorf("--memory %d out of range (want %d to %d)", j.memory, pageSize, int64(maxPages*pageSize))
	case j.output < 0 || j.timeout < 0:
		return nil, errors.New("--output and --timeout cannot be negative")
	case j.compile && j.cache == "":
		return nil, errors.New("--compile requires --cache")
	}
	seen := map[string]bool{}
	for _, m := range j.mounts {
		if seen[m.guest] {
			return nil, fmt.Errorf("duplicate --dir %s", m.guest)
		}
		seen[m.guest] = true
	}
	return j, nil
}

// mount maps a host directory to a path in the guest.
type mount struct {
	guest, host string
	readOnly    bool
}

// parseMount parses GUEST=HOST[:ro].
func parseMount(s string) (mount, error) {
	guest, host, ok := strings.Cut(s, "=")
	host, readOnly := strings.CutSuffix(host, ":ro")
	if !ok || host == "" || guest != "." && (!path.IsAbs(guest) || path.Clean(guest) != guest) {
		return mount{}, fmt.Errorf("invalid mount %q: want GUEST=HOST or GUEST=HOST:ro, with a clean absolute path as GUEST", s)
	}
	return mount{guest: guest, host: host, readOnly: readOnly}, nil
}

// failure is an error with the exit code that it causes.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func exitCode(err error) int {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return ExitWorker
}
