package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/trust"
	"github.com/loadout-dev/loadout/policy"
)

type trustFlags struct {
	list, remove, dryRun, yes bool
	digest                    string // given with --digest
}

// trustOutput is the JSON output of the trust command.
type trustOutput struct {
	Dir     string        `json:"dir"`
	Digest  policy.Digest `json:"digest"`
	Files   []trust.File  `json:"files"`
	State   string        `json:"state"`   // trusted, changed or untrusted, as of the end of the command
	Effects []string      `json:"effects"` // settings that take effect, as text
	Ignored []config.Note `json:"ignored"` // parts of the files that have no effect even if trusted
	// Problems lists invalid rules. A project with invalid rules cannot be
	// trusted, because none of its tools could be called.
	Problems []string `json:"problems"`
}

type trustList struct {
	Projects []trustedDir     `json:"projects"`
	Problems []policy.Problem `json:"problems"`
}

type trustedDir struct {
	trust.Record
	Changed bool `json:"changed,omitempty"` // whether the trust no longer applies
}

func (a *app) trustCommand() *cobra.Command {
	var o trustFlags
	cmd := &cobra.Command{
		Use:   "trust DIR",
		Short: "Trust the configuration of a project",
		Long: `Show the configuration of a project and, if you agree, apply it: its loadout.yaml,
.mcp.json and the files below .loadout. Its skills are approved separately. If a file
changes, trust the project again. Until you trust a project, it can only add deny rules
and skill directories within the project. No project can loosen the sandbox.

trust asks for confirmation. If standard input or standard error is redirected, it asks
on the controlling terminal. --yes skips the confirmation, but only with --digest or if
standard input is a terminal; --yes without --digest is deprecated. --json skips the
confirmation if neither standard input nor standard error is redirected.

Only you can trust a project: trust refuses if an agent runs it, or if it has no
controlling terminal. On an unattended machine, use --yes with --digest and the digest
that --dry-run shows.`,
		Example: `  loadout trust . --dry-run                show what would apply
  loadout trust ~/src/project
  loadout trust --list
  loadout trust --remove ~/src/project`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return argCount(0, 0, "")(cmd, args)
			}
			return argCount(1, 1, "the DIR of a project")(cmd, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"list", "remove"}, {"list", "dry-run"}, {"remove", "dry-run"}} {
				if err := checkExclusive(cmd, pair[0], pair[1]); err != nil {
					return err
				}
			}
			switch {
			case o.list:
				return a.listTrust()
			case o.remove:
				return a.removeTrust(cmd.Context(), args[0])
			}
			return a.trustProject(cmd.Context(), args[0], &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.list, "list", false, "list trusted projects")
	f.BoolVar(&o.remove, "remove", false, "revoke the trust")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would apply without recording it")
	f.StringVar(&o.digest, "digest", "", "trust the project only if it has this `DIGEST`")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (a *app) trustProject(ctx context.Context, dir string, o *trustFlags) error {
	p, err := a.readProjectToTrust(dir)
	if err != nil {
		return err
	}
	if len(p.Files) == 0 {
		return exit.Errorf(exit.NotFound, "nothing needs to be trusted; its skills are approved separately: loadout approve NAME",
			"%s has no loadout.yaml, .mcp.json or .loadout", p.Dir)
	}
	e := p.Effects(a.TrustUser())
	out := &trustOutput{Dir: p.Dir, Digest: p.Digest, Files: p.Files, State: p.State(), Effects: e.Applied, Ignored: e.Ignored, Problems: e.Problems}
	if !a.JSON {
		a.printTrust(p, out)
	}
	if o.dryRun {
		if a.JSON {
			return a.PrintJSON(out)
		}
		return nil
	}
	if len(out.Problems) > 0 {
		if a.JSON {
			if err := a.PrintJSON(out); err != nil {
				return err
			}
		}
		return exit.Errorf(exit.Failure, "fix it, and try again", "%s not trusted: invalid rules would block all tools, including yours: %s", p.Dir, strings.Join(out.Problems, "; "))
	}
	presence, err := a.requireTruster(ctx, p.Dir, p.Digest, o)
	if err != nil {
		return err
	}
	yes, err := a.ConfirmUser(ctx, setup.Confirmation{Question: "Trust this project?", Show: func() { a.printTrust(p, out) }, Args: trustArgs(p.Dir, o),
		Hint: unattendedTrustHint(p.Dir), Ask: true, Yes: o.yes, DigestGiven: o.digest != ""})
	if err != nil {
		return err
	}
	if !yes {
		return exit.Errorf(exit.Refused, "to review it again: loadout trust "+console.ShellQuote(dir)+" --dry-run", "%s not trusted", p.Dir)
	}
	store := a.TrustStore()
	if store == nil {
		return exit.Errorf(exit.Failure, "set LOADOUT_STATE to a directory of yours", "no directory to store trusted projects")
	}
	if _, err := store.Trust(ctx, p.Dir, p.Digest, policy.LocalUser()); err != nil {
		return err
	}
	if err := a.Record(ctx, policy.Record{Action: "trust", Subject: p.Digest, Name: p.Dir, Details: map[string]string{"presence": presence}}); err != nil {
		return err
	}
	if out.State = "trusted"; a.JSON {
		return a.PrintJSON(out)
	}
	fmt.Fprintf(a.Stdout, "\n%s It applies until a file changes. To revoke: loadout trust --remove %s\n", a.Green("Trusted."), console.ShellQuote(p.Dir))
	return nil
}

// requireTruster returns the evidence that the user trusts the project in dir,
// which is digestGiven on an unattended machine.
func (a *app) requireTruster(ctx context.Context, dir string, digest policy.Digest, o *trustFlags) (string, error) {
	if o.yes && o.digest == "" {
		a.Note("--yes without --digest is deprecated and will be removed")
	}
	if o.digest != "" && o.digest != string(digest) {
		return "", exit.Errorf(exit.Refused, "review it: loadout trust "+console.ShellQuote(dir)+" --dry-run", "%s not trusted: digest mismatch: given %s, current %s", dir, o.digest, digest)
	}
	if c := a.Caller(); !a.IsManaged() && c.Agent == "" && (c.Terminal == "" || !console.IsTerminal(a.Stdin)) && o.yes && o.digest != "" {
		return digestGiven, nil
	}
	return a.RequireUser(ctx, unattendedTrustHint(dir), trustArgs(dir, o)...)
}

// trustArgs returns the arguments of the command that trusts a project. It
// omits --yes, so that the command asks for confirmation.
func trustArgs(dir string, o *trustFlags) []string {
	if o.digest == "" {
		return []string{"trust", dir}
	}
	return []string{"trust", dir, "--digest", o.digest}
}

// unattendedTrustHint returns a hint on how to trust a project without a
// terminal.
func unattendedTrustHint(dir string) string {
	return "on an unattended machine, give the reviewed digest: loadout trust " + console.ShellQuote(dir) + " --digest sha256:… --yes"
}

// readProjectToTrust reads a project for the user to review. An error in the
// trust store is reported later, when the store is written.
func (a *app) readProjectToTrust(dir string) (*trust.Project, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		code, hint := exit.FileHint(err, "the path of the project")
		return nil, exit.Errorf(code, hint, "%s: %w", dir, fileerror.Cause(err))
	case !info.IsDir():
		return nil, exit.Errorf(exit.Usage, "name the directory that contains it", "%s is not a directory", dir)
	}
	p, err := a.ReadProject(dir)
	if err != nil && p == nil {
		return nil, exit.Errorf(exit.Failure, "fix the named problem, and try again", "%s: %w", dir, err)
	}
	return p, nil
}

func (a *app) printTrust(p *trust.Project, out *trustOutput) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s %s\n", a.Bold(plain(p.Dir)), a.Faint("digest "), p.Digest)
	for _, e := range out.Effects {
		fmt.Fprintf(&b, "%s %s\n", a.Faint("applies"), plain(e))
	}
	for _, n := range out.Ignored {
		fmt.Fprintf(&b, "%s %s\n", a.Faint("ignored"), plain(n.Where+": "+n.Message))
	}
	for _, text := range out.Problems {
		fmt.Fprintf(&b, "%s %s\n", a.Red("invalid"), plain(text))
	}
	for _, f := range p.Files {
		fmt.Fprintf(&b, "\n%s %s\n", a.Bold(plain(f.Path)), a.Faint(console.FormatSize(f.Size)))
		b.WriteString(readExcerpt(p, f))
	}
	fmt.Fprint(a.Stdout, b.String())
}

// readExcerpt returns the beginning of a file for display. If the file changed
// after its digest was computed, or is not text, it returns a note that says
// so.
func readExcerpt(p *trust.Project, f trust.File) string {
	const most, lines = 64 << 10, 200
	data, err := p.ReadFile(f)
	switch {
	case errors.Is(err, trust.ErrChanged):
		return "  changed while it was shown: do not trust it, and review it again\n"
	case err != nil:
		return ""
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "  not a text file\n"
	}
	var b strings.Builder
	n := 0
	for line := range strings.Lines(string(data[:min(len(data), most)])) {
		if n++; n > lines {
			break
		}
		b.WriteString("  " + strings.TrimRight(safe(strings.ReplaceAll(line, "\t", "    ")), "\n") + "\n")
	}
	if n > lines || len(data) > most {
		b.WriteString("  … truncated: read the file for the rest\n")
	}
	return b.String()
}

func (a *app) listTrust() error {
	out := trustList{[]trustedDir{}, []policy.Problem{}}
	if store := a.TrustStore(); store != nil {
		list, problems, err := store.List()
		if err != nil {
			return err
		}
		out.Problems = append(out.Problems, problems...)
		for _, t := range list {
			p, err := a.ReadProject(t.Dir)
			out.Projects = append(out.Projects, trustedDir{t, err != nil || !p.Trusted})
		}
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	for _, p := range out.Problems {
		a.Note("trust ignored: %s", p)
	}
	if len(out.Projects) == 0 {
		fmt.Fprintln(a.Stdout, "No trusted projects yet. To trust one: loadout trust DIR")
		return nil
	}
	var rows [][]string
	for _, t := range out.Projects {
		state := "trusted"
		if t.Changed {
			state = "changed since; no longer applies"
		}
		rows = append(rows, []string{t.Dir, t.Digest.Short(), t.Created.Local().Format("2006-01-02 15:04"), state})
	}
	a.PrintTable("", rows)
	return nil
}

func (a *app) removeTrust(ctx context.Context, dir string) error {
	store := a.TrustStore()
	var t trust.Record
	err := trust.ErrNotTrusted
	if store != nil {
		t, err = store.Untrust(ctx, dir)
	}
	switch {
	case errors.Is(err, trust.ErrNotTrusted):
		return exit.Errorf(exit.NotFound, "list trusted projects: loadout trust --list", "%s is not trusted", dir)
	case err != nil:
		return err
	}
	if err := a.Record(ctx, policy.Record{Action: "untrust", Subject: t.Digest, Name: t.Dir}); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(trustOutput{Dir: t.Dir, Digest: t.Digest, Files: []trust.File{}, State: "untrusted", Effects: []string{}, Ignored: []config.Note{}, Problems: []string{}})
	}
	fmt.Fprintf(a.Stdout, "No longer trusted: %s\n", plain(t.Dir))
	return nil
}
