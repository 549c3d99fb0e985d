package superseded

import (
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
	"github.com/loadout-dev/loadout/policy"
)

// Limits on the file of superseded approvals. If there are too many, the oldest
// ones are forgotten, and their versions need a new approval.
const (
	maxRecords   = 4096
	maxBytes     = 64 << 20
	fileVersion  = 2 // version 1 has no records of versions that were not superseded
	minHexDigits = 8 // minimum length of a digest given to Revoke, as in package policy
)

// record holds the approval of a version, with the scopes in which it is
// superseded and those in which it is still in effect. When a different version
// is approved, the grant is moved from the grant store to the record; until
// then, Grant is a copy.
type record struct {
	Grant policy.Grant
	// Scopes lists the scopes in which a newer version was approved, and Again
	// those in which this version was approved and no newer one was.
	Scopes, Again []string
	By            policy.Digest
	At            time.Time
}

// records lists versions in the order in which they were approved or superseded.
type records []record

// find returns the records of a version.
func (all records) find(p policy.Principal, subject policy.Digest) []record {
	var out []record
	for _, r := range all {
		if r.Grant.Principal == p && r.Grant.Subject == subject {
			out = append(out, r)
		}
	}
	return out
}

// approve records the approval of a version in a scope.
func (all records) approve(g policy.Grant, scope string) records {
	now := record{Grant: g, Again: []string{scope}}
	out := records{}
	for _, r := range all {
		if r.Grant.Principal != g.Principal || r.Grant.Subject != g.Subject || r.Grant.Origin != g.Origin {
			out = append(out, r)
			continue
		}
		other := func(scopes []string) []string {
			return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == scope })
		}
		now.Scopes, now.Again = append(now.Scopes, other(r.Scopes)...), append(now.Again, other(r.Again)...)
		now.By, now.At = r.By, r.At
	}
	return append(out, now)
}

// supersede marks earlier approvals of other versions of g's skill as superseded
// in a scope: those in older, and those that were superseded before.
func (all records) supersede(older []policy.Grant, g policy.Grant, scope string) records {
	var out, marked records
	known := map[string]int{} // index in marked by ID
	for _, r := range all {
		stored := slices.ContainsFunc(older, func(old policy.Grant) bool { return old.ID == r.Grant.ID })
		if !stored && !isOtherVersion(r.Grant, g) {
			out = append(out, r)
			continue
		}
		if !stored && len(r.Scopes) == 0 { // revoked by an earlier program
			continue
		}
		known[r.Grant.ID] = len(marked)
		marked = append(marked, r)
	}
	for _, old := range older {
		if i, ok := known[old.ID]; ok {
			marked[i].Grant = old // it was approved again
		} else {
			marked = append(marked, record{Grant: old})
		}
	}
	for i := range marked {
		marked[i].mark(g, scope)
	}
	out = append(out, marked...)
	return out[max(0, len(out)-maxRecords):]
}

// mark records that g superseded the approval in a scope.
func (r *record) mark(g policy.Grant, scope string) {
	if !slices.Contains(r.Scopes, scope) {
		r.Scopes = append(slices.Clone(r.Scopes), scope)
	}
	r.Again = slices.DeleteFunc(slices.Clone(r.Again), func(s string) bool { return s == scope })
	r.By, r.At = g.Subject, time.Now().UTC().Truncate(time.Second)
}

// matches reports whether Revoke(arg) also deletes the record. gone lists the
// grants that it has revoked.
func (r record) matches(arg string, gone []policy.Grant) bool {
	for _, g := range gone {
		if g.ID == r.Grant.ID || g.Name == arg && r.Grant.Name == arg {
			return true
		}
	}
	if len(gone) > 0 {
		return false
	}
	hex := strings.TrimPrefix(arg, "sha256:")
	return r.Grant.ID == arg || r.Grant.Name == arg ||
		len(hex) >= minHexDigits && strings.HasPrefix(string(r.Grant.Subject), "sha256:"+hex)
}

// recordJSON is the JSON form of a record. The grant stays in the canonical form
// of package policy.
type recordJSON struct {
	Grant  json.RawMessage `json:"grant"`
	Scopes []string        `json:"scopes"`
	Again  []string        `json:"again,omitempty"`
	By     policy.Digest   `json:"by"`
	At     time.Time       `json:"at"`
}

type fileJSON struct {
	Version int          `json:"version"`
	Skills  []recordJSON `json:"superseded"`
}

func (s *Store) file() *privatefile.File { return privatefile.New(s.options.Path, maxBytes) }

func (s *Store) readRecords() (records, error) {
	data, err := s.file().Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read superseded approvals: %w", err)
	}
	return s.decode(data)
}

func (s *Store) changeRecords(ctx context.Context, edit func(records) records) error {
	return s.file().Change(ctx, func(old []byte) ([]byte, error) {
		var all records
		if old != nil {
			var err error
			if all, err = s.decode(old); err != nil {
				return nil, err
			}
		}
		return encode(edit(all))
	})
}

// decode parses the file. It returns an error for any problem, because a version
// whose record was lost would count as approved if it is approved elsewhere.
func (s *Store) decode(data []byte) (records, error) {
	damaged := func(err error) (records, error) {
		return nil, &privatefile.DamagedError{Path: s.options.Path, Err: err}
	}
	if err := privatefile.CheckVersion(data, fileVersion); err != nil {
		return damaged(err)
	}
	var f fileJSON
	if err := json.Unmarshal(data, &f); err != nil {
		return damaged(fmt.Errorf("decode JSON: %w", err))
	}
	all := make(records, 0, len(f.Skills))
	for _, r := range f.Skills {
		g, err := policy.ReadGrant(r.Grant)
		if err != nil {
			return damaged(err)
		}
		all = append(all, record{g, r.Scopes, r.Again, r.By, r.At})
	}
	return all, nil
}

func encode(all records) ([]byte, error) {
	f := fileJSON{Version: fileVersion, Skills: []recordJSON{}}
	for _, r := range all {
		text, err := plainjson.Indented(r.Grant)
		if err != nil {
			return nil, err
		}
		f.Skills = append(f.Skills, recordJSON{text, r.Scopes, r.Again, r.By, r.At})
	}
	return plainjson.Indented(f)
}
