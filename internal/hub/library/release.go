package library

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/signature"
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

// checkRelease returns an error if the files of a source must not replace the
// current version of a skill: their signature is invalid, its key does not belong
// to the owner of the earlier one or has expired, or its counter is lower than
// that of a stored version.
func (l *Library) checkRelease(ctx context.Context, h *skillRecord, c *content, downgrade bool) error {
	now, err := c.signature()
	if err != nil || downgrade {
		return err
	}
	last, highest, err := l.signedVersions(ctx, h)
	if err != nil {
		return err
	}
	switch {
	case now == nil && last == nil:
		return nil
	case now == nil:
		return invalidf("skill %q is no longer signed by %q; to import it anyway, set downgrade", h.Name, signature.KeyName(last.Key))
	case last != nil && last.Key != now.Key && !now.Succeeds(last.Key, last.KeyExpires):
		return invalidf("key of skill %q changed from %s to %s; ask the publisher; to import it anyway, set downgrade", h.Name, signature.Fingerprint(last.Key), signature.Fingerprint(now.Key))
	case now.Counter < highest.counter:
		return invalidf("downgrade of skill %q: the source has counter %d, and a version here has %d; to import it anyway, set downgrade", h.Name, now.Counter, highest.counter)
	case now.Counter > 0 && now.Counter == highest.counter && c.manifest.Digest() != highest.digest:
		return invalidf("downgrade of skill %q: the source has other files with the same counter %d; to import it anyway, set downgrade", h.Name, now.Counter)
	case now.Time.After(time.Now().Add(clockTolerance)):
		return invalidf("signature of skill %q is dated %s, in the future; check the clock of the hub", h.Name, now.Time.Format(time.DateOnly))
	}
	expires := now.KeyExpires
	if last != nil {
		expires = signature.Pin{Key: last.Key, Expires: last.KeyExpires}.ExpiryOf(now)
	}
	if !expires.IsZero() && !time.Now().Before(expires) {
		return invalidf("key of skill %q expired on %s; ask the publisher to replace it; to import it anyway, set downgrade", h.Name, expires.Format(time.DateOnly))
	}
	return nil
}

// release identifies a signed version.
type release struct {
	counter uint64
	digest  string
}

// signedVersions returns the signature of the newest signed version of a skill,
// or nil, and the version with the highest counter.
func (l *Library) signedVersions(ctx context.Context, h *skillRecord) (last *signature.Signature, highest release, err error) {
	const page = 100
	for before := int64(0); ; {
		versions, err := l.db.Versions.List(ctx, h.ID, before, page)
		if err != nil {
			return nil, highest, err
		}
		for _, v := range versions {
			before = v.Number
			b, err := l.bundle(ctx, h.Name, v)
			if err != nil {
				return nil, highest, err
			}
			sig, s, err := signature.ReadFile(b)
			if err != nil { // not signed, or an upload with a damaged signature
				continue
			}
			files, err := l.manifest(ctx, v)
			if err != nil {
				return nil, highest, err
			}
			if signature.Verify(files, s.Name, sig, s.Key) != nil {
				continue
			}
			if last == nil {
				last = s
			}
			if s.Counter > highest.counter {
				highest = release{s.Counter, v.Digest}
			}
		}
		if len(versions) < page {
			return last, highest, nil
		}
	}
}
