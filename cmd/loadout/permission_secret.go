package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/secretname"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/policy"
)

type secretOutput struct {
	Name    string              `json:"name"`
	Set     bool                `json:"set"`
	Changed time.Time           `json:"changed,omitzero"`
	Skills  []setup.SecretSkill `json:"skills"` // skills with a grant
}

type secretGrantOutput struct {
	Name   string        `json:"name"`
	Set    bool          `json:"set"`
	Skill  string        `json:"skill"`
	Origin string        `json:"origin"`
	Digest policy.Digest `json:"digest"`
	Grant  policy.Grant  `json:"grant"`
}

func (a *app) secretCommand() *cobra.Command {
	cmd := commandGroup(&cobra.Command{
		Use:   "secret",
		Short: "Manage keys and tokens for skills and servers",
		Long: `Manage keys and tokens for skills and MCP servers, in a file that only you can read.
Your own servers refer to a secret as ${{secrets.NAME}}. A skill can use a secret only if
you granted it to the current version of the skill, by approving the skill or with
loadout secret grant. Values are never shown. The environment variable
LOADOUT_SECRET_NAME provides a secret that is not set here.`,
		Example: `  loadout secret set GITHUB_TOKEN
  pass show github | loadout secret set GITHUB_TOKEN
  loadout secret grant GITHUB_TOKEN --skill github
  loadout secret list`,
	})
	var skill string
	var remove bool
	grant := &cobra.Command{
		Use:   "grant NAME --skill SKILL",
		Short: "Let a skill use a secret",
		Long: `Let the current version of a skill use a secret, until one of its files changes. The
secret need not be set yet. --remove revokes this permission, but not the skill's other
permissions; to stop what is already running, use loadout approve --revoke. grant
refuses if an agent runs it, or if it has no controlling terminal.`,
		Example: "  loadout secret grant GITHUB_TOKEN --skill github\n  loadout secret grant GITHUB_TOKEN --skill github --remove",
		Args:    argCount(1, 1, "the NAME of a secret"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if skill == "" {
				return exit.Errorf(exit.Usage, "loadout secret grant NAME --skill SKILL", "no --skill given")
			}
			if remove {
				return a.revokeSecret(cmd.Context(), args[0], skill)
			}
			return a.grantSecret(cmd.Context(), args[0], skill)
		},
	}
	grant.Flags().BoolVar(&remove, "remove", false, "revoke the permission instead of granting it")
	grant.Flags().StringVar(&skill, "skill", "", "`SKILL` that may use the secret")
	cmd.AddCommand(&cobra.Command{
		Use:   "set NAME",
		Short: "Set a secret from the terminal or standard input",
		Long: `Set a secret. The value is read from the terminal without being shown, or from standard
input; a trailing newline is removed. It cannot be given as an argument, because other
programs can see arguments.`,
		Example: "  loadout secret set GITHUB_TOKEN\n  loadout secret set GITHUB_TOKEN < token.txt",
		Args:    argCount(1, 1, "the NAME of a secret, not its value"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.setSecret(cmd.Context(), args[0]) },
	}, &cobra.Command{
		Use:     "list",
		Short:   "List secrets and the skills that may use them",
		Example: "  loadout secret list\n  loadout secret list --json",
		Args:    argCount(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listSecrets(cmd.Context()) },
	}, &cobra.Command{
		Use:     "rm NAME",
		Short:   "Delete a secret",
		Example: "  loadout secret rm GITHUB_TOKEN",
		Args:    argCount(1, 1, "the NAME of a secret"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.removeSecret(cmd.Context(), args[0]) },
	}, grant)
	return cmd
}

// checkSecretName returns an error if a name typed by the user is invalid. The
// error does not repeat the name, because it may be a mistyped value.
func checkSecretName(name string) error {
	if secretname.Check(name) != nil {
		return exit.Errorf(exit.Usage, "loadout secret set GITHUB_TOKEN; the value is prompted for", "invalid secret name: use letters, digits and _")
	}
	return nil
}

func (a *app) setSecret(ctx context.Context, name string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	store, err := a.SecretStore()
	if err != nil {
		return err
	}
	value, err := a.readSecret(ctx, name)
	if err != nil {
		return err
	}
	if err := store.Set(ctx, name, value); err != nil {
		return a.secretError(err)
	}
	if err := a.Record(ctx, policy.Record{Action: "secret-set", Name: name}); err != nil {
		return err
	}
	if a.JSON {
		out, err := a.describeSecret(ctx, name)
		if err != nil {
			return err
		}
		return a.PrintJSON(out)
	}
	fmt.Fprintf(a.Stdout, "Set %s. To let a skill use it: loadout secret grant %s --skill SKILL\n", name, name)
	return nil
}

// readSecret reads a secret's value without echoing it.
func (a *app) readSecret(ctx context.Context, name string) (string, error) {
	type answer struct {
		value []byte
		err   error
	}
	read := make(chan answer, 1)
	restore := func() {}
	if f, ok := console.AsFile(a.Stdin); ok && console.IsTerminal(a.Stdin) {
		fmt.Fprintf(a.Stderr, "Value of %s (hidden): ", name)
		if state, err := term.GetState(int(f.Fd())); err == nil {
			restore = func() { _ = term.Restore(int(f.Fd()), state) } // re-enables echo after an interrupt
		}
		go func() { // ends with the process if the user does not answer
			b, err := term.ReadPassword(int(f.Fd()))
			fmt.Fprintln(a.Stderr)
			read <- answer{b, err}
		}()
	} else {
		go func() {
			b, err := io.ReadAll(io.LimitReader(a.Stdin, secrets.MaxValue+3))
			read <- answer{b, err}
		}()
	}
	select {
	case <-ctx.Done():
		restore()
		return "", context.Cause(ctx)
	case got := <-read:
		if got.err != nil {
			return "", exit.Errorf(exit.Failure, "give it on standard input: loadout secret set "+name+" < FILE", "read value: %w", fileerror.Cause(got.err))
		}
		value := bytes.TrimSuffix(bytes.TrimSuffix(got.value, []byte("\n")), []byte("\r"))
		if len(value) == 0 {
			return "", exit.Errorf(exit.Usage, "to delete a secret: loadout secret rm "+name, "the value of %s is empty", name)
		}
		return string(value), nil
	}
}

// secretError adds a hint to an error from the secret store.
func (a *app) secretError(err error) error {
	if _, ok := errors.AsType[*privatefile.UnsafeError](err); ok {
		return exit.Errorf(exit.Refused, "check its owner and permissions; for example, run chmod 600", "%w", err)
	}
	if a.ownDirHint(err) != "" {
		return err
	}
	return exit.Errorf(exit.Failure, "list the secrets: loadout secret list", "%w", err)
}

func (a *app) listSecrets(ctx context.Context) error {
	store, err := a.SecretStore()
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return a.secretError(err)
	}
	granted, err := a.SecretSkills(ctx)
	if err != nil {
		return err
	}
	out := struct {
		Secrets []secretOutput `json:"secrets"`
	}{[]secretOutput{}}
	for _, s := range list {
		out.Secrets = append(out.Secrets, secretOutput{s.Name, true, s.ChangedAt, append([]setup.SecretSkill{}, granted[s.Name]...)})
		delete(granted, s.Name)
	}
	var others []string
	for name := range granted {
		others = append(others, name)
	}
	slices.Sort(others)
	for _, name := range others { // granted but not set
		out.Secrets = append(out.Secrets, secretOutput{Name: name, Skills: granted[name]})
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	if len(out.Secrets) == 0 {
		fmt.Fprintln(a.Stdout, "No secrets yet. To set one: loadout secret set NAME")
		return nil
	}
	var rows [][]string
	for _, s := range out.Secrets {
		when, who := "not set", "no skill"
		if s.Set {
			when = s.Changed.Local().Format("2006-01-02 15:04")
		}
		var names []string
		for _, k := range s.Skills {
			names = append(names, k.Name)
		}
		if len(names) > 0 {
			who = strings.Join(names, ", ")
		}
		rows = append(rows, []string{s.Name, when, who})
	}
	a.PrintTable("", rows)
	return nil
}

func (a *app) removeSecret(ctx context.Context, name string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	store, err := a.SecretStore()
	if err != nil {
		return err
	}
	switch err := store.Remove(ctx, name); {
	case errors.Is(err, secrets.ErrNotSet):
		granted, err := a.SecretSkills(ctx)
		if skills := granted[name]; err == nil && len(skills) > 0 {
			return exit.Errorf(exit.NotFound, fmt.Sprintf("to revoke it from skill %s: loadout secret grant %s --skill %s --remove", skills[0].Name, name, console.ShellQuote(skills[0].Name)), "secret %s is not set", name)
		}
		return exit.Errorf(exit.NotFound, "list the secrets: loadout secret list", "secret %s is not set", name)
	case err != nil:
		return a.secretError(err)
	}
	if err := a.Record(ctx, policy.Record{Action: "secret-remove", Name: name}); err != nil {
		return err
	}
	out, err := a.describeSecret(ctx, name)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	fmt.Fprintf(a.Stdout, "Deleted %s.\n", name)
	for _, k := range out.Skills {
		a.Note("skill %s may still use it if it is set again; to revoke: loadout secret grant %s --skill %s --remove", k.Name, name, console.ShellQuote(k.Name))
	}
	return nil
}

// describeSecret returns the current state of a secret.
func (a *app) describeSecret(ctx context.Context, name string) (*secretOutput, error) {
	granted, err := a.SecretSkills(ctx)
	if err != nil {
		return nil, err
	}
	out := &secretOutput{Name: name, Skills: append([]setup.SecretSkill{}, granted[name]...)}
	store, err := a.SecretStore()
	if err != nil {
		return nil, err
	}
	list, err := store.List()
	if err != nil {
		return nil, a.secretError(err)
	}
	for _, s := range list {
		if s.Name == name {
			out.Set, out.Changed = true, s.ChangedAt
		}
	}
	return out, nil
}

// grantSecret lets the current version of a skill use a secret. The skill's
// other permissions are unchanged.
func (a *app) grantSecret(ctx context.Context, name, skill string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	rt, _, err := a.OpenScripts(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	if _, err := a.resolveSkill(ctx, rt, skill); err != nil {
		return err
	}
	args := append([]string{"secret", "grant", name, "--skill", skill}, a.SkillArgs()...)
	presence, err := a.RequireUser(ctx, "", args...)
	if err != nil {
		return err
	}
	yes, err := a.ConfirmUser(ctx, setup.Confirmation{Question: fmt.Sprintf("Let skill %s use the secret %s?", plain(skill), name), Args: args})
	if err == nil && !yes {
		err = exit.Errorf(exit.Refused, "list secrets and their skills: loadout secret list", "secret %s not granted to skill %s", name, skill)
	}
	if err != nil {
		return err
	}
	w, err := rt.ReadApprovalRequest(ctx, skill)
	if err != nil {
		return err
	}
	kept, err := a.GrantSecret(ctx, w, name, presence)
	if err != nil {
		return err
	}
	value, err := a.SecretValue(ctx, name)
	if err != nil {
		return a.secretError(err)
	}
	if a.JSON {
		return a.PrintJSON(secretGrantOutput{name, value != "", w.Entry.Name, w.Entry.Origin, w.Digest, kept})
	}
	if value == "" {
		fmt.Fprintf(a.Stdout, "Granted: skill %s may use %s until one of its files changes. The secret is not set yet: loadout secret set %s\n", plain(w.Entry.Name), name, name)
	} else {
		fmt.Fprintf(a.Stdout, "Granted: skill %s may use %s until one of its files changes.\n", plain(w.Entry.Name), name)
	}
	if !kept.Permissions.Run {
		a.Note("its scripts and servers are not approved; to approve them: loadout approve %s%s", console.ShellQuote(w.Entry.Name), a.SkillFlags())
	}
	return nil
}

// revokeSecret revokes a skill's access to a secret. The skill need not exist
// anymore. Its other permissions are unchanged.
func (a *app) revokeSecret(ctx context.Context, name, skill string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	changed, err := a.RevokeSecret(ctx, skill, name)
	if err != nil {
		return err
	}
	if !changed {
		return exit.Errorf(exit.NotFound, "list the skills that may use it: loadout secret list", "skill %s has no grant for secret %s", skill, name)
	}
	if a.JSON {
		out, err := a.describeSecret(ctx, name)
		if err != nil {
			return err
		}
		return a.PrintJSON(out)
	}
	fmt.Fprintf(a.Stdout, "Revoked: skill %s may no longer use %s.\n", plain(skill), name)
	return nil
}
