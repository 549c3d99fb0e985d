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

	"github.com/loadout-dev/loadout/policy"
)

// Bounds on the pins that are kept.
const (
	MaxPins        = 5000
	MaxSourceBytes = 512
	maxPinsBytes   = 8 << 20
	pinsVersion    = 1
)

// ErrNotPinned says that no key is kept for a source.
var ErrNotPinned = errors.New("no key is kept for it")

// Pins keeps which key the skills of a source were first signed by, in a file
// that is this user's alone and that any number of processes change at once. A
// file that others could have written or read, or that is damaged, is an error
// of every method, and then no key counts. It is safe for concurrent use.
type Pins struct {
	Path string // of the file, which is made with its directory when a key is kept
}

// Pinned is the key of a source.
type Pinned struct {
	Source string    `json:"source"`
	Key    string    `json:"key"`   // public
	Since  time.Time `json:"since"` // when it was kept
	// First says that this very call kept it: nobody has compared it.
	First bool `json:"first,omitempty"`
}

// ChangedKeyError says that what a source has now is not signed by the key that
// is kept for it.
type ChangedKeyError struct {
	Source string
	Pinned string // the public key that is kept
	Now    string // that it is signed by now, "" for no signature
}

func (e *ChangedKeyError) Error() string {
	now := "it is not signed any more"
	if e.Now != "" {
		now = "it is signed by " + describe(e.Now) + " now"
	}
	return fmt.Sprintf("the key of %q changed: it was %s, and %s; ask its publisher about it before you take it", e.Source, describe(e.Pinned), now)
}

// Check compares the key that a source's skill is signed by, "" for no signature,
// with the one that is kept. A signature has to be verified with the key first.
//
// Of a source that is met for the first time the key is kept, and First is set;
// without a signature there is nothing to keep, and the zero Pinned is returned.
// Another key than the one that is kept, or none, is a [*ChangedKeyError].
//
// source is 1 to 512 bytes of printable characters that say where skills come
// from, the same at each time, with no password or token in it.
func (p Pins) Check(ctx context.Context, source, key string) (Pinned, error) {
	if err := checkSource(source); err != nil {
		return Pinned{}, fmt.Errorf("check the key of a source: %w", err)
	}
	if key != "" && KeyName(key) == "" {
		return Pinned{}, fmt.Errorf("check the key of %q: %w", source, errNoPublic)
	}
	all, err := p.read()
	if err != nil {
		return Pinned{}, fmt.Errorf("check the key of %q: %w", source, err)
	}
	if k, ok := all[source]; ok || key == "" {
		return k, k.check(key)
	}
	var out Pinned
	err = p.change(ctx, func(all pinned) error {
		if k, ok := all[source]; ok { // another process was first
			out = k
			return k.check(key)
		}
		out = Pinned{Source: source, Key: key, Since: time.Now().UTC(), First: true}
		return all.put(out)
	})
	if changed, ok := errors.AsType[*ChangedKeyError](err); ok {
		return out, changed
	}
	if err != nil {
		return Pinned{}, fmt.Errorf("keep the key of %q: %w", source, err)
	}
	return out, nil
}

func (k Pinned) check(now string) error {
	if k.Key != now {
		return &ChangedKeyError{Source: k.Source, Pinned: k.Key, Now: now}
	}
	return nil
}

// Find returns what is kept for a source and keeps nothing, as before a person
// decides. Its error is ErrNotPinned where no key is kept.
func (p Pins) Find(source string) (Pinned, error) {
	all, err := p.read()
	if k, ok := all[source]; ok && err == nil {
		return k, nil
	}
	return Pinned{}, fmt.Errorf("find the key of %.200q: %w", source, cmp.Or(err, ErrNotPinned))
}

// Set keeps a key for a source in place of what was kept, because a person said
// so, and returns it as it is kept.
func (p Pins) Set(ctx context.Context, source, key string) (Pinned, error) {
	if err := checkSource(source); err != nil {
		return Pinned{}, fmt.Errorf("keep the key of a source: %w", err)
	}
	if KeyName(key) == "" {
		return Pinned{}, fmt.Errorf("keep the key of %q: %w", source, errNoPublic)
	}
	k := Pinned{Source: source, Key: key, Since: time.Now().UTC()}
	if err := p.change(ctx, func(all pinned) error { return all.put(k) }); err != nil {
		return Pinned{}, fmt.Errorf("keep the key of %q: %w", source, err)
	}
	return k, nil
}

// Remove forgets the key of a source, which is met for the first time after that,
// and returns what was kept. Its error is ErrNotPinned where that is nothing.
func (p Pins) Remove(ctx context.Context, source string) (Pinned, error) {
	all, err := p.read()
	if err == nil {
		if _, ok := all[source]; !ok {
			err = ErrNotPinned
		}
	}
	var out Pinned
	if err == nil {
		err = p.change(ctx, func(all pinned) error {
			var ok bool
			if out, ok = all[source]; !ok {
				return ErrNotPinned
			}
			delete(all, source)
			return nil
		})
	}
	if err != nil {
		return Pinned{}, fmt.Errorf("forget the key of %.200q: %w", source, err)
	}
	return out, nil
}

// All returns what is kept, by source.
func (p Pins) All() ([]Pinned, error) {
	all, err := p.read()
	if err != nil {
		return nil, fmt.Errorf("read the keys of sources: %w", err)
	}
	out := make([]Pinned, 0, len(all))
	for _, source := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[source])
	}
	return out, nil
}

func checkSource(s string) error {
	if !oneLine(s) || len(s) > MaxSourceBytes {
		return fmt.Errorf("the source is empty, longer than %d bytes, or has control characters", MaxSourceBytes)
	}
	if u, err := url.Parse(s); err == nil && u.User != nil {
		if _, secret := u.User.Password(); secret || strings.HasPrefix(u.Scheme, "http") {
			return errors.New("the source has a password or token in its address")
		}
	}
	return nil
}

// pinned are keys by source.
type pinned map[string]Pinned

func (all pinned) put(k Pinned) error {
	if _, ok := all[k.Source]; !ok && len(all) >= MaxPins {
		return fmt.Errorf("there are %d keys already: forget some", len(all))
	}
	all[k.Source] = k
	return nil
}

// pinsFile is the file.
type pinsFile struct {
	Version int      `json:"version"`
	Pins    []Pinned `json:"publishers"` // by source
}

func (p Pins) file() *policy.OwnFile { return policy.NewOwnFile(p.Path, maxPinsBytes) }

func (p Pins) read() (pinned, error) {
	data, err := p.file().Read()
	if errors.Is(err, fs.ErrNotExist) {
		return pinned{}, nil
	}
	if err != nil {
		return nil, err
	}
	return p.decode(data)
}

func (p Pins) change(ctx context.Context, edit func(pinned) error) error {
	return p.file().Change(ctx, func(old []byte) ([]byte, error) {
		all := pinned{}
		if old != nil {
			var err error
			if all, err = p.decode(old); err != nil {
				return nil, err
			}
		}
		if err := edit(all); err != nil {
			return nil, err
		}
		f := pinsFile{Version: pinsVersion, Pins: []Pinned{}}
		for _, source := range slices.Sorted(maps.Keys(all)) {
			k := all[source]
			k.First = false
			f.Pins = append(f.Pins, k)
		}
		data, err := json.MarshalIndent(f, "", "  ")
		return append(data, '\n'), err
	})
}

// decode reads the file, all of which has to be right: a key that was left out
// would be met for the first time.
func (p Pins) decode(data []byte) (pinned, error) {
	damaged := func(format string, args ...any) (pinned, error) {
		return nil, fmt.Errorf("%s is damaged: %s", p.Path, fmt.Sprintf(format, args...))
	}
	var f pinsFile
	if json.Unmarshal(data, &f) != nil {
		return damaged("it is no JSON as this program writes it")
	}
	if f.Version != pinsVersion {
		return nil, fmt.Errorf("%s has version %d, which this program does not know", p.Path, f.Version)
	}
	all := pinned{}
	for _, k := range f.Pins {
		if _, twice := all[k.Source]; twice || checkSource(k.Source) != nil || KeyName(k.Key) == "" || k.First {
			return damaged("its entry for %.100q is wrong", k.Source)
		}
		all[k.Source] = k
	}
	return all, nil
}
