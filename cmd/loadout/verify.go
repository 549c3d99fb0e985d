package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/signature"
)

// verifyFlags are the flags of loadout verify.
type verifyFlags struct {
	installFlags
	key, forget string
}

// verifyOutput is verify --json.
type verifyOutput struct {
	Skills []verifiedSkill `json:"skills"`
	// Differences are files that are not as loadout.lock says.
	Differences []foundDifference `json:"differences"`
	OK          bool              `json:"ok"`
}

type verifiedSkill struct {
	Name      string `json:"name"`
	Directory string `json:"directory"`
	Digest    string `json:"digest"`
	Signer    string `json:"signer,omitempty"`
	OK        bool   `json:"ok"`
}

type foundDifference struct {
	Directory string `json:"directory"`
	installed.Difference
}

func (a *app) verifyCommand() *cobra.Command {
	var o verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [NAME|PATH...]",
		Short: "Compare installed skills with loadout.lock, or a skill with its signature",
		Long: `Compare the skills that loadout add brought, file by file, with what loadout.lock
says of them, and their signatures with the keys that were seen first. Exits with 1
if something differs. With --key the signature of the skill at PATH, or of the skill
NAME, is checked against that public key, whether loadout add brought it or not.`,
		Example: `  loadout verify
  loadout verify pdf --scope project --json
  loadout verify ./pdf --key publisher+1234abcd+AY…
  loadout verify --forget https://github.com/owner/repo   the next key is the first`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.forget != "" {
				return want(0, 0, "")(cmd, args)
			}
			if o.key != "" {
				return want(1, -1, "a PATH or NAME")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: a.completeInstalled,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "key", "forget"); err != nil {
				return err
			}
			switch {
			case o.forget != "":
				return a.forgetKey(cmd.Context(), o.forget)
			case o.key != "":
				return a.verifyKey(cmd.Context(), args, o.key)
			}
			return a.verify(cmd.Context(), args, &o)
		},
	}
	o.flags(cmd.Flags(), true)
	cmd.Flags().StringVar(&o.key, "key", "", "check signatures against this public `KEY`, or the file that has it")
	cmd.Flags().StringVar(&o.forget, "forget", "", "forget the key of the publisher at `URL`: the next one is taken for the first")
	return cmd
}

func (a *app) verify(ctx context.Context, names []string, o *verifyFlags) error {
	all, err := a.places(o.installFlags)
	if err != nil {
		return err
	}
	mine, err := brought(all, names)
	if err != nil {
		return err
	}
	out := verifyOutput{Skills: []verifiedSkill{}, Differences: []foundDifference{}, OK: true}
	done := a.progress("reading every file")
	for i, p := range all {
		if len(mine[i]) == 0 {
			continue
		}
		if err = a.verifyPlace(ctx, p, mine[i], &out); err != nil {
			break
		}
	}
	done()
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(out)
	} else {
		a.printVerified(out, all)
	}
	if err == nil && !out.OK {
		return errFound
	}
	return err
}

func (a *app) verifyPlace(ctx context.Context, p place, names []string, out *verifyOutput) error {
	lock, err := p.Lock()
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
		if !differs[name] { // or the signature cannot fit either
			if err := a.stillSigned(filepath.Join(p.Path(), name), e); err != nil {
				found = append(found, installed.Difference{Name: name, What: differentSignature, Reason: err.Error()})
				differs[name] = true
			}
		}
		v.OK = !differs[name]
		out.Skills, out.OK = append(out.Skills, v), out.OK && v.OK
	}
	for _, d := range found {
		out.Differences = append(out.Differences, foundDifference{p.Path(), d})
	}
	return nil
}

// differentSignature is a kind of difference besides those of files: who changes files
// may change the lock with them, but cannot sign.
const differentSignature installed.What = "signature"

func (a *app) printVerified(out verifyOutput, all []place) {
	if len(out.Skills) == 0 {
		fmt.Fprintln(a.stdout, "There is nothing to verify: loadout add brought no skill. See: loadout add --help")
		return
	}
	rows, signature := make([][]string, 0, len(out.Differences)), false
	for _, d := range out.Differences {
		rows = append(rows, []string{d.Name, string(d.What), cmp.Or(d.Path, d.Reason)})
		signature = signature || d.What == differentSignature
	}
	a.table("", rows)
	wrong := 0
	for _, s := range out.Skills {
		if !s.OK {
			wrong++
		}
	}
	switch {
	case wrong == 0:
		fmt.Fprintf(a.stdout, "%s: every file of %s is as loadout.lock says.\n", a.green("OK"), counted(len(out.Skills), "skill"))
	case signature:
		fmt.Fprintf(a.stderr, "Somebody changed a skill and loadout.lock. Find out who, and do not use it before.\n")
	case wrong == 1:
		fmt.Fprintf(a.stderr, "1 of %s differs from loadout.lock.\n", counted(len(out.Skills), "skill"))
	default:
		fmt.Fprintf(a.stderr, "%d of %s differ from loadout.lock.\n", wrong, counted(len(out.Skills), "skill"))
	}
	for _, p := range all {
		if !signature && slices.ContainsFunc(out.Differences, func(d foundDifference) bool { return d.Directory == p.Path() }) {
			fmt.Fprintf(a.stderr, "To have what it says again: loadout add --frozen --force%s\n", p.flag())
		}
	}
}
