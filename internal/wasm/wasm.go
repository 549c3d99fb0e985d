// Package wasm is the worker that runs one WebAssembly script of a skill: a WASI preview 1 command.
//
// The worker is a process of its own that the sandbox starts inside the sandbox, as it starts a shell for a shell
// script, with the same directories and variables. The caller hands that process to [Main] and exits with what Main
// returns. The process, not this package, is the boundary: the machine code that runs was made from a stranger's
// module. What this package adds inside it:
//
//   - Files go through [os.Root], so a link cannot lead out of a mount, a mount can be read-only, and a guest cannot
//     make links, open a device or block on a pipe. wazero's own directory mount follows a relative link to anywhere.
//   - A deadline ends every guest: one that loops, one that sleeps, and one that waits for input nobody sends.
//   - Memory, output and the size of a module have limits. Tables (wazero allows 1 GiB for each) and the memory of the
//     compiler have none here: the sandbox limits the process.
//   - No sockets, no host functions but WASI.
//
// # Compiled code
//
// Compiling a module takes up to a second, loading compiled code milliseconds. Compiled code is a program that runs
// without a check, so whoever can write it can be everybody who runs it. Therefore there is one directory for each
// module, which the caller names after the digest of its bytes. It is filled once, by a worker in compile mode (or [Compile])
// that sees this one directory writable and nothing else; every run gets it read-only. A run never writes compiled
// code: without a usable entry it compiles in memory. On a system for which wazero has no compiler the guest is
// interpreted, and compile mode only checks the module.
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

// Exit codes of [Main] besides the guest's own, the usual ones of env(1) and timeout(1) and of an aborted process.
const (
	ExitTimeout = 124 // the deadline passed
	ExitWorker  = 125 // the worker could not do its work, or the output limit was reached
	ExitModule  = 126 // the module is missing, too large, invalid, or not a WASI command
	ExitTrap    = 134 // the guest was stopped by a trap: unreachable code, out of bounds, call stack exhausted
)

// MaxModule is the largest module that is compiled or run, in bytes.
const MaxModule = 32 << 20

// Defaults of the options of [Main].
const (
	DefaultMemory  = 512 << 20
	DefaultTimeout = time.Minute
	DefaultOutput  = 4 << 20
)

// Usage is the command line that [Main] understands, for the one who puts it together.
const Usage = "[--cache DIR] [--memory BYTES] [--timeout D] [--output BYTES] [--dir GUEST=HOST[:ro]]... -- MODULE [ARG]..." +
	" or --compile --cache DIR [--timeout D] -- MODULE"

// Main runs the worker and returns the exit code for the process. It is called once, by a process that exits with
// that code: after a deadline a guest that is blocked in a read of stdin, a write to stdout or the compiler is left
// behind in its goroutine, because nothing but the end of the process can stop it.
//
// args are (see [Usage]):
//
//	--dir GUEST=HOST[:ro]   HOST is the directory GUEST of the guest, repeatable. The first one is the working
//	                        directory of a guest that has none in PWD. GUEST is absolute, or "." for C and Rust
//	                        programs that open relative paths.
//	--memory BYTES          the guest's linear memory, default 512 MiB, rounded down to 64 KiB
//	--timeout D             a Go duration, default 1m; 0 is none, for a server
//	--output BYTES          each of stdout and stderr, default 4 MiB; 0 is none. The guest ends when it writes more.
//	--cache DIR             the directory of this module, read only
//	--compile               fill --cache and run nothing
//	-- MODULE ARG…          the guest's argv, with MODULE as its first element
//
// environ is the whole environment of the guest. The result is the guest's exit code (255 for a larger one), or one
// of the Exit codes with one line on stderr that says why; a trap is followed by the stack of the guest.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) (code int) {
	j, err := parse(args)
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

// parse reads the command line of the worker.
func parse(args []string) (*job, error) {
	j := &job{}
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
		return nil, errors.New("no module to run; usage: " + Usage)
	case j.memory < pageSize || j.memory > maxPages*pageSize:
		return nil, fmt.Errorf("--memory %d is not between %d and %d", j.memory, pageSize, int64(maxPages*pageSize))
	case j.output < 0 || j.timeout < 0:
		return nil, errors.New("--output and --timeout cannot be negative")
	case j.compile && j.cache == "":
		return nil, errors.New("--compile needs --cache")
	}
	seen := map[string]bool{}
	for _, m := range j.mounts {
		if seen[m.guest] {
			return nil, fmt.Errorf("--dir %s is given twice", m.guest)
		}
		seen[m.guest] = true
	}
	return j, nil
}

// mount is a host directory at a place of the guest.
type mount struct {
	guest, host string
	readOnly    bool
}

// parseMount reads GUEST=HOST[:ro].
func parseMount(s string) (mount, error) {
	guest, host, ok := strings.Cut(s, "=")
	host, readOnly := strings.CutSuffix(host, ":ro")
	if !ok || host == "" || guest != "." && (!path.IsAbs(guest) || path.Clean(guest) != guest) {
		return mount{}, fmt.Errorf("%q is not GUEST=HOST or GUEST=HOST:ro with an absolute clean GUEST", s)
	}
	return mount{guest: guest, host: host, readOnly: readOnly}, nil
}

// failure is an error with the exit code it stands for.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// exitCode is the code that err stands for.
func exitCode(err error) int {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return ExitWorker
}
