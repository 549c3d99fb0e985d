package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// forgetKey deletes the pinned key of a source and the counters of its skills,
// so that the next key is accepted with new counters.
func (a *app) forgetKey(ctx context.Context, source string) error {
	pins := a.PublisherKeys()
	if pins == nil {
		return install.ErrNoPins
	}
	at, err := setup.ParseLocation(source)
	if err != nil {
		return err
	}
	args := []string{"verify", "--forget", source}
	if _, err := a.RequireUser(ctx, "", args...); err != nil {
		return err
	}
	yes, err := a.ConfirmUser(ctx, setup.Confirmation{Question: fmt.Sprintf("Accept the next key that signs the skills of %s?", plain(at.CanonicalURL())), Args: args})
	if err == nil && !yes {
		err = exit.Errorf(exit.Refused, "verify a skill with its key: loadout verify NAME", "key of %s not forgotten", at.CanonicalURL())
	}
	if err != nil {
		return err
	}
	switch _, err := pins.Remove(ctx, at.CanonicalURL()); {
	case errors.Is(err, signature.ErrNotPinned):
		return exit.Errorf(exit.NotFound, "give the source as for loadout add", "no key remembered for %s", at.CanonicalURL())
	case err != nil:
		return err
	}
	if seen := a.SeenVersions(); seen != nil {
		if err := seen.Forget(ctx, at.CanonicalURL()); err != nil {
			return err
		}
	}
	if !a.JSON {
		fmt.Fprintf(a.Stdout, "Forgot the key of %s. Its next key will be accepted.\n", at.CanonicalURL())
		return nil
	}
	return a.PrintJSON(map[string]string{"forgotten": at.CanonicalURL()})
}

// verifySignature verifies the signature of a skill given by path or name.
func (a *app) verifySignature(ctx context.Context, arg, key string) (signedSkill, error) {
	dir, err := a.resolveSkillDir(ctx, arg)
	if err != nil {
		return signedSkill{}, err
	}
	b, err := skill.OpenDir(dir)
	if err != nil {
		code, hint := exit.FileHint(err, "the path")
		return signedSkill{}, exit.Errorf(code, hint, "open the skill %s: %w", dir, fileerror.Cause(err))
	}
	defer b.Close()
	digest, s, err := signature.VerifyBundle(b, key)
	if err != nil {
		return signedSkill{}, fmt.Errorf("%s: %w", arg, err)
	}
	return signedSkill{s.Name, filepath.Join(dir, signature.FileName), digest, s.Counter}, nil
}

// resolveSkillDir returns the directory of the skill given by path or name.
func (a *app) resolveSkillDir(ctx context.Context, arg string) (string, error) {
	if info, err := os.Stat(arg); err == nil {
		if info.IsDir() {
			return arg, nil
		}
		return filepath.Dir(arg), nil
	}
	rt, err := a.OpenRuntime(ctx)
	if err != nil {
		return "", err
	}
	defer rt.Close()
	e, err := a.resolveSkill(ctx, rt, arg)
	if err != nil {
		return "", err
	}
	if e.Location() == "" {
		return "", exit.Errorf(exit.Usage, "give the path of its directory", "skill %s is not in a directory", arg)
	}
	return e.Location(), nil
}
