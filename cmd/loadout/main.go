// Command loadout finds skills for AI agents and serves them over MCP, in a
// chat and on a hub. Run loadout --help for its commands; docs/ has a page for
// each kind of user.
//
// Each command is in FAMILY_COMMAND.go, with its flags, help text and output.
// The help lists the families, and app.go adds their commands. The commands
// call the packages that implement their features; internal/setup opens the
// user's configuration, skills and servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/operator"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/internal/wasm"
)

func main() { runAs(nil, operator.File{}) }

// runAs runs the program and exits. caller determines who runs the program; if
// it is nil, runAs detects that. Only tests pass a caller and an
// administrator's file.
func runAs(caller func() presence.Caller, administrator operator.File) {
	if len(os.Args) > 1 && os.Args[1] == execution.WASMCommand {
		os.Exit(wasm.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ())) // in a sandbox
	}
	delayFirstGC(os.Getenv)
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // room for the second, which may follow at once
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan int, 1)
	var needs atomic.Int64 // time allowed for shutdown
	needs.Store(int64(shutdownTimeout))
	go func() {
		ended <- run(ctx, os.Args[1:], environment{
			stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, caller: caller, operator: administrator, shutdownTime: &needs,
		})
	}()
	select {
	case code := <-ended:
		os.Exit(code)
	case <-signals:
		cancel()
	}
	select {
	case code := <-ended:
		os.Exit(code)
	case <-signals: // the second ends the program immediately
		os.Exit(exit.Interrupted)
	case <-time.After(time.Duration(needs.Load())):
		os.Exit(exit.Interrupted)
	}
}

// delayFirstGC makes the first garbage collection happen at 16 MB instead of 4 MB,
// which most commands never reach. Listing 1,200 skills then takes 15% less CPU
// time. Later collections happen as usual, so that large setups need no more
// memory.
func delayFirstGC(getenv func(string) string) {
	if getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(400)
	resetGC = runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}

var resetGC runtime.Cleanup // undoes delayFirstGC

// setGCPercent calls [debug.SetGCPercent] and cancels the effect of
// delayFirstGC.
func setGCPercent(percent int) {
	resetGC.Stop()
	debug.SetGCPercent(percent)
}

// shutdownTimeout is the time allowed for shutdown after a signal, unless the
// command requests more.
const shutdownTimeout = 3 * time.Second

// environment holds everything that a command uses, except files.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	caller         func() presence.Caller // nil detects who runs the program
	operator       operator.File
	moreSources    []catalog.Source // only tests set it
	shutdownTime   *atomic.Int64    // see setShutdownTimeout; may be nil
}

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, env environment) int {
	out := &console.StdoutWriter{Writer: env.stdout}
	env.stdout = out
	a := newApp(env)
	cmd := a.commandFor(args)
	cmd.SetArgs(args)
	cmd.SetIn(env.stdin)
	cmd.SetOut(env.stdout)
	cmd.SetErr(env.stderr)
	err := cmd.ExecuteContext(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		if console.IsTerminal(env.stderr) {
			fmt.Fprintln(env.stderr) // after ^C
		}
		return exit.Interrupted
	case err != nil:
		return a.reportError(err)
	case errors.Is(out.Err, syscall.EPIPE):
		return exit.Failure // the reader closed the pipe
	case out.Err != nil:
		return a.reportError(exit.Errorf(exit.Failure, "free disk space, or write to another location", "write standard output: %w", fileerror.Cause(out.Err)))
	}
	a.RemoveAnswered(ctx)
	return exit.OK
}
