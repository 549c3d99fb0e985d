// Package secrets keeps values that skills and servers need and nobody should
// see, in one file of the person's own. It decides nothing: who may have a value
// is a grant of package policy. Values are in no error and no log.
//
// The file is not encrypted: its mode 0600 is what protects it, as it protects
// the keys of ssh, and a file that others can read or write is refused.
package secrets

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/policy"
)

// Limits of what is kept.
const (
	MaxValue = 64 << 10 // bytes of one value
	MaxCount = 1000
	maxFile  = 8 << 20
	version  = 1
)

// ErrNotSet says that there is no secret of that name.
var ErrNotSet = errors.New("not set")

// errDamaged says no more, as more could be a part of a value.
var errDamaged = errors.New("it is damaged: move it away, and set the secrets again")

// Store is the file of secrets. Nothing is kept open or in memory. It is safe
// for concurrent use, by any number of processes.
type Store struct {
	file *policy.OwnFile
	path string
}

// Info is what can be shown of a secret.
type Info struct {
	Name    string    `json:"name"`
	Changed time.Time `json:"changed"`
}

type content struct {
	Version int              `json:"version"`
	Secrets map[string]entry `json:"secrets"`
}

type entry struct {
	Value   string    `json:"value"`
	Changed time.Time `json:"changed"`
}

// New returns the store in the file at path, which Set makes where it is
// missing.
func New(path string) *Store { return &Store{policy.NewOwnFile(path, maxFile), path} }

// Set keeps a value in place of any there is. It fails for a name that no
// secret can have, and for a value that is empty, too long, or holds a zero
// byte or what is not UTF-8.
func (s *Store) Set(ctx context.Context, name, value string) error {
	return s.SetAll(ctx, map[string]string{name: value})
}

// SetAll is Set for several at once: all of them, or none.
func (s *Store) SetAll(ctx context.Context, values map[string]string) error {
	for name, value := range values {
		if err := check(name, value); err != nil {
			return err
		}
	}
	return s.change(ctx, func(c *content) error {
		for name, value := range values {
			c.Secrets[name] = entry{value, time.Now().UTC().Round(0)}
		}
		if len(c.Secrets) > MaxCount {
			return fmt.Errorf("there would be more than %d secrets", MaxCount)
		}
		return nil
	})
}

func check(name, value string) error {
	if err := policy.CheckSecretName(name); err != nil {
		return err
	}
	switch {
	case value == "":
		return fmt.Errorf("secret %s: the value is empty", name)
	case len(value) > MaxValue:
		return fmt.Errorf("secret %s: the value has more than %d bytes", name, MaxValue)
	case strings.ContainsRune(value, 0) || strings.ToValidUTF8(value, "") != value:
		return fmt.Errorf("secret %s: the value is no text", name)
	}
	return nil
}

// Get returns a value. It fails with [ErrNotSet] where there is none, and with
// another error where that cannot be known.
func (s *Store) Get(name string) (string, error) {
	c, err := s.read()
	if err != nil {
		return "", err
	}
	e, ok := c.Secrets[name]
	if !ok {
		return "", fmt.Errorf("secret %.150q: %w", name, ErrNotSet)
	}
	return e.Value, nil
}

// List returns what there is, by name.
func (s *Store) List() ([]Info, error) {
	c, err := s.read()
	if err != nil {
		return nil, err
	}
	var out []Info
	for name, e := range c.Secrets {
		out = append(out, Info{name, e.Changed})
	}
	slices.SortFunc(out, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Remove forgets a secret. It fails with [ErrNotSet] where there is none.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.change(ctx, func(c *content) error {
		if _, ok := c.Secrets[name]; !ok {
			return fmt.Errorf("secret %.150q: %w", name, ErrNotSet)
		}
		delete(c.Secrets, name)
		return nil
	})
}

func (s *Store) read() (*content, error) {
	data, err := s.file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return &content{Version: version, Secrets: map[string]entry{}}, nil
	}
	var c *content
	if err == nil {
		c, err = decode(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the secrets in %s: %w", s.path, err)
	}
	return c, nil
}

func (s *Store) change(ctx context.Context, edit func(*content) error) error {
	var refused error
	err := s.file.Change(ctx, func(old []byte) ([]byte, error) {
		c := &content{Version: version, Secrets: map[string]entry{}}
		if old != nil {
			var err error
			if c, err = decode(old); err != nil {
				return nil, err
			}
		}
		if refused = edit(c); refused != nil {
			return nil, refused
		}
		return encode(c)
	})
	if err != nil && refused == nil {
		return fmt.Errorf("change the secrets in %s: %w", s.path, err)
	}
	return err
}

func encode(c *content) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(c)
	return b.Bytes(), err
}

// decode reads what encode wrote.
func decode(data []byte) (*content, error) {
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, errDamaged
	}
	if c.Version != version {
		return nil, fmt.Errorf("it has version %d, and this program knows version %d only", c.Version, version)
	}
	if c.Secrets == nil {
		return nil, errDamaged
	}
	for name, e := range c.Secrets {
		if check(name, e.Value) != nil {
			return nil, errDamaged
		}
	}
	return &c, nil
}
