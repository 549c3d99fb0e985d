package setup

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/internal/serverstate"
	"github.com/loadout-dev/loadout/policy"
)

// Caller determines whether the user or an agent runs this command.
func (s *Setup) Caller() presence.Caller {
	if s.DetectCaller != nil {
		return s.DetectCaller()
	}
	var clients []int
	if dir := s.ProcessesDir(); dir != "" {
		running, _ := serverstate.List(dir) // without the list, the other signs still count
		for _, p := range running {
			clients = append(clients, p.Callers...)
		}
	}
	return presence.Detect(presence.Options{Getenv: s.Getenv, Self: os.Getpid(), Clients: clients})
}

// ProcessesDir returns the directory with the state of running processes, or ""
// if there is no state directory.
func (s *Setup) ProcessesDir() string {
	if d := s.StateDir(); d != "" {
		return filepath.Join(d, "running")
	}
	return ""
}

// RequireUser checks that a user, and not an agent, runs the command. It
// returns a description of the evidence, for [policy.Grant.Presence]. After the
// command has succeeded, call [Setup.RemoveAnswered]. If an agent runs the
// command or there is no terminal, it records the request and returns an error.
// The error names the command loadout ARGS for the user to type. If no agent
// runs the command and hint is not "", the error has that hint. Otherwise its
// hint is the command that lists such requests.
func (s *Setup) RequireUser(ctx context.Context, hint string, args ...string) (string, error) {
	if len(args) > 0 && slices.Contains(managedCommands, args[0]) && s.IsManaged() {
		s.recordRefusal(ctx, args, "policy.presence is managed")
		return "", s.managedError(args)
	}
	c := s.Caller()
	if c.IsUser() {
		s.answered = args
		return "terminal " + c.Terminal, nil
	}
	if c.Agent != "" {
		hint = ""
	}
	return "", s.refuse(ctx, args, c.Reason(), hint)
}

// RefuseAgent returns an error if an agent runs the command loadout ARGS, and
// records the request. Unlike [Setup.RequireUser], it accepts a command without
// a terminal, such as that of an installation script.
func (s *Setup) RefuseAgent(ctx context.Context, args ...string) error {
	c := s.Caller()
	if c.Agent == "" {
		s.answered = args
		return nil
	}
	return s.refuse(ctx, args, c.Reason(), "")
}

// refuse records that the command with the given arguments was refused, and returns
// the error to report.
func (s *Setup) refuse(ctx context.Context, args []string, reason, hint string) error {
	if hint == "" {
		hint = "ask the user; they can list such requests: loadout approve --pending"
	}
	s.AddPending(ctx, PendingRequest{Args: args, Reason: reason})
	s.recordRefusal(ctx, args, reason)
	return exit.Errorf(exit.Refused, hint, "the user can run `%s` in their own terminal: %s", formatCommand(args), reason)
}

// managedCommands lists the commands for permissions that only the
// administrator can grant in managed mode. Other commands concern only the
// user's own servers.
var managedCommands = []string{"approve", "run", "secret", "serve", "trust"}

// recordRefusal writes a refused command to the audit log.
func (s *Setup) recordRefusal(ctx context.Context, args []string, reason string) {
	log := s.AuditLog()
	if log == nil || len(args) == 0 {
		return
	}
	r := policy.Record{Principal: policy.LocalUser(), Action: args[0], Name: strings.Join(args[1:], " "), Decision: policy.Deny, Reason: reason}
	if err := log(ctx, r); err != nil {
		s.Note("cannot record the refusal: %v", err)
	}
}

// formatCommand returns the command loadout ARGS as the user types it.
func formatCommand(args []string) string {
	var b strings.Builder
	b.WriteString("loadout")
	for _, a := range args {
		b.WriteString(" " + console.ShellQuote(a))
	}
	return b.String()
}
