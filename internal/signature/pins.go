package signature

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

// Limits on stored pins.
const (
	MaxPins        = 5000
	MaxSourceBytes = 512
	maxPinsBytes   = 8 << 20

	// A file without expiries and rotations has the lower version, so that
	// earlier programs can read it.
	pinsVersion            = 2
	pinsVersionOfPlainKeys = 1
)

// ErrNotPinned is returned if a source has no pinned key.
var ErrNotPinned = errors.New("no pinned key")

// Pins stores, for each source, the key that signed its skills when they were
// first seen. The file must belong to the current user. Several processes may
// change it concurrently. If other users can read or write the file, or if it
// is damaged, all methods return an error. Pins is safe for concurrent use.
type Pins struct {
	Path string // path of the file; Check and Set create it and its directory
	// Identity returns the same string for all spellings of a source. If two
	// stored spellings have different keys, the one stored first is used. If
	// Identity is nil, sources are compared unchanged.
	Identity func(source string) string
}

// Pin is the pinned key of a source.
type Pin struct {
	Source string    `json:"source"`
	Key    string    `json:"key"`   // public
	Since  time.Time `json:"since"` // time of pinning
	// Expires is when the key expires, according to the first signature that
	// said so; zero means never.
	Expires time.Time `json:"expires,omitzero"`
	// Previous lists the keys that the publisher replaced, oldest first.
	Previous []string `json:"previous,omitempty"`
	// First is set if the call of Check that returned the Pin also pinned the
	// key, so the key was not compared with an earlier one.
	First bool `json:"first,omitempty"`
}

// ChangedKeyError is returned if a skill is not signed with its source's pinned
// key.
type ChangedKeyError struct {
	Source     string
	PinnedKey  string // pinned public key
	CurrentKey string // key of the current signature; "" if unsigned
}

func (e *ChangedKeyError) Error() string {
	now := "it is no longer signed"
	if e.CurrentKey != "" {
		now = "it is now " + describeKey(e.CurrentKey)
	}
	return fmt.Sprintf("key of %q changed: it was %s, and %s; ask the publisher before you accept it", e.Source, describeKey(e.PinnedKey), now)
}

// Check compares the key that signed a skill with the pinned key of its source.
// key is empty for an unsigned skill. The caller must verify the signature
// first.
//
// For a new source, Check pins the key and sets First. For an unsigned skill
// from a new source, it pins nothing and returns the zero Pin. If the key
// differs from the pinned key, or is missing, the error is a
// [*ChangedKeyError].
//
// source identifies the origin of the skill and must be the same in each call.
// It must have 1 to 512 bytes of printable characters, without a password or
// token.
func (p Pins) Check(ctx context.Context, source, key string) (Pin, error) {
	if err := checkSource(source); err != nil {
		return Pin{}, fmt.Errorf("check key of source: %w", err)
	}
	if key != "" && KeyName(key) == "" {
		return Pin{}, fmt.Errorf("check key of source %q: %w", source, errInvalidPublicKey)
	}
	all, err := p.read()
	if err != nil {
		return Pin{}, fmt.Errorf("check key of source %q: %w", source, err)
	}
	if k, ok := all[p.identity(source)]; ok || key == "" {
		return k, k.checkKey(key)
	}
	var out Pin
	err = p.update(ctx, func(all pinSet) error {
		if k, ok := all[p.identity(source)]; ok { // another process pinned it first
			out = k
			return k.checkKey(key)
		}
		out = Pin{Source: source, Key: key, Since: time.Now().UTC(), First: true}
		return p.addPin(all, out)
	})
	if changed, ok := errors.AsType[*ChangedKeyError](err); ok {
		return out, changed
	}
	if err != nil {
		return Pin{}, fmt.Errorf("pin key of source %q: %w", source, err)
	}
	return out, nil
}

// Advance stores the statements about a source's key from a verified signature:
// the expiry of the pinned key, which never becomes later, and a key that
// replaces it. The caller must check the replacement with [Signature.Succeeds].
func (p Pins) Advance(ctx context.Context, source string, s *Signature) error {
	err := p.update(ctx, func(all pinSet) error {
		k, ok := all[p.identity(source)]
		if !ok {
			return ErrNotPinned
		}
		all[p.identity(source)] = k.advance(s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("update key of source %.200q: %w", source, err)
	}
	return nil
}

func (k Pin) advance(s *Signature) Pin {
	if k.Key != s.Key {
		k.Previous = append(slices.Clone(k.Previous), k.Key)
		if n := len(k.Previous) - MaxRotations; n > 0 {
			k.Previous = k.Previous[n:]
		}
		k.Key, k.Since, k.Expires = s.Key, time.Now().UTC(), s.KeyExpires
		return k
	}
	k.Expires = k.ExpiryOf(s)
	return k
}

// ExpiryOf returns when the key of a signature expires. Someone who steals the
// key cannot make it expire later.
func (k Pin) ExpiryOf(s *Signature) time.Time {
	if k.Key == s.Key && !k.Expires.IsZero() && (s.KeyExpires.IsZero() || k.Expires.Before(s.KeyExpires)) {
		return k.Expires
	}
	return s.KeyExpires
}

func (k Pin) checkKey(now string) error {
	if k.Key != now {
		return &ChangedKeyError{Source: k.Source, PinnedKey: k.Key, CurrentKey: now}
	}
	return nil
}

// Find returns the pin of a source, without changing it. If there is none, the
// error is ErrNotPinned.
func (p Pins) Find(source string) (Pin, error) {
	all, err := p.read()
	if k, ok := all[p.identity(source)]; ok && err == nil {
		return k, nil
	}
	return Pin{}, fmt.Errorf("find key of source %.200q: %w", source, cmp.Or(err, ErrNotPinned))
}

// Set pins a key for a source, replacing any earlier pin. It must only be
// called after the user confirmed the key.
func (p Pins) Set(ctx context.Context, source, key string) (Pin, error) {
	if err := checkSource(source); err != nil {
		return Pin{}, fmt.Errorf("pin key of source: %w", err)
	}
	if KeyName(key) == "" {
		return Pin{}, fmt.Errorf("pin key of source %q: %w", source, errInvalidPublicKey)
	}
	k := Pin{Source: source, Key: key, Since: time.Now().UTC()}
	if err := p.update(ctx, func(all pinSet) error { return p.addPin(all, k) }); err != nil {
		return Pin{}, fmt.Errorf("pin key of source %q: %w", source, err)
	}
	return k, nil
}

// Remove deletes the pin of a source and returns it. Check then treats the
// source as new. If there is no pin, the error is ErrNotPinned.
func (p Pins) Remove(ctx context.Context, source string) (Pin, error) {
	all, err := p.read()
	if err == nil {
		if _, ok := all[p.identity(source)]; !ok {
			err = ErrNotPinned
		}
	}
	var out Pin
	if err == nil {
		err = p.update(ctx, func(all pinSet) error {
			var ok bool
			if out, ok = all[p.identity(source)]; !ok {
				return ErrNotPinned
			}
			delete(all, p.identity(source))
			return nil
		})
	}
	if err != nil {
		return Pin{}, fmt.Errorf("unpin key of source %.200q: %w", source, err)
	}
	return out, nil
}

// All returns all pins, sorted by source.
func (p Pins) All() ([]Pin, error) {
	all, err := p.read()
	if err != nil {
		return nil, fmt.Errorf("read pinned keys: %w", err)
	}
	out := make([]Pin, 0, len(all))
	for _, source := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[source])
	}
	return out, nil
}

func checkSource(s string) error {
	if !isOneLine(s) || len(s) > MaxSourceBytes {
		return fmt.Errorf("invalid source, want 1 to %d bytes without control characters", MaxSourceBytes)
	}
	if u, err := url.Parse(s); err == nil && u.User != nil {
		if _, secret := u.User.Password(); secret || strings.HasPrefix(u.Scheme, "http") {
			return errors.New("source contains a password or token")
		}
	}
	return nil
}

// pinSet maps the identities of sources to pins.
type pinSet map[string]Pin

func (p Pins) identity(source string) string {
	if p.Identity == nil {
		return source
	}
	return p.Identity(source)
}

func (p Pins) addPin(all pinSet, k Pin) error {
	id := p.identity(k.Source)
	if _, ok := all[id]; !ok && len(all) >= MaxPins {
		return fmt.Errorf("too many pinned keys (limit %d); remove some", MaxPins)
	}
	all[id] = k
	return nil
}

// pinsFile is the JSON format of the pins file.
type pinsFile struct {
	Version int   `json:"version"`
	Pins    []Pin `json:"publishers"` // by source
}

func (p Pins) file() *privatefile.File { return privatefile.New(p.Path, maxPinsBytes) }

func (p Pins) read() (pinSet, error) {
	data, err := p.file().Read()
	if errors.Is(err, fs.ErrNotExist) {
		return pinSet{}, nil
	}
	if err != nil {
		return nil, err
	}
	return p.decode(data)
}

func (p Pins) update(ctx context.Context, edit func(pinSet) error) error {
	return p.file().Change(ctx, func(old []byte) ([]byte, error) {
		all := pinSet{}
		if old != nil {
			var err error
			if all, err = p.decode(old); err != nil {
				return nil, err
			}
		}
		if err := edit(all); err != nil {
			return nil, err
		}
		f := pinsFile{Version: pinsVersionOfPlainKeys, Pins: []Pin{}}
		for _, source := range slices.Sorted(maps.Keys(all)) {
			k := all[source]
			k.First = false
			if !k.Expires.IsZero() || len(k.Previous) > 0 {
				f.Version = pinsVersion
			}
			f.Pins = append(f.Pins, k)
		}
		data, err := json.MarshalIndent(f, "", "  ")
		return append(data, '\n'), err
	})
}

// decode parses the pins file. It returns an error for any problem, because a
// source whose key was lost would be treated as new.
func (p Pins) decode(data []byte) (pinSet, error) {
	damaged := func(format string, args ...any) (pinSet, error) {
		return nil, fmt.Errorf("damaged file %s: %w", p.Path, fmt.Errorf(format, args...))
	}
	if err := privatefile.CheckVersion(data, pinsVersion); err != nil {
		return damaged("%w", err)
	}
	var f pinsFile
	if json.Unmarshal(data, &f) != nil {
		return damaged("cannot decode JSON")
	}
	all, seen := pinSet{}, map[string]bool{}
	for _, k := range f.Pins {
		if seen[k.Source] || checkSource(k.Source) != nil || KeyName(k.Key) == "" || k.First {
			return damaged("invalid entry for %.100q", k.Source)
		}
		seen[k.Source] = true
		id := p.identity(k.Source)
		if first, ok := all[id]; !ok || k.Since.Before(first.Since) {
			all[id] = k
		}
	}
	return all, nil
}
