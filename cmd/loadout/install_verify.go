package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/signature"
)

// verifyFlags holds the flags of the verify command.
type verifyFlags struct {
	setup.InstallFlags
	key, forget string
}

// verifyOutput is the JSON output of the verify command.
type verifyOutput struct {
	Skills []verifiedSkill `json:"skills"`
	// Differences lists the files that differ from loadout.lock.
	Differences []locatedDifference `json:"differences"`
	OK          bool                `json:"ok"`
}

type verifiedSkill struct {
	Name      string `json:"name"`
	Directory string `json:"directory"`
	Digest    string `json:"digest"`
	Signer    string `json:"signer,omitempty"`
	OK        bool   `json:"ok"`
}

type locatedDifference struct {
	Directory string `json:"directory"`
	installed.Difference
}

func (a *app) verifyCommand() *cobra.Command {
	var o verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [NAME|PATH...]",
		Short: "Verify installed skills and signatures",
		Long: `Compare the files of installed skills with loadout.lock, and verify their signatures
with the pinned keys. Exits with status 1 if something differs. With --key, verify
the signature of the skill with the given NAME, or in the directory PATH, with that
public key, even if the skill was not installed with loadout add.`,
		Example: `  loadout verify
  loadout verify pdf --scope project --json
  loadout verify ./pdf --key publisher+1234abcd+AY…
  loadout verify --forget https://github.com/owner/repo   accept the next key`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.forget != "" {
				return argCount(0, 0, "")(cmd, args)
			}
			if o.key != "" {
				return argCount(1, -1, "a PATH or NAME")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: a.completeInstalled,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExclusive(cmd, "key", "forget"); err != nil {
				return err
			}
			switch {
			case o.forget != "":
				return a.forgetKey(cmd.Context(), o.forget)
			case o.key != "":
				return a.verifySignatures(cmd.Context(), args, o.key)
			}
			return a.verifySkills(cmd.Context(), args, &o)
		},
	}
	registerInstallFlags(&o.InstallFlags, cmd.Flags(), true)
	cmd.Flags().StringVar(&o.key, "key", "", "check signatures with the public `KEY`, given as text or as a file")
	cmd.Flags().StringVar(&o.forget, "forget", "", "forget the pinned key of the source `URL` and accept its next key")
	return cmd
}

func (a *app) verifySkills(ctx context.Context, names []string, o *verifyFlags) error {
	all, err := a.InstallDirs(o.InstallFlags)
	if err != nil {
		return err
	}
	mine, err := setup.InstalledNames(all, names)
	if err != nil {
		return err
	}
	out := verifyOutput{Skills: []verifiedSkill{}, Differences: []locatedDifference{}, OK: true}
	done := a.ShowProgress("reading every file")
	for i, p := range all {
		if len(mine[i]) == 0 {
			continue
		}
		if err = a.verifyDir(ctx, p, mine[i], &out); err != nil {
			break
		}
	}
	done()
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(out)
	} else {
		a.printVerified(out, all)
	}
	if err == nil && !out.OK {
		return exit.Reported
	}
	return err
}

func (a *app) verifyDir(ctx context.Context, p setup.SkillsDir, names []string, out *verifyOutput) error {
	lock, err := p.Lockfile()
	if err != nil {
		return err
	}
	found, err := p.Verify(ctx, names...)
	if err != nil {
		return err
	}
	differs := map[string]bool{}
	for _, d := range found {
		differs[d.Name] = true
	}
	for _, name := range names {
		e := lock.Skills[name]
		v := verifiedSkill{Name: name, Directory: p.Path(), Digest: e.Digest}
		if e.Key != "" {
			v.Signer = signature.Fingerprint(e.Key)
		}
		if !differs[name] { // with differences, the signature cannot match
			if err := install.VerifySignature(filepath.Join(p.Path(), name), e, a.PublisherKeys()); err != nil {
				found = append(found, installed.Difference{Name: name, Kind: differentSignature, Reason: err.Error()})
				differs[name] = true
			}
		}
		v.OK = !differs[name]
		out.Skills, out.OK = append(out.Skills, v), out.OK && v.OK
	}
	for _, d := range found {
		out.Differences = append(out.Differences, locatedDifference{p.Path(), d})
	}
	return nil
}

// differentSignature is the kind of difference that is reported for an invalid
// signature. An attacker who can change files can also change the lockfile, but
// cannot sign the files.
const differentSignature installed.DifferenceKind = "signature"

func (a *app) printVerified(out verifyOutput, all []setup.SkillsDir) {
	if len(out.Skills) == 0 {
		fmt.Fprintln(a.Stdout, "No skills installed with loadout add. See: loadout add --help")
		return
	}
	rows, signature := make([][]string, 0, len(out.Differences)), false
	for _, d := range out.Differences {
		rows = append(rows, []string{d.Name, string(d.Kind), cmp.Or(d.Path, d.Reason)})
		signature = signature || d.Kind == differentSignature
	}
	a.PrintTable("", rows)
	wrong := 0
	for _, s := range out.Skills {
		if !s.OK {
			wrong++
		}
	}
	switch {
	case wrong == 0:
		fmt.Fprintf(a.Stdout, "%s: all files of %s match loadout.lock.\n", a.Green("OK"), console.Pluralize(len(out.Skills), "skill"))
	case signature:
		fmt.Fprintf(a.Stderr, "A skill and its loadout.lock entry were changed. Do not use the skill until you know who changed it.\n")
	case wrong == 1:
		fmt.Fprintf(a.Stderr, "1 of %s differs from loadout.lock.\n", console.Pluralize(len(out.Skills), "skill"))
	default:
		fmt.Fprintf(a.Stderr, "%d of %s differ from loadout.lock.\n", wrong, console.Pluralize(len(out.Skills), "skill"))
	}
	for _, p := range all {
		if !signature && slices.ContainsFunc(out.Differences, func(d locatedDifference) bool { return d.Directory == p.Path() }) {
			fmt.Fprintf(a.Stderr, "To restore them: loadout add --frozen --force%s\n", p.Flag())
		}
	}
}
