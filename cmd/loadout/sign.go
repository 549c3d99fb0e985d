package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/signature"
	"github.com/loadout-dev/loadout/skill"
)

// signFlags are the flags of loadout sign.
type signFlags struct{ key, newKey string }

type signOutput struct {
	Key    string        `json:"key"` // the public one
	Signed []signedSkill `json:"signed"`
}

type signedSkill struct {
	Name   string `json:"name"`
	Path   string `json:"path"` // of the signature
	Digest string `json:"digest"`
}

func (a *app) signCommand() *cobra.Command {
	var o signFlags
	cmd := &cobra.Command{
		Use:   "sign PATH...",
		Short: "Sign skills that you publish",
		Long: `Sign the files of skills, so that who gets them knows that they are from you: the
signature is put beside SKILL.md, as SKILL.sig. Sign again after every change. Who
adds a skill of yours keeps your key with the place it is from, and is warned when
it is another, or missing, one day. The key is a file of yours that --new-key makes;
keep it secret, and keep a copy: it cannot be made again.`,
		Example: `  loadout sign --new-key example.com --key ~/publisher.key
  loadout sign skills/pdf skills/docx --key ~/publisher.key
  loadout verify skills/pdf --key example.com+1234abcd+AY…`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.newKey != "" {
				return want(0, 0, "")(cmd, args)
			}
			return want(1, -1, "the PATH of a skill's directory")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.key == "" {
				return fail(exitUsage, "as: loadout sign PATH --key FILE; to make one: loadout sign --new-key NAME --key FILE", "sign needs the FILE of your key")
			}
			if o.newKey != "" {
				return a.newKey(o.newKey, o.key)
			}
			return a.sign(args, o.key)
		},
	}
	cmd.Flags().StringVar(&o.key, "key", "", "the `FILE` with your private key")
	cmd.Flags().StringVar(&o.newKey, "new-key", "", "make a key for publisher `NAME`, as a domain of yours, and write it to --key")
	return cmd
}

func (a *app) newKey(name, file string) error {
	private, public, err := signature.GenerateKey(name)
	if err != nil {
		return fail(exitUsage, "take a name without blanks and +, as a domain of yours", "%w", err)
	}
	err = signature.WritePrivateKey(file, private)
	if errors.Is(err, fs.ErrExist) {
		return fail(exitFound, "name another file: a key that is lost cannot be made again", "%s is there already", file)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(signOutput{Key: public, Signed: []signedSkill{}})
	}
	fmt.Fprintf(a.stdout, "Your private key is in %s: keep it to yourself, and keep a copy.\nYour public key, which you can show to everybody:\n\n  %s\n", file, public)
	return nil
}

func (a *app) sign(paths []string, file string) error {
	private, err := signature.ReadPrivateKey(file)
	if isType[*signature.ExposedError](err) {
		return err
	}
	if err != nil {
		code, hint := missing(err, "the path of --key")
		return fail(code, hint, "%w", err)
	}
	out := signOutput{Signed: []signedSkill{}}
	for _, p := range paths {
		s, public, err := signAt(p, private)
		if err != nil {
			return err
		}
		out.Key, out.Signed = public, append(out.Signed, s)
	}
	if a.json {
		return a.printJSON(out)
	}
	for _, s := range out.Signed {
		fmt.Fprintf(a.stdout, "Signed %s: %s\n", plain(s.Name), s.Path)
	}
	return nil
}

// signAt signs the skill in a directory.
func signAt(dir, private string) (s signedSkill, public string, err error) {
	if skill.IsFileName(filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	b, err := skill.OpenDir(dir)
	if err != nil {
		code, hint := missing(err, "the path")
		return s, "", fail(code, hint, "open the skill %s: %w", dir, reason(err))
	}
	defer b.Close()
	parsed, found, err := skill.Parse(b, b.Folder)
	if err != nil {
		return s, "", fail(exitNotFound, "give the directory of a skill", "%s: %w", dir, reason(err))
	}
	if !found.Loads() {
		return s, "", fail(exitFound, "see what is wrong: loadout validate "+quoted(dir), "%s is no skill that loads", dir)
	}
	m, _, err := skill.ReadManifest(b)
	if err != nil {
		return s, "", err
	}
	sig, err := signature.Sign(m, parsed.Name, private)
	if err != nil {
		return s, "", fmt.Errorf("sign %s: %w", dir, err)
	}
	signed, err := signature.Read(sig)
	if err != nil {
		return s, "", fmt.Errorf("sign %s: %w", dir, err)
	}
	path := filepath.Join(dir, signature.FileName)
	if err := replaceFile(path, sig, 0o644); err != nil {
		return s, "", fmt.Errorf("write the signature: %w", err)
	}
	if m, _, err = skill.ReadManifest(b); err != nil {
		return s, "", err
	}
	return signedSkill{parsed.Name, path, m.Digest()}, signed.Key, nil
}

// verifyKey checks the signatures of skills against a public key.
func (a *app) verifyKey(ctx context.Context, args []string, key string) error {
	if b, err := readSmall(key, 1<<20); err == nil {
		key = strings.TrimSpace(string(b))
	}
	if signature.KeyName(key) == "" {
		return fail(exitUsage, "give it as its publisher shows it, NAME+HASH+KEY, or a file that has it", "--key is no public key")
	}
	out := signOutput{Key: key, Signed: []signedSkill{}}
	for _, arg := range args {
		s, err := a.verifySignature(ctx, arg, key)
		if err != nil {
			return err
		}
		out.Signed = append(out.Signed, s)
	}
	if a.json {
		return a.printJSON(out)
	}
	for _, s := range out.Signed {
		fmt.Fprintf(a.stdout, "%s: %s is as its publisher signed it, with the key %s\n", a.green("OK"), plain(s.Name), signature.Fingerprint(key))
	}
	return nil
}
