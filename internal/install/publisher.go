package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// Publisher identifies the signer of a skill.
type Publisher struct {
	Key, Name, Fingerprint string
	First                  bool      // first key seen from this source
	signature.Release                // zero if the signature has no counter
	Expires                time.Time // when the key expires; zero means never
	// Replaces is the fingerprint of the pinned key, if its owner replaced it
	// with this one.
	Replaces string

	signed *signature.Signature
}

func newPublisher(s *signature.Signature, first bool) *Publisher {
	if s == nil {
		return nil
	}
	return &Publisher{Key: s.Key, Name: signature.KeyName(s.Key), Fingerprint: signature.Fingerprint(s.Key), First: first,
		Release: s.Release, Expires: s.KeyExpires, signed: s}
}

// checkPublisher verifies a skill's signature before installation. The files
// must match the signature. The key must be the first key seen from the source,
// or a successor declared by the owner of the previous key.
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
	have, there := p.installedFrom(st)
	pinned, err := p.pinOf(from)
	if err != nil {
		return nil, err
	}
	if there && st.State == StateUnchanged && key == have.Key && slices.Contains(pinned.Previous, key) {
		return newPublisher(signed, false), nil // installed before its key was replaced
	}
	if there && have.Key != "" && have.Key != key && !pinned.isSuccessor(signed, have.Key) {
		return nil, &signature.ChangedKeyError{Source: from, PinnedKey: have.Key, CurrentKey: key}
	}
	first := pinned.Key == "" && key != "" && !st.isCommit() && len(from) <= signature.MaxSourceBytes
	if first {
		if other := p.newKeys[from]; other != "" && other != key {
			return nil, &signature.ChangedKeyError{Source: from, PinnedKey: other, CurrentKey: key}
		}
	}
	// A skill that was installed unsigned before its source had a key may stay
	// unsigned.
	wasUnsigned := key == "" && there && have.Key == ""
	out := newPublisher(signed, first)
	if pinned.Key != "" && pinned.Key != key && !wasUnsigned {
		if !pinned.isSuccessor(signed, pinned.Key) {
			return nil, &signature.ChangedKeyError{Source: from, PinnedKey: pinned.Key, CurrentKey: key}
		}
		out.Replaces = signature.Fingerprint(pinned.Key)
	}
	if out != nil {
		out.Expires = pinned.ExpiryOf(signed)
	}
	return out, nil
}

// isCommit reports whether a skill is fetched by commit. The key of such a
// skill is not pinned for its source: anyone may have pushed the commit,
// because a host also serves the commits of a repository's forks.
func (st *Step) isCommit() bool { return st.From.Kind == remote.Git && st.Entry.Ref == "" }

// pin is the pinned key of a source. The zero value means that no key is
// pinned.
type pin struct{ signature.Pin }

// isSuccessor reports whether the owner of an earlier key declared that the key
// of a signature replaces it.
func (k pin) isSuccessor(signed *signature.Signature, earlier string) bool {
	if signed == nil {
		return false
	}
	expires := time.Time{}
	if earlier == k.Key {
		expires = k.Expires
	}
	return signed.Succeeds(earlier, expires)
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

// pinOf returns the pin of a source, or the zero pin.
func (p *Plan) pinOf(source string) (pin, error) {
	if k, known := p.pins[source]; known || p.options.Pins == nil {
		return k, nil
	}
	k, err := p.options.Pins.Find(source)
	if err != nil && !errors.Is(err, signature.ErrNotPinned) {
		return pin{}, err
	}
	p.pins[source] = pin{k}
	return pin{k}, nil
}

// pinKeys pins the keys of sources from which signed skills are installed for
// the first time. For sources with a pinned key, it stores the key rotations
// and expiry dates that the signatures contain.
func (p *Plan) pinKeys(ctx context.Context) error {
	for _, st := range p.Steps {
		if st.Publisher == nil || st.From.Kind == remote.Local {
			continue
		}
		from, k := st.From.CanonicalURL(), p.pins[st.From.CanonicalURL()]
		if st.Publisher.First {
			if p.options.Pins == nil {
				return ErrNoPins
			}
			if _, err := p.options.Pins.Check(ctx, from, st.Publisher.Key); err != nil {
				return err
			}
		}
		says := st.Publisher.Replaces != "" || !k.ExpiryOf(st.Publisher.signed).Equal(k.Expires)
		if known := st.Publisher.First || k.Key != ""; known && says && !slices.Contains(k.Previous, st.Publisher.Key) {
			if err := p.options.Pins.Advance(ctx, from, st.Publisher.signed); err != nil {
				return err
			}
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
	case pinned.Key != e.Key && !slices.Contains(pinned.Previous, e.Key):
		return &signature.ChangedKeyError{Source: e.From.CanonicalURL(), PinnedKey: pinned.Key, CurrentKey: e.Key}
	}
	return nil
}
