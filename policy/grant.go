package policy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limits of a grant.
const (
	MaxGrantBytes = 64 << 10 // of the file of one
	maxID         = 256
	maxLabel      = 1024 // bytes of a name or an origin
	maxList       = 256  // needs, hosts, secrets
)

// grantVersion is the form of grants that this program writes and understands.
// A field that narrows what a grant permits comes with another version, so
// that programs which do not know the field ignore the grant.
const grantVersion = 1

// Scope says for how long a grant is meant.
type Scope string

// The scopes of grants.
const (
	Always        Scope = "always"  // until it expires or is revoked
	ForSession    Scope = "session" // in the session that it names
	Once          Scope = "once"    // for one run or call, of the session where it names one
	sessionExpiry       = 24 * time.Hour
)

// Grant is a recorded permission, given by a person, for a principal to use
// exactly the bytes that Subject and Needs name: to run the scripts of a skill, or
// to call a tool. The subject of a tool is of its definition and its server, and,
// where the grant is for certain arguments, of those too ([Digest.With]).
type Grant struct {
	Version   int       `json:"version"` // set by Put
	ID        string    `json:"id"`      // set by Put; the same for the same principal, subject, scope and session
	Principal Principal `json:"principal"`
	Subject   Digest    `json:"subject"`
	Name      string    `json:"name"`             // of the skill or tool, a label
	Origin    string    `json:"origin,omitempty"` // of the skill, or whose the tool is; a label
	Allows    Allows    `json:"allows"`
	Needs     []Need    `json:"needs,omitempty"` // everything that runs along
	Created   time.Time `json:"created"`         // set by Put
	Expires   time.Time `json:"expires,omitzero"`
	Scope     Scope     `json:"scope"`
	Session   string    `json:"session,omitempty"`
	By        Principal `json:"by"` // the person who approved
}

// Need is a skill that a skill depends on, with the digest it was approved as.
type Need struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// Expired reports whether the grant is over at that time.
func (g *Grant) Expired(at time.Time) bool { return !g.Expires.IsZero() && !at.Before(g.Expires) }

// NeedsExactly reports whether the grant was given with these dependencies, no
// more and no less, each with this digest.
func (g *Grant) NeedsExactly(needs []Need) bool {
	return slices.Equal(sortedNeeds(g.Needs), sortedNeeds(needs))
}

func sortedNeeds(needs []Need) []Need {
	out := slices.SortedFunc(slices.Values(needs), func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest))
	})
	return slices.Compact(out)
}

func (g Grant) clone() Grant {
	g.Allows.Network = slices.Clone(g.Allows.Network)
	g.Allows.Secrets = slices.Clone(g.Allows.Secrets)
	g.Needs = slices.Clone(g.Needs)
	return g
}

// fresh returns the grant as it is kept when it is given at that time, or all
// that is wrong with it.
func (g Grant) fresh(now time.Time) (Grant, error) {
	g = g.clone()
	g.Version = grantVersion
	g.Created = now.UTC().Round(0)
	if g.Expires.IsZero() && g.Scope != Always {
		g.Expires = g.Created.Add(sessionExpiry) // or what nobody will ask for again stays for ever
	}
	if !g.Expires.IsZero() {
		g.Expires = g.Expires.UTC().Round(0)
	}
	g.ID = grantID(g.Principal, g.Subject, g.Scope, g.Session)
	g.Needs = sortedNeeds(g.Needs)
	allows, err := g.Allows.normal()
	g.Allows = allows
	err = errors.Join(err, g.check())
	if g.Expired(now) {
		err = errors.Join(err, fmt.Errorf("it expires at %s, which is over", g.Expires.Format(time.RFC3339)))
	}
	return g, err
}

// check returns everything that is wrong with a grant that is kept.
func (g *Grant) check() error {
	errs := []error{
		g.Principal.check(),
		g.By.check(),
		checkText("the name", g.Name, 1, maxLabel),
		checkText("the origin", g.Origin, 0, maxLabel),
		checkText("the session", g.Session, 0, maxID),
	}
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if g.By.Kind != Person {
		add("only a person approves, not %q", g.By.Kind)
	}
	if _, err := ParseDigest(string(g.Subject)); err != nil {
		add("subject: %w", err)
	}
	if len(g.Needs) > maxList {
		add("it needs %d skills, more than %d", len(g.Needs), maxList)
	}
	for _, n := range g.Needs {
		errs = append(errs, checkText("the name of a need", n.Name, 1, maxLabel))
		if _, err := ParseDigest(string(n.Digest)); err != nil {
			add("needs %.100q: %w", n.Name, err)
		}
	}
	switch {
	case g.Scope != Always && g.Scope != ForSession && g.Scope != Once:
		add("scope is always, session or once, not %q", g.Scope)
	case g.Scope == ForSession && g.Session == "":
		add("a grant for a session has to name it")
	case g.Scope == Always && g.Session != "":
		add("a grant for always is for no session")
	}
	if g.Created.IsZero() {
		add("created is missing")
	}
	if want := grantID(g.Principal, g.Subject, g.Scope, g.Session); g.ID != want {
		add("its id is %.100q, not %s as its principal, subject, scope and session make it", g.ID, want)
	}
	return errors.Join(errs...)
}

// grantID makes one grant for one principal, subject, scope and session, also
// where two processes give it at the same time.
func grantID(p Principal, subject Digest, scope Scope, session string) string {
	key, err := json.Marshal([]string{p.Kind, p.ID, string(subject), string(scope), session})
	if err != nil {
		panic(err) // strings always have a form
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:10])
}

// candidates are the ids that a grant can have which permits p to use subject
// in the session.
func candidates(p Principal, subject Digest, session string) []string {
	ids := []string{grantID(p, subject, Always, ""), grantID(p, subject, Once, "")}
	if session != "" {
		ids = append(ids, grantID(p, subject, ForSession, session), grantID(p, subject, Once, session))
	}
	return ids
}

// encode renders a grant as it is kept.
func (g *Grant) encode() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(g); err != nil {
		return nil, err
	}
	if buf.Len() > MaxGrantBytes {
		return nil, fmt.Errorf("it has %d bytes, more than %d", buf.Len(), MaxGrantBytes)
	}
	return buf.Bytes(), nil
}

// decodeGrant reads a grant as encode wrote it. Nothing else is taken, white
// space aside: a field that is unknown, given twice or spelled in another case
// may be what somebody meant to narrow the grant by.
func decodeGrant(data []byte) (Grant, error) {
	if len(data) > MaxGrantBytes {
		return Grant{}, fmt.Errorf("it has more than %d bytes", MaxGrantBytes)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return Grant{}, fmt.Errorf("it is damaged: %w", err)
	}
	if v.Version != grantVersion {
		return Grant{}, fmt.Errorf("it has version %d, and this program knows version %d only", v.Version, grantVersion)
	}
	var g Grant
	if err := json.Unmarshal(data, &g); err != nil {
		return Grant{}, fmt.Errorf("it is damaged: %w", err)
	}
	if err := g.check(); err != nil {
		return Grant{}, fmt.Errorf("it is damaged: %w", err)
	}
	if n, err := g.Allows.normal(); err != nil || !n.equal(g.Allows) {
		return Grant{}, errors.Join(errors.New("it is damaged: its hosts or secrets are not as a grant has them"), err)
	}
	again, err := g.encode()
	var a, b bytes.Buffer
	if err := errors.Join(err, json.Compact(&a, data), json.Compact(&b, again)); err != nil {
		return Grant{}, fmt.Errorf("it is damaged: %w", err)
	}
	if !bytes.Equal(bytes.TrimSpace(a.Bytes()), bytes.TrimSpace(b.Bytes())) {
		return Grant{}, errors.New("it is not as this program writes grants: a field is unknown, given twice or spelled otherwise")
	}
	return g, nil
}
