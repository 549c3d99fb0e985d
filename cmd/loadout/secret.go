package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/policy"
)

type secretOutput struct {
	Name    string        `json:"name"`
	Set     bool          `json:"set"`
	Changed time.Time     `json:"changed,omitzero"`
	Skills  []secretSkill `json:"skills"` // that were granted it
}

// secretSkill is a skill that may have a secret.
type secretSkill struct {
	Name   string        `json:"name"`
	Digest policy.Digest `json:"digest"`
}

type secretGrant struct {
	Name   string        `json:"name"`
	Set    bool          `json:"set"`
	Skill  string        `json:"skill"`
	Origin string        `json:"origin"`
	Digest policy.Digest `json:"digest"`
	Grant  policy.Grant  `json:"grant"`
}

func (a *app) secretCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "secret",
		Short: "Keep keys and tokens for skills and servers",
		Long: `Keep keys and tokens for skills and MCP servers, in a file that only you can read.
Your own servers name one as ${{secrets.NAME}}. A skill gets one only where it was
granted to it, as it is now: by approving it, or by loadout secret grant. Values are
never shown. The variable LOADOUT_SECRET_NAME stands in for one that is not set here.`,
		Example: `  loadout secret set GITHUB_TOKEN
  pass show github | loadout secret set GITHUB_TOKEN
  loadout secret grant GITHUB_TOKEN --skill github
  loadout secret list`,
	})
	var skill string
	var remove bool
	grant := &cobra.Command{
		Use:   "grant NAME --skill SKILL",
		Short: "Let a skill have a secret, until a file of it changes",
		Long: `Let a skill have a secret, until a file of it changes. It need not be set yet. With
--remove the skill may have it no more, and keeps what else was approved; what runs
already is ended by loadout approve --revoke.`,
		Example: "  loadout secret grant GITHUB_TOKEN --skill github\n  loadout secret grant GITHUB_TOKEN --skill github --remove",
		Args:    want(1, 1, "the NAME of a secret"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if skill == "" {
				return fail(exitUsage, "as: loadout secret grant NAME --skill SKILL", "secret grant needs the skill that is to have it")
			}
			if remove {
				return a.secretUngrant(cmd.Context(), args[0], skill)
			}
			return a.secretGrant(cmd.Context(), args[0], skill)
		},
	}
	grant.Flags().BoolVar(&remove, "remove", false, "take it back: the skill may have it no more")
	grant.Flags().StringVar(&skill, "skill", "", "the `SKILL` that is to have it")
	cmd.AddCommand(&cobra.Command{
		Use:   "set NAME",
		Short: "Set a secret, from the terminal or standard input",
		Long: `Set a secret. Its value is asked for on a terminal, without showing it, or read
from standard input, without a line end at its end. It is never an argument: those
can be seen by other programs.`,
		Example: "  loadout secret set GITHUB_TOKEN\n  loadout secret set GITHUB_TOKEN < token.txt",
		Args:    want(1, 1, "the NAME of a secret, and not its value"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.secretSet(cmd.Context(), args[0]) },
	}, &cobra.Command{
		Use:     "list",
		Short:   "List the names of secrets, and which skills may have them",
		Example: "  loadout secret list\n  loadout secret list --json",
		Args:    want(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.secretList(cmd.Context()) },
	}, &cobra.Command{
		Use:     "rm NAME",
		Short:   "Forget a secret",
		Example: "  loadout secret rm GITHUB_TOKEN",
		Args:    want(1, 1, "the NAME of a secret"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.secretRemove(cmd.Context(), args[0]) },
	}, grant)
	return cmd
}

// secretStore is where this person's secrets are kept.
func (a *app) secretStore() (*secrets.Store, error) {
	d := a.stateDir()
	if d == "" {
		return nil, fail(exitFound, "set LOADOUT_STATE to a directory that is yours", "there is no place to keep secrets")
	}
	return secrets.New(filepath.Join(d, "secrets")), nil
}

// secret is the value of a secret: what was set, else LOADOUT_SECRET_NAME, else
// "". It decides nothing: who asks has looked whether it was granted.
func (a *app) secret(_ context.Context, name string) (string, error) {
	if store, err := a.secretStore(); err == nil {
		switch value, err := store.Get(name); {
		case err == nil:
			return value, nil
		case !errors.Is(err, secrets.ErrNotSet):
			return "", err
		}
	}
	return a.getenv("LOADOUT_SECRET_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))), nil
}

// secretName checks a name that a person typed, and does not repeat what could
// be a value.
func secretName(name string) error {
	if policy.CheckSecretName(name) != nil {
		return fail(exitUsage, "as: loadout secret set GITHUB_TOKEN; the value is asked for", "that is no name of a secret: letters, digits and _ are one")
	}
	return nil
}

func (a *app) secretSet(ctx context.Context, name string) error {
	if err := secretName(name); err != nil {
		return err
	}
	store, err := a.secretStore()
	if err != nil {
		return err
	}
	value, err := a.readSecret(ctx, name)
	if err != nil {
		return err
	}
	if err := store.Set(ctx, name, value); err != nil {
		return a.secretFailed(err)
	}
	if err := a.recordSecret(ctx, "secret-set", name); err != nil {
		return err
	}
	if a.json {
		out, err := a.secretNow(ctx, name)
		if err != nil {
			return err
		}
		return a.printJSON(out)
	}
	fmt.Fprintf(a.stdout, "Set: %s. To let a skill have it: loadout secret grant %s --skill SKILL\n", name, name)
	return nil
}

// readSecret reads a value where nobody sees it.
func (a *app) readSecret(ctx context.Context, name string) (string, error) {
	type answer struct {
		value []byte
		err   error
	}
	read := make(chan answer, 1)
	restore := func() {}
	if f, ok := file(a.stdin); ok && isTerminal(a.stdin) {
		fmt.Fprintf(a.stderr, "Value of %s (it does not show): ", name)
		if state, err := term.GetState(int(f.Fd())); err == nil {
			restore = func() { _ = term.Restore(int(f.Fd()), state) } // the echo, where it is interrupted
		}
		go func() { // ends with the program, where nobody answers
			b, err := term.ReadPassword(int(f.Fd()))
			fmt.Fprintln(a.stderr)
			read <- answer{b, err}
		}()
	} else {
		go func() {
			b, err := io.ReadAll(io.LimitReader(a.stdin, secrets.MaxValue+3))
			read <- answer{b, err}
		}()
	}
	select {
	case <-ctx.Done():
		restore()
		return "", context.Cause(ctx)
	case got := <-read:
		if got.err != nil {
			return "", fail(exitFound, "give it on standard input: loadout secret set "+name+" < FILE", "read the value: %w", reason(got.err))
		}
		value := bytes.TrimSuffix(bytes.TrimSuffix(got.value, []byte("\n")), []byte("\r"))
		if len(value) == 0 {
			return "", fail(exitUsage, "to forget a secret: loadout secret rm "+name, "the value of %s is empty", name)
		}
		return string(value), nil
	}
}

// secretFailed ends an error of the store in a next step.
func (a *app) secretFailed(err error) error {
	if _, ok := errors.AsType[*policy.UnsafeError](err); ok {
		return fail(exitRefused, "look at it, who owns it and who can read it; as: chmod 600", "%w", err)
	}
	if a.ownPlace(err) != "" {
		return err
	}
	return fail(exitFound, "see what there is: loadout secret list", "%w", err)
}

func (a *app) secretList(ctx context.Context) error {
	store, err := a.secretStore()
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return a.secretFailed(err)
	}
	granted, err := a.secretSkills(ctx)
	if err != nil {
		return err
	}
	out := struct {
		Secrets []secretOutput `json:"secrets"`
	}{[]secretOutput{}}
	for _, s := range list {
		out.Secrets = append(out.Secrets, secretOutput{s.Name, true, s.Changed, append([]secretSkill{}, granted[s.Name]...)})
		delete(granted, s.Name)
	}
	var others []string
	for name := range granted {
		others = append(others, name)
	}
	slices.Sort(others)
	for _, name := range others { // granted, and waited for
		out.Secrets = append(out.Secrets, secretOutput{Name: name, Skills: granted[name]})
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(out.Secrets) == 0 {
		fmt.Fprintln(a.stdout, "No secret is set. To set one: loadout secret set NAME")
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
	a.table("", rows)
	return nil
}

// secretSkills are the skills that were granted secrets, by name of the secret.
func (a *app) secretSkills(ctx context.Context) (map[string][]secretSkill, error) {
	grants, problems, err := a.grants().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		a.note("an approval that cannot be read counts for nothing: %s", p)
	}
	out := map[string][]secretSkill{}
	for _, g := range grants {
		k := secretSkill{g.Name, g.Subject}
		for _, s := range g.Allows.Secrets {
			if !g.Expired(time.Now()) && !slices.Contains(out[s], k) {
				out[s] = append(out[s], k)
			}
		}
	}
	return out, nil
}

func (a *app) secretRemove(ctx context.Context, name string) error {
	if err := secretName(name); err != nil {
		return err
	}
	store, err := a.secretStore()
	if err != nil {
		return err
	}
	switch err := store.Remove(ctx, name); {
	case errors.Is(err, secrets.ErrNotSet):
		granted, err := a.secretSkills(ctx)
		if skills := granted[name]; err == nil && len(skills) > 0 {
			return fail(exitNotFound, fmt.Sprintf("to take it from skill %s, which was granted it: loadout secret grant %s --skill %s --remove", skills[0].Name, name, quoted(skills[0].Name)), "secret %s is not set", name)
		}
		return fail(exitNotFound, "see what there is: loadout secret list", "secret %s is not set", name)
	case err != nil:
		return a.secretFailed(err)
	}
	if err := a.recordSecret(ctx, "secret-remove", name); err != nil {
		return err
	}
	out, err := a.secretNow(ctx, name)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	fmt.Fprintf(a.stdout, "Forgotten: %s\n", name)
	for _, k := range out.Skills {
		a.note("skill %s is still allowed to have it, if it is set again; to withdraw that: loadout secret grant %s --skill %s --remove", k.Name, name, quoted(k.Name))
	}
	return nil
}

// secretNow is how it is with one secret.
func (a *app) secretNow(ctx context.Context, name string) (*secretOutput, error) {
	granted, err := a.secretSkills(ctx)
	if err != nil {
		return nil, err
	}
	out := &secretOutput{Name: name, Skills: append([]secretSkill{}, granted[name]...)}
	store, err := a.secretStore()
	if err != nil {
		return nil, err
	}
	list, err := store.List()
	if err != nil {
		return nil, a.secretFailed(err)
	}
	for _, s := range list {
		if s.Name == name {
			out.Set, out.Changed = true, s.Changed
		}
	}
	return out, nil
}

// secretGrant lets a skill have a secret, as the skill is now. What else was
// approved of it stays.
func (a *app) secretGrant(ctx context.Context, name, skill string) error {
	if err := secretName(name); err != nil {
		return err
	}
	rt, _, err := a.openScripts(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	if _, err := a.resolve(ctx, rt, skill); err != nil {
		return err
	}
	w, err := rt.Wish(ctx, skill)
	if err != nil {
		return err
	}
	g := policy.Grant{Principal: policy.Local(), By: policy.Local(), Subject: w.Digest, Name: w.Entry.Name, Origin: w.Entry.Origin, Needs: w.Needs, Scope: policy.Always}
	had, err := a.grants().Find(ctx, policy.Local(), w.Digest, "")
	switch {
	case errors.Is(err, policy.ErrNotGranted):
	case err != nil:
		return err
	case had.NeedsExactly(w.Needs): // else what was approved counts for nothing, and is not revived
		g.Allows, g.Expires, g.Scope = had.Allows, had.Expires, had.Scope
	}
	if !slices.Contains(g.Allows.Secrets, name) {
		g.Allows.Secrets = append(g.Allows.Secrets, name)
	}
	kept, err := a.grants().Put(ctx, g)
	if err != nil {
		return fmt.Errorf("grant secret %s to %s: %w", name, w.Entry.Name, err)
	}
	if err := a.record(ctx, "approve", kept); err != nil {
		return err
	}
	value, err := a.secret(ctx, name)
	if err != nil {
		return a.secretFailed(err)
	}
	if a.json {
		return a.printJSON(secretGrant{name, value != "", w.Entry.Name, w.Entry.Origin, w.Digest, kept})
	}
	if value == "" {
		fmt.Fprintf(a.stdout, "Noted: %s is not set; once it is, skill %s may have it until a file of it changes. To set it: loadout secret set %s\n", name, plain(w.Entry.Name), name)
	} else {
		fmt.Fprintf(a.stdout, "Granted: skill %s may have %s until a file of it changes.\n", plain(w.Entry.Name), name)
	}
	if !kept.Allows.Run {
		a.note("its scripts and servers are not approved; to approve them: loadout approve %s%s", quoted(w.Entry.Name), a.flags())
	}
	return nil
}

// secretUngrant takes a secret from a skill, which need not be here any more. What
// else was approved of it stays.
func (a *app) secretUngrant(ctx context.Context, name, skill string) error {
	if err := secretName(name); err != nil {
		return err
	}
	grants, _, err := a.grants().List(ctx)
	if err != nil {
		return err
	}
	var changed []policy.Grant
	for _, g := range grants {
		if g.Name != skill && g.Origin+"/"+g.Name != skill || !slices.Contains(g.Allows.Secrets, name) {
			continue
		}
		g.Allows.Secrets = slices.DeleteFunc(slices.Clone(g.Allows.Secrets), func(s string) bool { return s == name })
		action := "approve"
		if g.Expired(time.Now()) || !g.Allows.Run && len(g.Allows.Secrets) == 0 {
			action = "revoke"
			_, err = a.grants().Revoke(ctx, g.ID)
		} else {
			g, err = a.grants().Put(ctx, g)
		}
		if err != nil {
			return fmt.Errorf("take secret %s from %s: %w", name, skill, err)
		}
		if err := a.record(ctx, action, g); err != nil {
			return err
		}
		changed = append(changed, g)
	}
	if len(changed) == 0 {
		return fail(exitNotFound, "see which skills may have it: loadout secret list", "skill %s was not granted secret %s", skill, name)
	}
	if a.json {
		out, err := a.secretNow(ctx, name)
		if err != nil {
			return err
		}
		return a.printJSON(out)
	}
	fmt.Fprintf(a.stdout, "Taken back: skill %s may have %s no more.\n", plain(skill), name)
	return nil
}

// recordSecret keeps in the audit log that a secret changed.
func (a *app) recordSecret(ctx context.Context, action, name string) error {
	log := a.audit()
	if log == nil {
		return nil
	}
	if err := log.Append(ctx, policy.Record{Principal: policy.Local(), Action: action, Name: name, Decision: policy.Allowed}); err != nil {
		return fmt.Errorf("record it: %w", err)
	}
	return nil
}

// grantedSecrets are those that a digest was granted already, which another
// approval of the same bytes keeps.
func (a *app) grantedSecrets(ctx context.Context, digest policy.Digest, needs []policy.Need) []string {
	g, err := a.grants().Find(ctx, policy.Local(), digest, "")
	if err != nil || !g.NeedsExactly(needs) {
		return nil
	}
	return g.Allows.Secrets
}
