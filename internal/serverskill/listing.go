package serverskill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// Conn is a connection to a server.
type Conn interface {
	// ServesSkills reports whether the server declared the Skills extension.
	ServesSkills() bool
	// ListSkills, GetSkill and ReadSkillFile return the results of skills/list,
	// skills/get and resources/read. The errors of the latter two wrap
	// [fs.ErrNotExist] if the server does not serve the URI.
	ListSkills(ctx context.Context, cursor string) (json.RawMessage, error)
	GetSkill(ctx context.Context, uri string) (json.RawMessage, error)
	ReadSkillFile(ctx context.Context, uri string) ([]byte, error)
}

// Connector calls functions with a connection to a server, which it opens if
// necessary. It is safe for concurrent use.
type Connector interface {
	// Do calls f, possibly again if the connection breaks. what says what f
	// does, for errors.
	Do(ctx context.Context, what string, f func(context.Context, Conn) error) error
}

// ErrNotServed is returned for a server that does not declare the Skills
// extension.
var ErrNotServed = errors.New("the server publishes no skills: it does not declare " + upstream.SkillsExtension)

// withDefaults replaces zero fields with the default limits.
func withDefaults(l upstream.SkillLimits) upstream.SkillLimits {
	if l.Pages <= 0 {
		l.Pages = 1000
	}
	if l.Skills <= 0 {
		l.Skills = 10_000
	}
	if l.Bytes <= 0 {
		l.Bytes = 32 << 20
	}
	if l.Time <= 0 {
		l.Time = time.Minute
	}
	return l
}

const (
	defaultTTL  = 5 * time.Minute
	maxTTL      = 24 * time.Hour
	maxProblems = 20
)

// Listing is the result of listing a server's skills. It is immutable.
type Listing struct {
	At      time.Time
	TTL     time.Duration
	Entries []*Entry
	// Partial is the reason why entries are missing, or "". A complete listing
	// may lack skills too, because a server need not list all.
	Partial string
	// Problems describes entries that cannot be used.
	Problems []error
}

// page is the result of skills/list.
type page struct {
	ResultType string   `json:"resultType"`
	Skills     []any    `json:"skills"`
	NextCursor string   `json:"nextCursor"`
	TTLMs      *float64 `json:"ttlMs"`
}

// List lists the skills of a server. It fetches no files. If it reaches a limit
// or a later page fails, the listing is partial.
func List(ctx context.Context, c Conn, limits upstream.SkillLimits) (*Listing, error) {
	if !c.ServesSkills() {
		return nil, ErrNotServed
	}
	limits = withDefaults(limits)
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, fmt.Errorf("listing not complete after %v", limits.Time))
	defer cancel()
	l := &Listing{At: time.Now(), TTL: defaultTTL}
	seen, cursors := map[string]bool{}, map[string]bool{"": true}
	size, cursor := 0, ""
	for n := 1; ; n++ {
		raw, err := c.ListSkills(ctx, cursor)
		var p page
		if err == nil {
			if size += len(raw); size > limits.Bytes {
				l.Partial = fmt.Sprintf("listing too large (limit %d bytes)", limits.Bytes)
				return l, nil
			}
			p, err = parsePage(raw)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if n == 1 {
				return nil, err
			}
			l.Partial = fmt.Sprintf("page %d failed: %s", n, short(err.Error()))
			return l, nil
		}
		if n == 1 && p.TTLMs != nil {
			l.TTL = ttl(*p.TTLMs)
		}
		if !l.add(p.Skills, seen, limits.Skills) {
			l.Partial = fmt.Sprintf("too many skills (limit %d)", limits.Skills)
			return l, nil
		}
		switch {
		case p.NextCursor == "":
			return l, nil
		case cursors[p.NextCursor]:
			l.Partial = "the server repeats a page"
			return l, nil
		case n == limits.Pages:
			l.Partial = fmt.Sprintf("too many pages (limit %d)", limits.Pages)
			return l, nil
		}
		cursor = p.NextCursor
		cursors[cursor] = true
	}
}

func parsePage(raw json.RawMessage) (page, error) {
	var p page
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&p); err != nil {
		return p, errors.New("invalid result of skills/list")
	}
	if p.ResultType != "" && p.ResultType != "complete" {
		return p, fmt.Errorf("result of skills/list has type %q, want complete", short(p.ResultType))
	}
	return p, nil
}

// ttl converts the ttlMs of a result.
func ttl(ms float64) time.Duration {
	switch {
	case !(ms > 0): // or not a number
		return 0
	case ms >= float64(maxTTL/time.Millisecond):
		return maxTTL
	}
	return time.Duration(ms) * time.Millisecond
}

// add adds the valid entries of a page. It returns false if the limit is
// reached.
func (l *Listing) add(skills []any, seen map[string]bool, limit int) bool {
	for _, v := range skills {
		if len(seen) >= limit {
			return false
		}
		e, err := parseEntry(v)
		if err == nil && seen[e.URI] {
			err = &InvalidError{e.URI, "listed twice; the first entry counts"}
		} else if err == nil {
			l.Entries = append(l.Entries, e)
			seen[e.URI] = true
		} else {
			seen[fmt.Sprintf("invalid %d", len(seen))] = true // counts, too
		}
		if err != nil && len(l.Problems) < maxProblems {
			l.Problems = append(l.Problems, err)
		}
	}
	return true
}

// keep adds the entries of an earlier listing that l does not have, up to the limit
// for all. An incomplete listing does not show that a skill was removed.
func (l *Listing) keep(old *Listing, limit int) {
	listed := map[string]bool{}
	for _, e := range l.Entries {
		listed[e.URI] = true
	}
	for _, e := range old.Entries {
		if !listed[e.URI] && len(l.Entries) < limit {
			l.Entries = append(l.Entries, e)
		}
	}
}

// Get returns the entry of the skill whose SKILL.md has the given URI, whether
// or not the server lists it. The error wraps [fs.ErrNotExist] if the server
// does not serve it.
func Get(ctx context.Context, c Conn, uri string) (*Entry, error) {
	if !c.ServesSkills() {
		return nil, ErrNotServed
	}
	raw, err := c.GetSkill(ctx, uri)
	if err != nil {
		return nil, err
	}
	v, err := decode(raw)
	res, ok := v.(map[string]any)
	if err != nil || !ok || len(raw) > 2*maxEntryBytes {
		return nil, &InvalidError{uri, "invalid result of skills/get"}
	}
	e, err := parseEntry(res["skill"])
	if err != nil {
		return nil, err
	}
	if e.URI != uri {
		return nil, &InvalidError{uri, "the server answered with another skill, " + short(e.URI)}
	}
	return e, nil
}
