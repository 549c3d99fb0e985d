package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// clockTolerance is how far the clocks of a publisher and of the hub may differ.
const clockTolerance = 24 * time.Hour

// signature returns the verified signature of the files, or nil if they are not
// signed.
func (c *content) signature() (*signature.Signature, error) {
	sig, s, err := signature.ReadFile(c.fsys)
	if errors.Is(err, signature.ErrUnsigned) {
		return nil, nil
	}
	if err == nil {
		err = signature.Verify(c.manifest, c.skill.Name, sig, s.Key)
	}
	if err != nil {
		return nil, invalidf("%v", err)
	}
	return s, nil
}

// DowngradeReason is the reason why the files of a source must not replace a
// version.
type DowngradeReason string

// Reasons of a [DowngradeError].
const (
	Downgraded DowngradeReason = "downgrade"   // an existing version is newer, or is signed while the imported one is not
	KeyChanged DowngradeReason = "key_changed" // the key differs, and the publisher has not replaced the earlier key with it
	KeyExpired DowngradeReason = "key_expired"
)

// DowngradeError reports that the files of a source may be older than the stored
// versions of the skill, or may not come from their publisher. A request with
// Downgrade set imports them anyway. The error matches [ErrInvalid].
type DowngradeError struct {
	Reason  DowngradeReason
	Message string
}

func (e *DowngradeError) Error() string { return e.Message + "; to import it anyway, set downgrade" }

// Is reports whether target is [ErrInvalid].
func (e *DowngradeError) Is(target error) bool { return target == ErrInvalid }

func downgradef(r DowngradeReason, format string, args ...any) error {
	return &DowngradeError{r, fmt.Sprintf(format, args...)}
}

// checkRelease returns an error if the files of a source must not replace the
// current version of a skill because their signature is invalid, its key has
// expired or belongs to a different owner than the earlier key, or its counter is
// lower than that of a stored version by the same owner. If setting downgrade
// would permit the files, the error is a [*DowngradeError].
func (l *Library) checkRelease(ctx context.Context, h *skillRecord, c *content, downgrade bool) error {
	now, err := c.signature()
	if err != nil || downgrade {
		return err
	}
	last, highest, err := l.signedVersions(ctx, h, now)
	if err != nil {
		return err
	}
	switch {
	case now == nil && last == nil:
		return nil
	case now == nil:
		return downgradef(Downgraded, "skill %q is no longer signed by %q", h.Name, signature.KeyName(last.Key))
	case last != nil && last.Key != now.Key && !now.Succeeds(last.Key, last.KeyExpires):
		return downgradef(KeyChanged, "key of skill %q changed from %s to %s; ask the publisher", h.Name, signature.Fingerprint(last.Key), signature.Fingerprint(now.Key))
	case now.Counter < highest.counter:
		return downgradef(Downgraded, "downgrade of skill %q: the source has counter %d, and a version here has %d", h.Name, now.Counter, highest.counter)
	case now.Counter > 0 && now.Counter == highest.counter && c.manifest.Digest() != highest.digest:
		return downgradef(Downgraded, "downgrade of skill %q: the source has other files with the same counter %d", h.Name, now.Counter)
	}
	expires := now.KeyExpires
	if last != nil {
		expires = signature.Pin{Key: last.Key, Expires: last.KeyExpires}.ExpiryOf(now)
	}
	return checkClock(h.Name, now, expires)
}

// checkFirstRelease is like checkRelease for a skill that does not exist yet.
func (c *content) checkFirstRelease(downgrade bool) error {
	now, err := c.signature()
	if err != nil || now == nil || downgrade {
		return err
	}
	return checkClock(c.skill.Name, now, now.KeyExpires)
}

// checkClock returns an error if a signature is dated in the future, or if its key
// has expired. expires is when the key expires, or zero for never.
func checkClock(name string, s *signature.Signature, expires time.Time) error {
	switch now := time.Now(); {
	case s.Time.After(now.Add(clockTolerance)):
		return invalidf("signature of skill %q is dated %s, in the future; check the clock of the hub", name, s.Time.Format(time.DateOnly))
	case !expires.IsZero() && !now.Before(expires):
		return downgradef(KeyExpired, "key of skill %q expired on %s; ask the publisher to replace it", name, expires.Format(time.DateOnly))
	}
	return nil
}

// release identifies a signed version.
type release struct {
	counter uint64
	digest  string
}

// signedVersions returns the signature of the newest signed version of a skill,
// or nil if there is none. Of the versions signed by the same owner as incoming,
// it also returns the one with the highest counter. It ignores the counters of
// other owners, whose versions were imported although they have a different key.
// It considers only imported versions that are cleared for use or current,
// because otherwise anybody who may upload could replace the key or stop
// updates.
func (l *Library) signedVersions(ctx context.Context, h *skillRecord, incoming *signature.Signature) (last *signature.Signature, highest release, err error) {
	const page = 100
	for before := int64(0); ; {
		versions, err := l.db.Versions.List(ctx, h.ID, before, page)
		if err != nil {
			return nil, highest, err
		}
		for _, v := range versions {
			before = v.Number
			if readSource(v.Source) == nil || !isCleared(v) && v.Number != h.Number {
				continue
			}
			s, err := l.versionSignature(ctx, h.Name, v)
			if err != nil {
				return nil, highest, err
			}
			if s == nil {
				continue
			}
			if last == nil {
				last = s
			}
			if incoming != nil && isSameOwner(s, incoming) && s.Counter > highest.counter {
				highest = release{s.Counter, v.Digest}
			}
		}
		if len(versions) < page {
			return last, highest, nil
		}
	}
}

// isSameOwner reports whether the keys of two signatures belong to the same
// publisher: the keys are equal, or the publisher has stated that one key
// succeeds the other, directly or through other keys.
func isSameOwner(a, b *signature.Signature) bool {
	return a.Key == b.Key || b.Succeeds(a.Key, a.KeyExpires) || a.Succeeds(b.Key, b.KeyExpires)
}

// versionSignature returns the verified signature of a version, or nil if the
// signature is missing or damaged.
func (l *Library) versionSignature(ctx context.Context, name string, v store.Version) (*signature.Signature, error) {
	files, err := l.manifest(ctx, v)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(files, func(f skill.File) bool { return f.Path == signature.FileName }) {
		return nil, nil
	}
	b, err := l.bundle(ctx, name, v)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	sig, s, err := signature.ReadFile(b)
	if err != nil || signature.Verify(files, s.Name, sig, s.Key) != nil {
		return nil, nil
	}
	return s, nil
}

// Publisher describes who signed a version, and when.
type Publisher struct {
	Name        string    `json:"name" doc:"Name in the key"`
	Fingerprint string    `json:"fingerprint" doc:"Of the key"`
	Counter     uint64    `json:"counter,omitempty" doc:"Position in the history of the skill; absent without history"`
	Signed      time.Time `json:"signed,omitzero" doc:"According to the publisher's clock"`
	KeyExpires  time.Time `json:"keyExpires,omitzero" doc:"When the key expires; absent for never. Then, updates stop; stored versions remain valid"`
	KeyExpired  bool      `json:"keyExpired" doc:"Whether the key has expired, by the clock of the hub"`
}

// Publisher returns the publisher that signed a version, or nil if it has no
// valid signature. Number 0 means the current version.
func (l *Library) Publisher(ctx context.Context, p account.Principal, id string, number int64) (*Publisher, error) {
	h, v, err := l.getReadableVersion(ctx, p, account.SkillRead, id, number)
	if err != nil {
		return nil, err
	}
	s, err := l.versionSignature(ctx, h.Name, v)
	if err != nil || s == nil {
		return nil, err
	}
	return &Publisher{
		Name: signature.KeyName(s.Key), Fingerprint: signature.Fingerprint(s.Key), Counter: s.Counter, Signed: s.Time,
		KeyExpires: s.KeyExpires, KeyExpired: !s.KeyExpires.IsZero() && !time.Now().Before(s.KeyExpires),
	}, nil
}
