package signature

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

// Limits on a history.
const (
	MaxSeen         = 50_000
	maxHistoryBytes = 32 << 20
	historyVersion  = 1
)

// History stores the highest counter seen for each signed skill, so that an
// older version is noticed even if the lockfile was replaced too. The file must
// belong to the current user. Several processes may change it concurrently. If
// other users can write the file, or if it is damaged, all methods return an
// error. History is safe for concurrent use.
type History struct {
	Path string // path of the file; Record creates it and its directory
}

// Seen is the newest version of a skill that was seen in a scope.
type Seen struct {
	Scope   string `json:"scope"`  // directory of the lockfile
	Source  string `json:"source"` // as in [Pins]
	Name    string `json:"name"`
	Counter uint64 `json:"counter"`          // highest counter
	Digest  string `json:"digest,omitempty"` // digest of the version with that counter, if known
	// Accepted is the digest of an older version that the user accepted.
	Accepted string `json:"accepted,omitempty"`
}

func (s Seen) key() [3]string { return [3]string{s.Scope, s.Source, s.Name} }

// Find returns the newest version of a skill that has been seen in a scope, or
// the zero Seen if there is none.
func (h History) Find(scope, source, name string) (Seen, error) {
	all, err := h.read()
	if err != nil {
		return Seen{}, fmt.Errorf("find highest counter of %.100q: %w", name, err)
	}
	return all[[3]string{scope, source, name}], nil
}

// Record stores versions that were installed. The counter of a skill never
// decreases.
func (h History) Record(ctx context.Context, versions ...Seen) error {
	err := h.file().Change(ctx, func(old []byte) ([]byte, error) {
		all := map[[3]string]Seen{}
		if old != nil {
			var err error
			if all, err = h.decode(old); err != nil {
				return nil, err
			}
		}
		for _, s := range versions {
			if err := s.check(); err != nil {
				return nil, err
			}
			all[s.key()] = all[s.key()].merge(s)
		}
		if len(all) > MaxSeen {
			return nil, fmt.Errorf("too many signed skills (limit %d)", MaxSeen)
		}
		return encodeHistory(all)
	})
	if err != nil {
		return fmt.Errorf("record counters: %w", err)
	}
	return nil
}

// Forget deletes the versions recorded for a source, in all scopes.
func (h History) Forget(ctx context.Context, source string) error {
	all, err := h.read()
	from := func(_ [3]string, s Seen) bool { return s.Source == source }
	if err == nil && len(all) > 0 {
		err = h.file().Change(ctx, func(old []byte) ([]byte, error) {
			all, err := h.decode(old)
			if err != nil {
				return nil, err
			}
			maps.DeleteFunc(all, from)
			return encodeHistory(all)
		})
	}
	if err != nil {
		return fmt.Errorf("forget counters of %.200q: %w", source, err)
	}
	return nil
}

// merge returns the newer of s and v, two versions of a skill. If v is older,
// it is recorded in Accepted, as the older version that was accepted last.
func (s Seen) merge(v Seen) Seen {
	switch {
	case v.Counter > s.Counter:
		return v
	case v.Counter < s.Counter:
		s.Accepted = cmp.Or(v.Accepted, v.Digest)
		return s
	}
	v.Digest = cmp.Or(v.Digest, s.Digest)
	return v
}

func (s Seen) check() error {
	if s.Scope == "" || s.Source == "" || s.Name == "" || s.Counter == 0 || s.Counter > MaxCounter {
		return fmt.Errorf("invalid entry for %.100q", s.Name)
	}
	return nil
}

// historyFile is the JSON format of a history.
type historyFile struct {
	Version int    `json:"version"`
	Skills  []Seen `json:"skills"` // by scope, source and name
}

func (h History) file() *privatefile.File { return privatefile.New(h.Path, maxHistoryBytes) }

func (h History) read() (map[[3]string]Seen, error) {
	data, err := h.file().Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return h.decode(data)
}

// decode parses a history. It returns an error for any problem, because an
// older version of a skill whose entry was lost would be accepted.
func (h History) decode(data []byte) (map[[3]string]Seen, error) {
	if err := privatefile.CheckVersion(data, historyVersion); err != nil {
		return nil, fmt.Errorf("read %s: %w", h.Path, err)
	}
	var f historyFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("damaged file %s: cannot decode JSON", h.Path)
	}
	all := make(map[[3]string]Seen, len(f.Skills))
	for _, s := range f.Skills {
		if _, twice := all[s.key()]; twice || s.check() != nil {
			return nil, fmt.Errorf("damaged file %s: invalid entry for %.100q", h.Path, s.Name)
		}
		all[s.key()] = s
	}
	return all, nil
}

func encodeHistory(all map[[3]string]Seen) ([]byte, error) {
	f := historyFile{Version: historyVersion, Skills: make([]Seen, 0, len(all))}
	for _, s := range all {
		f.Skills = append(f.Skills, s)
	}
	slices.SortFunc(f.Skills, func(a, b Seen) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	data, err := json.MarshalIndent(f, "", "  ")
	return append(data, '\n'), err
}
