// Command loadout gives AI agents the right skill at the right moment. Run
// loadout --help for what it can do; docs/ has a page for each kind of user.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/wasm"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == loadout.WASMCommand {
		os.Exit(wasm.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ())) // in a sandbox
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ended := make(chan int, 1)
	var needs atomic.Int64 // how long it may take to end
	needs.Store(int64(patience))
	go func() {
		ended <- run(ctx, os.Args[1:], environment{
			stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, needs: &needs,
		})
	}()
	select {
	case code := <-ended:
		os.Exit(code)
	case <-ctx.Done():
	}
	stop() // a second signal ends the program at once
	select {
	case code := <-ended:
		os.Exit(code)
	case <-time.After(time.Duration(needs.Load())):
		os.Exit(exitInterrupted)
	}
}

// patience is how long what runs may take to end after a signal, unless it says that it
// needs longer.
const patience = 3 * time.Second

// environment is everything a command sees of the world besides files.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	needs          *atomic.Int64 // see needsToEnd; may be nil
}

// needsToEnd says how long the command may take to end once it was told to.
func (e environment) needsToEnd(d time.Duration) {
	if e.needs != nil {
		e.needs.Store(int64(max(d, patience)))
	}
}

// run is the whole command. It returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	out := &stream{Writer: env.stdout}
	env.stdout = out
	a := &app{environment: env}
	cmd := a.command()
	cmd.SetArgs(args)
	cmd.SetIn(env.stdin)
	cmd.SetOut(env.stdout)
	cmd.SetErr(env.stderr)
	err := cmd.ExecuteContext(ctx)
	switch {
	case errors.Is(err, context.Canceled) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		if isTerminal(env.stderr) {
			fmt.Fprintln(env.stderr) // behind ^C
		}
		return exitInterrupted
	case err != nil:
		return a.report(err)
	case errors.Is(out.err, syscall.EPIPE):
		return exitFound // whoever read has gone, and needs no message
	case out.err != nil:
		return a.report(fail(exitFound, "make room for it, or write it elsewhere", "write standard output: %w", reason(out.err)))
	}
	return exitOK
}
