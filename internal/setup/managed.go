package setup

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/operator"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
)

// IsManaged reports whether only approvals by the administrator of this machine
// are valid. It also returns true if the administrator's file cannot be read;
// the user's approvals then have no effect.
func (s *Setup) IsManaged() bool {
	managed, err := config.Input{Operator: &s.Operator}.IsManaged()
	return managed || err != nil
}

// managedError returns the error for the command loadout ARGS in managed mode,
// where only the administrator's file can grant permissions.
func (s *Setup) managedError(args []string) error {
	switch {
	case len(args) > 1 && (args[0] == "approve" || args[0] == "run"):
		return exit.Errorf(exit.Refused, "an administrator can add it to policy.approved in "+s.operatorFile(),
			"run `%s` to see what an administrator must approve: policy.presence is managed", formatCommand([]string{"approve", args[1], "--dry-run"})+s.SkillFlags())
	case args[0] == "serve":
		return exit.Errorf(exit.Refused, "run the hub on another machine", "a hub's own approvals do not count on this machine: policy.presence is managed")
	case args[0] == "secret":
		return exit.Errorf(exit.Refused, "an administrator can approve the skill, with the secrets that it requests: policy.approved in "+s.operatorFile(),
			"`%s` does not count on this machine: policy.presence is managed", formatCommand(args))
	}
	return exit.Errorf(exit.Refused, "ask an administrator of the machine; the mode is set in "+s.operatorFile(),
		"`%s` does not count on this machine: policy.presence is managed", formatCommand(args))
}

// ScriptHost describes the interpreters of scripts.
func (s *Setup) ScriptHost(managed bool) script.Host { return script.HostOf(s.scriptEnv(managed)) }

// scriptEnv returns the environment variables that select the interpreters of
// scripts. In managed mode, this is only PATH, reduced to the directories in
// which only the administrator can place programs. Otherwise an agent could
// replace the code that the administrator approved.
func (s *Setup) scriptEnv(managed bool) func(string) string {
	if !managed {
		return s.Getenv
	}
	path := operator.SafePath(s.Getenv("PATH"))
	return func(name string) string {
		if name == "PATH" {
			return path
		}
		return ""
	}
}

// operatorFile returns the path of the administrator's configuration file.
func (s *Setup) operatorFile() string { return s.Operator.Path() }

// closedGrants is the grant store of the user in managed mode. It has no grants.
type closedGrants struct{ file string }

var _ policy.Store = closedGrants{}

func (g closedGrants) Find(_ context.Context, _ policy.Principal, subject policy.Digest, _ string) (*policy.Grant, error) {
	return nil, &lease.NotGrantedError{Reason: "not approved by the administrator of this machine",
		Hint: fmt.Sprintf("an administrator can add NAME=%s to policy.approved in %s", subject, g.file)}
}

func (g closedGrants) List(context.Context) ([]policy.Grant, []policy.Problem, error) {
	return nil, nil, nil
}

func (g closedGrants) Put(context.Context, policy.Grant) (policy.Grant, error) {
	return policy.Grant{}, fmt.Errorf("only the administrator can approve on this machine, by editing policy.approved in %s: %w", g.file, policy.ErrNotGranted)
}

func (g closedGrants) Revoke(_ context.Context, what string) ([]policy.Grant, error) {
	return nil, fmt.Errorf("revoke %.200q: only the administrator can revoke on this machine, by editing policy.approved in %s: %w", what, g.file, policy.ErrNotGranted)
}
