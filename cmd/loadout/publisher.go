package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// publisher is the signer of a skill.
type publisher struct {
	key, name, fingerprint string
	first                  bool // first key seen at this source
}

func (p *publisher) describe() string {
	text := fmt.Sprintf("signed by %s, key %s", p.name, p.fingerprint)
	if p.first {
		text += "; first key of this source, now remembered"
	}
	return text
}

// publisherKeys returns the store of publisher keys by source.
func (a *app) publisherKeys() (signature.Pins, error) {
	d := a.stateDir()
	if d == "" {
		return signature.Pins{}, fail(exitFailure, "set LOADOUT_STATE to a directory of yours", "no directory to store the keys of publishers")
	}
	return signature.Pins{Path: filepath.Join(d, "publishers.json")}, nil
}

// checkPublisher checks the signature of a skill before it is installed. The
// files must match the signature, and the key must be the one seen first at the
// source.
func (p *plan) checkPublisher(st *step) (*publisher, error) {
	signed, err := readSignature(st.files)
	if err != nil {
		return nil, err
	}
	key := ""
	if signed != nil {
		key = signed.Key
		if err := signature.Verify(st.manifest, st.skillName, signed.Bytes, key); err != nil {
			return nil, err
		}
	}
	if st.From.Kind == remote.Local {
		return newPublisher(key, false), nil // the user's own files
	}
	from := st.From.CanonicalURL()
	have, there := p.lock.Skills[st.Name]
	there = there && have.From.CanonicalURL() == from
	if there && have.Key != "" && have.Key != key {
		return nil, &signature.ChangedKeyError{Source: from, PinnedKey: have.Key, CurrentKey: key}
	}
	kept, err := p.pinnedKey(from)
	if err != nil {
		return nil, err
	}
	// A skill installed by commit may be anyone's, because hosts also serve
	// forks.
	first := kept == "" && key != "" && (st.From.Kind != remote.Git || st.entry.Ref != "") && len(from) <= signature.MaxSourceBytes
	if first {
		if other := p.newKeys[from]; other != "" && other != key {
			return nil, &signature.ChangedKeyError{Source: from, PinnedKey: other, CurrentKey: key}
		}
	}
	// A skill installed unsigned before its source had a key may stay unsigned.
	if was := key == "" && there && have.Key == ""; kept != "" && kept != key && !was {
		return nil, &signature.ChangedKeyError{Source: from, PinnedKey: kept, CurrentKey: key}
	}
	return newPublisher(key, first), nil
}

// pinnedKey returns the remembered key of a source, or "".
func (p *plan) pinnedKey(source string) (string, error) {
	if p.pinnedKeys == nil {
		p.pinnedKeys = map[string]string{}
		if p.stateDir() == "" {
			return "", nil // keys cannot be remembered
		}
		pins, err := p.publisherKeys()
		if err != nil {
			return "", err
		}
		all, err := pins.All()
		if err != nil {
			return "", err
		}
		for _, k := range all {
			p.pinnedKeys[k.Source] = k.Key
		}
	}
	return p.pinnedKeys[source], nil
}

func newPublisher(key string, first bool) *publisher {
	if key == "" {
		return nil
	}
	return &publisher{key, signature.KeyName(key), signature.Fingerprint(key), first}
}

// pinKeys remembers the first keys of the sources of installed skills.
func (p *plan) pinKeys(ctx context.Context) error {
	for _, st := range p.steps {
		if st.signer == nil || !st.signer.first {
			continue
		}
		pins, err := p.publisherKeys()
		if err != nil {
			return err
		}
		if _, err := pins.Check(ctx, st.From.CanonicalURL(), st.signer.key); err != nil {
			return err
		}
	}
	return nil
}

// signedFile is a signature and the key it names.
type signedFile struct {
	Key   string
	Bytes []byte
}

// readSignature returns nil if a skill is not signed.
func readSignature(files fs.FS) (*signedFile, error) {
	f, err := files.Open(signature.FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, signature.MaxBytes+1)) // one byte over the limit is refused
	if err != nil {
		return nil, err
	}
	s, err := signature.Parse(b)
	if err != nil {
		return nil, err
	}
	return &signedFile{s.Key, b}, nil
}

// verifyInstalledSignature checks the signature of an installed skill whose
// lockfile entry has a key. The key must also be the one remembered for the
// source.
func (a *app) verifyInstalledSignature(dir string, e installed.Entry) error {
	if e.Key == "" {
		return nil
	}
	b, err := skill.OpenDir(dir)
	if err != nil {
		return err
	}
	defer b.Close()
	if _, err := checkSignature(b, e.Key); err != nil {
		return err
	}
	if e.From.Kind == remote.Local || a.stateDir() == "" {
		return nil
	}
	pins, err := a.publisherKeys()
	if err != nil {
		return err
	}
	switch kept, err := pins.Find(e.From.CanonicalURL()); {
	case errors.Is(err, signature.ErrNotPinned):
		return nil
	case err != nil:
		return err
	case kept.Key != e.Key:
		return &signature.ChangedKeyError{Source: e.From.CanonicalURL(), PinnedKey: kept.Key, CurrentKey: e.Key}
	}
	return nil
}

// checkSignature checks that the files of a skill are signed with a key.
func checkSignature(b *skill.Bundle, key string) (signedSkill, error) {
	m, _, err := skill.ReadManifest(b)
	if err != nil {
		return signedSkill{}, err
	}
	parsed, _, err := skill.Parse(b, b.Folder)
	if err != nil {
		return signedSkill{}, err
	}
	signed, err := readSignature(b)
	if err == nil && signed == nil {
		err = signature.ErrUnsigned
	}
	if err == nil {
		err = signature.Verify(m, parsed.Name, signed.Bytes, key)
	}
	return signedSkill{Name: parsed.Name, Digest: m.Digest()}, err
}

// forgetKey forgets the key of a source, so that its next key is accepted.
func (a *app) forgetKey(ctx context.Context, source string) error {
	pins, err := a.publisherKeys()
	if err != nil {
		return err
	}
	at, err := parseLocation(source)
	if err != nil {
		return err
	}
	switch _, err := pins.Remove(ctx, at.CanonicalURL()); {
	case errors.Is(err, signature.ErrNotPinned):
		return fail(exitNotFound, "give the source as for loadout add", "no key remembered for %s", at.CanonicalURL())
	case err != nil:
		return err
	}
	if !a.json {
		fmt.Fprintf(a.stdout, "Forgot the key of %s. Its next key will be accepted.\n", at.CanonicalURL())
		return nil
	}
	return a.printJSON(map[string]string{"forgotten": at.CanonicalURL()})
}

// verifySignature checks the signature of the skill at a path or with a name.
func (a *app) verifySignature(ctx context.Context, arg, key string) (signedSkill, error) {
	dir, err := a.resolveSkillDir(ctx, arg)
	if err != nil {
		return signedSkill{}, err
	}
	b, err := skill.OpenDir(dir)
	if err != nil {
		code, hint := fileErrorHint(err, "the path")
		return signedSkill{}, fail(code, hint, "open the skill %s: %w", dir, fileCause(err))
	}
	defer b.Close()
	s, err := checkSignature(b, key)
	if err != nil {
		return signedSkill{}, fmt.Errorf("%s: %w", arg, err)
	}
	s.Path = filepath.Join(dir, signature.FileName)
	return s, nil
}

// resolveSkillDir returns the directory of a skill given by path or name.
func (a *app) resolveSkillDir(ctx context.Context, arg string) (string, error) {
	if info, err := os.Stat(arg); err == nil {
		if info.IsDir() {
			return arg, nil
		}
		return filepath.Dir(arg), nil
	}
	rt, err := a.openRuntime(ctx)
	if err != nil {
		return "", err
	}
	defer rt.Close()
	e, err := a.resolveSkill(ctx, rt, arg)
	if err != nil {
		return "", err
	}
	if e.Location() == "" {
		return "", fail(exitUsage, "give the path of its directory", "skill %s is not in a directory", arg)
	}
	return e.Location(), nil
}
