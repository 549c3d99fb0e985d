// Package secrets stores secret values for skills and servers in a file in the
// user's home. Package policy decides who may read a value. No error or log
// contains a value.
//
// The file is not encrypted but has mode 0600, like SSH keys. A file that other
// users can read or write is rejected.
package secrets

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/secretname"
)

// Limits of a store.
const (
	MaxValue = 64 << 10 // maximum size of a value in bytes
	MaxCount = 1000
	maxFile  = 8 << 20
	version  = 1
)

// ErrNotSet is returned if the secret does not exist.
var ErrNotSet = errors.New("value not set")

// errDamaged contains no details, because they could include part of a value.
var errDamaged = errors.New("damaged file: move the file away and set the secrets again")

// Store reads and writes the secrets file. It caches nothing and keeps no file
// open. It is safe for concurrent use by several processes.
type Store struct {
	file *privatefile.File
	path string
}

// Info describes a secret. It does not contain the value.
type Info struct {
	Name      string    `json:"name"`
	ChangedAt time.Time `json:"changed"`
}

type content struct {
	Version int              `json:"version"`
	Secrets map[string]entry `json:"secrets"`
}

type entry struct {
	Value   string    `json:"value"`
	Changed time.Time `json:"changed"`
}

// New returns a store for the file at path. Set creates the file if necessary.
func New(path string) *Store { return &Store{privatefile.New(path, maxFile), path} }

// Set stores a secret and replaces its previous value. It returns an error for
// an invalid name, and for a value that is empty, too long, not UTF-8, or
// contains a zero byte.
func (s *Store) Set(ctx context.Context, name, value string) error {
	return s.SetAll(ctx, map[string]string{name: value})
}

// SetAll stores several values. If one is invalid, it stores none.
func (s *Store) SetAll(ctx context.Context, values map[string]string) error {
	for name, value := range values {
		if err := checkSecret(name, value); err != nil {
			return err
		}
	}
	return s.change(ctx, func(c *content) error {
		for name, value := range values {
			c.Secrets[name] = entry{value, time.Now().UTC().Round(0)}
		}
		if len(c.Secrets) > MaxCount {
			return fmt.Errorf("too many secrets (limit %d)", MaxCount)
		}
		return nil
	})
}

func checkSecret(name, value string) error {
	if err := secretname.Check(name); err != nil {
		return err
	}
	switch {
	case value == "":
		return fmt.Errorf("secret %s: value is empty", name)
	case len(value) > MaxValue:
		return fmt.Errorf("secret %s: value too long (limit %d bytes)", name, MaxValue)
	case strings.ContainsRune(value, 0) || strings.ToValidUTF8(value, "") != value:
		return fmt.Errorf("secret %s: value is not valid UTF-8", name)
	}
	return nil
}

// Get returns a secret's value. The error is [ErrNotSet] if the secret does not
// exist, or another error if the file cannot be read.
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

// List returns all secrets, sorted by name.
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

// Remove removes a secret. The error is [ErrNotSet] if the secret does not
// exist.
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
		return nil, fmt.Errorf("read secrets in %s: %w", s.path, err)
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
		return plainjson.Indented(c)
	})
	if err != nil && refused == nil {
		return fmt.Errorf("change secrets in %s: %w", s.path, err)
	}
	return err
}

// decode decodes and validates the content of the file.
func decode(data []byte) (*content, error) {
	if err := privatefile.CheckVersion(data, version); err != nil {
		return nil, err
	}
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, errDamaged
	}
	if c.Secrets == nil {
		return nil, errDamaged
	}
	for name, e := range c.Secrets {
		if checkSecret(name, e.Value) != nil {
			return nil, errDamaged
		}
	}
	return &c, nil
}
