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

// Limits on the stored pins.
const (
	MaxPins        = 5000
	MaxSourceBytes = 512
	maxPinsBytes   = 8 << 20
	pinsVersion    = 1
)

// ErrNotPinned is returned for a source without a pinned key.
var ErrNotPinned = errors.New("no pinned key")

// Pins stores which key signed the skills of each source when they were first
// seen. The file belongs to this user alone, and several processes may change
// it concurrently. If others could have read or written it, or if it is
// damaged, every method returns an error. Pins is safe for concurrent use.
type Pins struct {
	Path string // path of the file; created with its directory when a key is pinned
}

// Pin is the pinned key of a source.
type Pin struct {
	Source string    `json:"source"`
	Key    string    `json:"key"`   // public
	Since  time.Time `json:"since"` // when it was pinned
	// First says that this call pinned the key, so it was not compared with an
	// earlier one.
	First bool `json:"first,omitempty"`
}

// ChangedKeyError is returned for a source whose skill is not signed by the
// pinned key.
type ChangedKeyError struct {
	Source     string
	PinnedKey  string // the public key that is kept
	CurrentKey string // the key of the current signature; "" if unsigned
}

func (e *ChangedKeyError) Error() string {
	now := "it is not signed any more"
	if e.CurrentKey != "" {
		now = "it is signed by " + describeKey(e.CurrentKey) + " now"
	}
	return fmt.Sprintf("key of %q changed: it was %s, and %s; ask the publisher before you accept it", e.Source, describeKey(e.PinnedKey), now)
}

// Check compares the key that signed a source's skill with the pinned key. key
// is empty for an unsigned skill. The caller must verify the signature first.
//
// For a new source, Check pins the key and sets First. An unsigned skill of a
// new source has nothing to pin, and Check returns the zero Pin. A key other
// than the pinned one, or none, is a [*ChangedKeyError].
//
// source identifies the origin of the skills. It has 1 to 512 bytes of
// printable characters without a password or token, and must be the same in
// each call.
func (p Pins) Check(ctx context.Context, source, key string) (Pin, error) {
	if err := checkSource(source); err != nil {
		return Pin{}, fmt.Errorf("check the key of a source: %w", err)
	}
	if key != "" && KeyName(key) == "" {
		return Pin{}, fmt.Errorf("check the key of %q: %w", source, errInvalidPublicKey)
	}
	all, err := p.read()
	if err != nil {
		return Pin{}, fmt.Errorf("check the key of %q: %w", source, err)
	}
	if k, ok := all[source]; ok || key == "" {
		return k, k.checkKey(key)
	}
	var out Pin
	err = p.update(ctx, func(all pinSet) error {
		if k, ok := all[source]; ok { // another process pinned it first
			out = k
			return k.checkKey(key)
		}
		out = Pin{Source: source, Key: key, Since: time.Now().UTC(), First: true}
		return all.addPin(out)
	})
	if changed, ok := errors.AsType[*ChangedKeyError](err); ok {
		return out, changed
	}
	if err != nil {
		return Pin{}, fmt.Errorf("pin the key of %q: %w", source, err)
	}
	return out, nil
}

func (k Pin) checkKey(now string) error {
	if k.Key != now {
		return &ChangedKeyError{Source: k.Source, PinnedKey: k.Key, CurrentKey: now}
	}
	return nil
}

// Find returns the pin of a source without changing anything. It returns
// ErrNotPinned if there is none.
func (p Pins) Find(source string) (Pin, error) {
	all, err := p.read()
	if k, ok := all[source]; ok && err == nil {
		return k, nil
	}
	return Pin{}, fmt.Errorf("find the key of %.200q: %w", source, cmp.Or(err, ErrNotPinned))
}

// Set pins a key for a source and replaces an earlier pin, because the user
// confirmed it.
func (p Pins) Set(ctx context.Context, source, key string) (Pin, error) {
	if err := checkSource(source); err != nil {
		return Pin{}, fmt.Errorf("pin the key of a source: %w", err)
	}
	if KeyName(key) == "" {
		return Pin{}, fmt.Errorf("pin the key of %q: %w", source, errInvalidPublicKey)
	}
	k := Pin{Source: source, Key: key, Since: time.Now().UTC()}
	if err := p.update(ctx, func(all pinSet) error { return all.addPin(k) }); err != nil {
		return Pin{}, fmt.Errorf("pin the key of %q: %w", source, err)
	}
	return k, nil
}

// Remove deletes the pin of a source and returns it. The source is then new to
// Check. Remove returns ErrNotPinned if there is none.
func (p Pins) Remove(ctx context.Context, source string) (Pin, error) {
	all, err := p.read()
	if err == nil {
		if _, ok := all[source]; !ok {
			err = ErrNotPinned
		}
	}
	var out Pin
	if err == nil {
		err = p.update(ctx, func(all pinSet) error {
			var ok bool
			if out, ok = all[source]; !ok {
				return ErrNotPinned
			}
			delete(all, source)
			return nil
		})
	}
	if err != nil {
		return Pin{}, fmt.Errorf("unpin the key of %.200q: %w", source, err)
	}
	return out, nil
}

// All returns all pins, sorted by source.
func (p Pins) All() ([]Pin, error) {
	all, err := p.read()
	if err != nil {
		return nil, fmt.Errorf("read the keys of sources: %w", err)
	}
	out := make([]Pin, 0, len(all))
	for _, source := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[source])
	}
	return out, nil
}

func checkSource(s string) error {
	if !isOneLine(s) || len(s) > MaxSourceBytes {
		return fmt.Errorf("source is empty, longer than %d bytes, or contains control characters", MaxSourceBytes)
	}
	if u, err := url.Parse(s); err == nil && u.User != nil {
		if _, secret := u.User.Password(); secret || strings.HasPrefix(u.Scheme, "http") {
			return errors.New("source contains a password or token")
		}
	}
	return nil
}

// pinSet maps sources to pins.
type pinSet map[string]Pin

func (all pinSet) addPin(k Pin) error {
	if _, ok := all[k.Source]; !ok && len(all) >= MaxPins {
		return fmt.Errorf("too many pinned keys (%d); remove some", len(all))
	}
	all[k.Source] = k
	return nil
}

// pinsFile is the format of the file.
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
		f := pinsFile{Version: pinsVersion, Pins: []Pin{}}
		for _, source := range slices.Sorted(maps.Keys(all)) {
			k := all[source]
			k.First = false
			f.Pins = append(f.Pins, k)
		}
		data, err := json.MarshalIndent(f, "", "  ")
		return append(data, '\n'), err
	})
}

// decode parses the file. It fails on any fault, because a source whose key was
// dropped would be treated as new.
func (p Pins) decode(data []byte) (pinSet, error) {
	damaged := func(format string, args ...any) (pinSet, error) {
		return nil, fmt.Errorf("%s is damaged: %s", p.Path, fmt.Sprintf(format, args...))
	}
	var f pinsFile
	if json.Unmarshal(data, &f) != nil {
		return damaged("it is no JSON as this program writes it")
	}
	if f.Version != pinsVersion {
		return nil, fmt.Errorf("%s has version %d, which this program does not support", p.Path, f.Version)
	}
	all := pinSet{}
	for _, k := range f.Pins {
		if _, twice := all[k.Source]; twice || checkSource(k.Source) != nil || KeyName(k.Key) == "" || k.First {
			return damaged("its entry for %.100q is wrong", k.Source)
		}
		all[k.Source] = k
	}
	return all, nil
}
