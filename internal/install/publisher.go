package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// Publisher identifies the signer of a skill.
type Publisher struct {
	Key, Name, Fingerprint string
	First                  bool // first key seen from this source
	signature.Release           // zero without history
}

func newPublisher(s *signature.Signature, first bool) *Publisher {
	if s == nil {
		return nil
	}
	return &Publisher{s.Key, signature.KeyName(s.Key), signature.Fingerprint(s.Key), first, s.Release}
}

// checkPublisher verifies a skill's signature before installation. The files
// must match the signature, and the key must be the first one seen from the
// source.
func (p *Plan) checkPublisher(st *Step) (*Publisher, error) {
	signed, err := st.verifySignature()
	if err != nil {
		return nil, err
	}
	if st.From.Kind == remote.Local {
		return newPublisher(signed, false), nil // the user's own files
	}
	key := ""
	if signed != nil {
		key = signed.Key
	}
	from := st.From.CanonicalURL()
	have, there := p.lock.Skills[st.Name]
	there = there && have.From.CanonicalURL() == from
	if there && have.Key != "" && have.Key != key {
		return nil, &signature.ChangedKeyError{Source: from, PinnedKey: have.Key, CurrentKey: key}
	}
	pinned, err := p.pinnedKey(from)
	if err != nil {
		return nil, err
	}
	// Do not pin the key of a skill fetched by commit: anyone may have pushed
	// the commit, because hosts also serve commits of forks.
	first := pinned == "" && key != "" && (st.From.Kind != remote.Git || st.Entry.Ref != "") && len(from) <= signature.MaxSourceBytes
	if first {
		if other := p.newKeys[from]; other != "" && other != key {
			return nil, &signature.ChangedKeyError{Source: from, PinnedKey: other, CurrentKey: key}
		}
	}
	// A skill that was installed unsigned before its source had a key may stay
	// unsigned.
	if was := key == "" && there && have.Key == ""; pinned != "" && pinned != key && !was {
		return nil, &signature.ChangedKeyError{Source: from, PinnedKey: pinned, CurrentKey: key}
	}
	return newPublisher(signed, first), nil
}

// verifySignature returns the verified signature of the files, or nil if the
// skill is not signed.
func (st *Step) verifySignature() (*signature.Signature, error) {
	sig, s, err := signature.ReadFile(st.files)
	if errors.Is(err, signature.ErrUnsigned) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s, signature.Verify(st.manifest, st.SkillName, sig, s.Key)
}

// pinnedKey returns the key pinned for a source, or "".
func (p *Plan) pinnedKey(source string) (string, error) {
	if p.pinnedKeys == nil {
		p.pinnedKeys = map[string]string{}
	}
	if key, known := p.pinnedKeys[source]; known || p.options.Pins == nil {
		return key, nil
	}
	pin, err := p.options.Pins.Find(source)
	if err != nil && !errors.Is(err, signature.ErrNotPinned) {
		return "", err
	}
	p.pinnedKeys[source] = pin.Key
	return pin.Key, nil
}

// pinKeys pins the keys of sources from which signed skills are installed for
// the first time.
func (p *Plan) pinKeys(ctx context.Context) error {
	for _, st := range p.Steps {
		if st.Publisher == nil || !st.Publisher.First {
			continue
		}
		if p.options.Pins == nil {
			return ErrNoPins
		}
		if _, err := p.options.Pins.Check(ctx, st.From.CanonicalURL(), st.Publisher.Key); err != nil {
			return err
		}
	}
	return nil
}

// VerifySignature verifies the signature of an installed skill whose lockfile
// entry has a key. The signature must have the counter and time in the entry.
// If pins is not nil, the key must also match the one pinned for the source.
func VerifySignature(dir string, e installed.Entry, pins *signature.Pins) error {
	if e.Key == "" {
		return nil
	}
	b, err := skill.OpenDir(dir)
	if err != nil {
		return err
	}
	defer b.Close()
	_, s, err := signature.VerifyBundle(b, e.Key)
	if err != nil {
		return err
	}
	if s.Counter != e.Counter || !s.Time.Equal(e.Signed) {
		return fmt.Errorf("counter mismatch: %s records %s, the signature has %s", installed.LockfileName,
			formatRelease(signature.Release{Counter: e.Counter, Time: e.Signed}), formatRelease(s.Release))
	}
	if e.From.Kind == remote.Local || pins == nil {
		return nil
	}
	switch pinned, err := pins.Find(e.From.CanonicalURL()); {
	case errors.Is(err, signature.ErrNotPinned):
		return nil
	case err != nil:
		return err
	case pinned.Key != e.Key:
		return &signature.ChangedKeyError{Source: e.From.CanonicalURL(), PinnedKey: pinned.Key, CurrentKey: e.Key}
	}
	return nil
}
