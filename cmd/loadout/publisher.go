package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/signature"
	"github.com/loadout-dev/loadout/skill"
)

// publisher is who signed a skill.
type publisher struct {
	key, name, fingerprint string
	first                  bool // nothing from that place was signed before
}

func (p *publisher) text() string {
	text := fmt.Sprintf("signed by %s, key %s", p.name, p.fingerprint)
	if p.first {
		text += ": the first of that place, and kept for it"
	}
	return text
}

// pins are the keys that were first seen at a place.
func (a *app) pins() (signature.Pins, error) {
	d := a.stateDir()
	if d == "" {
		return signature.Pins{}, fail(exitFound, "set LOADOUT_STATE to a directory that is yours", "there is no place to keep the keys of publishers")
	}
	return signature.Pins{Path: filepath.Join(d, "publishers.json")}, nil
}

// publisher checks the signature of a skill that is about to be installed: its files
// must be as they were signed, by the key that signed what came from there before.
func (p *plan) publisher(st *step) (*publisher, error) {
	signed, err := readSignature(st.files)
	if err != nil {
		return nil, err
	}
	key := ""
	if signed != nil {
		key = signed.Key
		if err := signature.Verify(st.manifest, st.called, signed.Bytes, key); err != nil {
			return nil, err
		}
	}
	if st.From.Kind == remote.Local {
		return publisherOf(key, false), nil // nobody else's
	}
	from := st.From.Place()
	have, there := p.lock.Skills[st.Name]
	there = there && have.From.Place() == from
	if there && have.Key != "" && have.Key != key {
		return nil, &signature.ChangedKeyError{Source: from, Pinned: have.Key, Now: key}
	}
	kept, err := p.keptKey(from)
	if err != nil {
		return nil, err
	}
	// What was got by its commit may be anybody's, as hosts keep those of forks too.
	first := kept == "" && key != "" && (st.From.Kind != remote.Git || st.entry.Ref != "") && len(from) <= signature.MaxSourceBytes
	if first {
		if other := p.firstKeys[from]; other != "" && other != key {
			return nil, &signature.ChangedKeyError{Source: from, Pinned: other, Now: key}
		}
	}
	// What was not signed before its place had a key goes on without.
	if was := key == "" && there && have.Key == ""; kept != "" && kept != key && !was {
		return nil, &signature.ChangedKeyError{Source: from, Pinned: kept, Now: key}
	}
	return publisherOf(key, first), nil
}

// keptKey is the key that is kept for a place, "" for none.
func (p *plan) keptKey(source string) (string, error) {
	if p.keptKeys == nil {
		p.keptKeys = map[string]string{}
		if p.stateDir() == "" {
			return "", nil // and nothing can be kept
		}
		pins, err := p.pins()
		if err != nil {
			return "", err
		}
		all, err := pins.All()
		if err != nil {
			return "", err
		}
		for _, k := range all {
			p.keptKeys[k.Source] = k.Key
		}
	}
	return p.keptKeys[source], nil
}

func publisherOf(key string, first bool) *publisher {
	if key == "" {
		return nil
	}
	return &publisher{key, signature.KeyName(key), signature.Fingerprint(key), first}
}

// pin keeps the keys of what was installed for the places that it is from.
func (p *plan) pin(ctx context.Context) error {
	for _, st := range p.steps {
		if st.signed == nil || !st.signed.first {
			continue
		}
		pins, err := p.pins()
		if err != nil {
			return err
		}
		if _, err := pins.Check(ctx, st.From.Place(), st.signed.key); err != nil {
			return err
		}
	}
	return nil
}

// signedFile is a signature and the key that it names.
type signedFile struct {
	Key   string
	Bytes []byte
}

// readSignature is nil where a skill is not signed.
func readSignature(files fs.FS) (*signedFile, error) {
	f, err := files.Open(signature.FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, signature.MaxBytes+1)) // one more is refused
	if err != nil {
		return nil, err
	}
	s, err := signature.Read(b)
	if err != nil {
		return nil, err
	}
	return &signedFile{s.Key, b}, nil
}

// stillSigned checks the signature of an installed skill whose lock has a key: it has to
// fit, and to be by the key that is kept for the place that the skill is from.
func (a *app) stillSigned(dir string, e installed.Entry) error {
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
	pins, err := a.pins()
	if err != nil {
		return err
	}
	switch kept, err := pins.Find(e.From.Place()); {
	case errors.Is(err, signature.ErrNotPinned):
		return nil
	case err != nil:
		return err
	case kept.Key != e.Key:
		return &signature.ChangedKeyError{Source: e.From.Place(), Pinned: kept.Key, Now: e.Key}
	}
	return nil
}

// checkSignature checks that a skill is signed, as it is, by a key.
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

// forgetKey makes the next key of a place count as the first.
func (a *app) forgetKey(ctx context.Context, source string) error {
	pins, err := a.pins()
	if err != nil {
		return err
	}
	at, err := locate(source)
	if err != nil {
		return err
	}
	switch _, err := pins.Remove(ctx, at.Place()); {
	case errors.Is(err, signature.ErrNotPinned):
		return fail(exitNotFound, "give it as loadout add would take it", "no key was kept for %s", at.Place())
	case err != nil:
		return err
	}
	if !a.json {
		fmt.Fprintf(a.stdout, "Forgot the key of %s: the next one is kept.\n", at.Place())
		return nil
	}
	return a.printJSON(map[string]string{"forgotten": at.Place()})
}

// verifySignature checks the skill at a path, or of a name, against a public key.
func (a *app) verifySignature(ctx context.Context, arg, key string) (signedSkill, error) {
	dir, err := a.skillDir(ctx, arg)
	if err != nil {
		return signedSkill{}, err
	}
	b, err := skill.OpenDir(dir)
	if err != nil {
		code, hint := missing(err, "the path")
		return signedSkill{}, fail(code, hint, "open the skill %s: %w", dir, reason(err))
	}
	defer b.Close()
	s, err := checkSignature(b, key)
	if err != nil {
		return signedSkill{}, fmt.Errorf("%s: %w", arg, err)
	}
	s.Path = filepath.Join(dir, signature.FileName)
	return s, nil
}

// skillDir is the directory of a skill that is named by its path or its name.
func (a *app) skillDir(ctx context.Context, arg string) (string, error) {
	if info, err := os.Stat(arg); err == nil {
		if info.IsDir() {
			return arg, nil
		}
		return filepath.Dir(arg), nil
	}
	rt, err := a.open(ctx)
	if err != nil {
		return "", err
	}
	defer rt.Close()
	e, err := a.resolve(ctx, rt, arg)
	if err != nil {
		return "", err
	}
	if e.Location() == "" {
		return "", fail(exitUsage, "give the path of its directory", "%s is not in a directory", arg)
	}
	return e.Location(), nil
}
