package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/atomicfile"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// signFlags holds the flags of the sign command.
type signFlags struct {
	key, newKey       string
	expires, replaces string
	counter           uint64
}

type signOutput struct {
	Key    string        `json:"key"` // the public key
	Signed []signedSkill `json:"signed"`
}

type signedSkill struct {
	Name   string `json:"name"`
	Path   string `json:"path"` // path of the signature file
	Digest string `json:"digest"`
	// Counter is the counter in the signature, or 0 if the signature has none.
	Counter uint64 `json:"counter,omitempty"`
}

func (a *app) signCommand() *cobra.Command {
	var o signFlags
	cmd := &cobra.Command{
		Use:   "sign PATH...",
		Short: "Sign skills that you publish",
		Long: `Sign the files of skills to prove that they come from you. The signature is written
to SKILL.sig next to SKILL.md. Sign again after every change, and keep SKILL.sig: it
contains a counter that increases by one each time, so that Loadout can refuse an older
version that is offered to your users. If SKILL.sig is lost, set the next number with
--counter. When users install your skill, Loadout pins your key to its source, and
refuses later versions that are unsigned or signed with another key. Create a key with
--new-key. Keep the key file secret, and back it up: a lost key cannot be recovered.

A key expires two years after its creation, or on the date given with --expires. After
that, users keep what they installed, but get no updates. Before it expires, create the
next key with --replaces OLD. The old key then signs a statement that the new key
replaces it. Every signature of the new key contains this statement, so users accept
the new key without a warning.`,
		Example: `  loadout sign --new-key example.com --key ~/publisher.key
  loadout sign skills/pdf skills/docx --key ~/publisher.key
  loadout sign --new-key example.com --key ~/next.key --replaces ~/publisher.key
  loadout verify skills/pdf --key example.com+1234abcd+AY…`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.newKey != "" {
				return argCount(0, 0, "")(cmd, args)
			}
			return argCount(1, -1, "the PATH of a skill's directory")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.key == "" {
				return exit.Errorf(exit.Usage, "loadout sign PATH --key FILE; to create a key: loadout sign --new-key NAME --key FILE", "no --key given")
			}
			if o.newKey != "" {
				return a.createKey(&o)
			}
			for _, flag := range []string{"expires", "replaces"} {
				if cmd.Flags().Changed(flag) {
					return exit.Errorf(exit.Usage, "add --new-key NAME, or omit --"+flag, "--%s is only for new keys", flag)
				}
			}
			if err := checkCounter(cmd, o.counter, args); err != nil {
				return err
			}
			return a.signSkills(args, &o)
		},
	}
	cmd.Flags().StringVar(&o.key, "key", "", "read your private key from `FILE`")
	cmd.Flags().StringVar(&o.newKey, "new-key", "", "create a key named `NAME`, such as your domain, in the --key file")
	cmd.Flags().StringVar(&o.expires, "expires", "", "expiry `DATE` of the new key, or never (default: in two years)")
	cmd.Flags().StringVar(&o.replaces, "replaces", "", "state that the new key replaces the key in `FILE`")
	cmd.Flags().Uint64Var(&o.counter, "counter", 0, "use the counter `N` (default: one more than in SKILL.sig)")
	return cmd
}

// checkCounter checks the --counter flag, which can be used only with a single
// skill.
func checkCounter(cmd *cobra.Command, counter uint64, paths []string) error {
	switch {
	case !cmd.Flags().Changed("counter"):
		return nil
	case counter == 0 || counter > signature.MaxCounter:
		return exit.Errorf(exit.Usage, fmt.Sprintf("use a number from 1 to %d", uint64(signature.MaxCounter)), "invalid value %d of --counter", counter)
	case len(paths) > 1:
		return exit.Errorf(exit.Usage, "sign one skill at a time", "--counter cannot be used with several skills")
	}
	return nil
}

func (a *app) createKey(o *signFlags) error {
	now := time.Now()
	expires, err := parseExpiry(o.expires, now)
	if err != nil {
		return err
	}
	private, public, err := signature.GenerateKey(o.newKey)
	if err != nil {
		return exit.Errorf(exit.Usage, "use a name without spaces and +, such as your domain", "%w", err)
	}
	key := signature.PrivateKey{Private: private, Expires: expires}
	if o.replaces != "" {
		old, err := readPrivateKey(o.replaces, "--replaces")
		if err != nil {
			return err
		}
		if key, err = old.Replace(private, expires, now); err != nil {
			return exit.Errorf(exit.Refused, "create a key without --replaces, publish its fingerprint, and ask your users to run loadout verify --forget URL", "%w", err)
		}
	}
	err = signature.WritePrivateKey(o.key, key)
	if errors.Is(err, fs.ErrExist) {
		return exit.Errorf(exit.Failure, "name another file: a lost key cannot be restored", "%s already exists", o.key)
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(signOutput{Key: public, Signed: []signedSkill{}})
	}
	fmt.Fprintf(a.Stdout, "Private key: %s. Keep it secret, and back it up.\nPublic key, to publish:\n\n  %s\n", o.key, public)
	if !expires.IsZero() {
		fmt.Fprintf(a.Stdout, "\nIt expires on %s. Replace it before: loadout sign --new-key NAME --key FILE --replaces %s\n", expires.Format(time.DateOnly), console.ShellQuote(o.key))
	}
	return nil
}

// keyLifetime is the default validity period of a new key, in years.
const keyLifetime = 2

// parseExpiry parses the --expires flag of a new key. The zero time means never.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	switch text {
	case "never":
		return time.Time{}, nil
	case "":
		return now.AddDate(keyLifetime, 0, 0).UTC().Truncate(24 * time.Hour), nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || !t.After(now) {
		return t, exit.Errorf(exit.Usage, "use a future date such as 2028-12-31, or never", "invalid value %q of --expires", text)
	}
	return t, nil
}

// readPrivateKey reads the private key in a file given with a flag.
func readPrivateKey(file, flag string) (signature.PrivateKey, error) {
	key, err := signature.ReadPrivateKey(file)
	if err != nil && !isType[*signature.ExposedError](err) {
		code, hint := exit.FileHint(err, "the path given with "+flag)
		err = exit.Errorf(code, hint, "%w", err)
	}
	return key, err
}

// expiryWarning is the remaining validity below which a key is reported as
// expiring soon.
const expiryWarning = 90 * 24 * time.Hour

// openKey reads the private key in a file to sign with. It prints a note if the key
// expires soon.
func (a *app) openKey(file string) (signature.PrivateKey, error) {
	key, err := readPrivateKey(file, "--key")
	if err != nil || key.Expires.IsZero() {
		return key, err
	}
	if left := time.Until(key.Expires); left <= 0 {
		return key, exit.Errorf(exit.Refused, "sign with the key that replaced it, or create one: loadout sign --new-key NAME --key FILE", "key %s expired on %s", file, key.Expires.Format(time.DateOnly))
	} else if left < expiryWarning {
		a.Note("the key expires on %s; replace it before: loadout sign --new-key NAME --key FILE --replaces %s", key.Expires.Format(time.DateOnly), console.ShellQuote(file))
	}
	return key, nil
}

func (a *app) signSkills(paths []string, o *signFlags) error {
	key, err := a.openKey(o.key)
	if err != nil {
		return err
	}
	out := signOutput{Signed: []signedSkill{}}
	for _, p := range paths {
		s, public, err := signDir(p, key, o.counter)
		if err != nil {
			return err
		}
		out.Key, out.Signed = public, append(out.Signed, s)
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	for _, s := range out.Signed {
		fmt.Fprintf(a.Stdout, "Signed %s: %s\n", plain(s.Name), s.Path)
	}
	return nil
}

// signDir signs the skill in a directory and returns the public key. If
// counter is 0, it uses the next one. If the files have not changed, it keeps
// an existing signature.
func signDir(dir string, key signature.PrivateKey, counter uint64) (s signedSkill, public string, err error) {
	if skillpath.IsSkillFile(filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	b, err := skill.OpenDir(dir)
	if err != nil {
		code, hint := exit.FileHint(err, "the path")
		return s, "", exit.Errorf(code, hint, "open the skill %s: %w", dir, fileerror.Cause(err))
	}
	defer b.Close()
	parsed, found, err := skill.Parse(b, b.Folder)
	if err != nil {
		return s, "", exit.Errorf(exit.NotFound, "give the directory of a skill", "%s: %w", dir, fileerror.Cause(err))
	}
	if !found.Loads() {
		return s, "", exit.Errorf(exit.Failure, "see the problems: loadout validate "+console.ShellQuote(dir), "the skill in %s does not load", dir)
	}
	m, _, err := skill.ReadManifest(b)
	if err != nil {
		return s, "", err
	}
	path := filepath.Join(dir, signature.FileName)
	if public, err = signature.PublicKey(key.Private); err != nil {
		return s, "", fmt.Errorf("sign %s: %w", dir, err)
	}
	old, was, err := signature.ReadFile(b)
	if err == nil && counter == 0 && was.Counter > 0 && was.KeyExpires.Equal(key.Expires) && signature.Verify(m, parsed.Name, old, public) == nil {
		return signedSkill{parsed.Name, path, m.Digest(), was.Counter}, public, nil
	}
	next, err := nextRelease(was, counter)
	if err != nil {
		return s, "", fmt.Errorf("sign %s: %w", dir, err)
	}
	sig, err := key.Sign(m, parsed.Name, next)
	if err != nil {
		return s, "", fmt.Errorf("sign %s: %w", dir, err)
	}
	if err := atomicfile.Write(path, sig, 0o644); err != nil {
		return s, "", fmt.Errorf("write signature: %w", err)
	}
	if m, _, err = skill.ReadManifest(b); err != nil {
		return s, "", err
	}
	return signedSkill{parsed.Name, path, m.Digest(), next.Counter}, public, nil
}

// nextRelease returns the release that follows the one in the existing
// signature. existing is nil if there is no usable signature.
func nextRelease(existing *signature.Signature, counter uint64) (signature.Release, error) {
	var last signature.Release
	if existing != nil {
		last = existing.Release
	}
	next := last.Next(time.Now())
	if counter == 0 {
		return next, nil
	}
	if counter < next.Counter {
		return next, exit.Errorf(exit.Usage, fmt.Sprintf("use %d or more, or omit --counter", next.Counter), "counter %d is not higher than the one in %s (%d)", counter, signature.FileName, last.Counter)
	}
	next.Counter = counter
	return next, nil
}

// verifySignatures verifies skill signatures with a public key.
func (a *app) verifySignatures(ctx context.Context, args []string, key string) error {
	if b, err := configfile.ReadFile(key, 1<<20); err == nil {
		key = strings.TrimSpace(string(b))
	}
	if signature.KeyName(key) == "" {
		return exit.Errorf(exit.Usage, "give it as published, NAME+HASH+KEY, or a file that contains it", "--key is not a public key")
	}
	out := signOutput{Key: key, Signed: []signedSkill{}}
	for _, arg := range args {
		s, err := a.verifySignature(ctx, arg, key)
		if err != nil {
			return err
		}
		out.Signed = append(out.Signed, s)
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	for _, s := range out.Signed {
		fmt.Fprintf(a.Stdout, "%s: %s matches the signature with the key %s\n", a.Green("OK"), plain(s.Name), signature.Fingerprint(key))
	}
	return nil
}
