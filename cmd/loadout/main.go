// Command loadout gives AI agents the right skill at the right moment. Run
// loadout --help for what it can do; docs/ has a page for each kind of user.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
	})
	stop()
	os.Exit(code)
}

// environment is everything a command sees of the world besides files.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

// run is the whole command. It returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	a := &app{environment: env}
	cmd := a.command()
	cmd.SetArgs(args)
	cmd.SetIn(env.stdin)
	cmd.SetOut(env.stdout)
	cmd.SetErr(env.stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return a.report(err)
}
