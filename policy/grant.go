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

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// Limits on a grant.
const (
	maxGrantBytes = 64 << 10 // size of an encoded grant
	maxID         = 256
	maxLabel      = 1024 // bytes in a name or an origin
	maxList       = 256  // number of dependencies, hosts or secrets
	maxPresence   = 256  // bytes
)

// The versions of grants that this program reads and writes. Version 2 has the
// field presence, and version 3 the field read_only. A new field requires a new
// version, so that programs that do not know the field ignore the grant and name
// the version.
const (
	firstVersion    = 1
	presenceVersion = 2
	readOnlyVersion = 3
)

// Scope is the lifetime of a grant.
type Scope string

// Grant scopes.
const (
	Always        Scope = "always"  // until it expires or is revoked
	ForSession    Scope = "session" // in one session
	Once          Scope = "once"    // for one run or call, only in its session if it has one
	sessionExpiry       = 24 * time.Hour
)

// Grant is a permission that a user gave to a principal: to run a skill's
// scripts or to call a tool. It covers exactly the bytes identified by Subject
// and Needs. The subject of a tool covers its definition and its server. If the
// grant is for specific arguments, the subject covers them too. The zero value
// is invalid; [Store.Put] checks each grant. Texts are printable UTF-8: names
// and Origin have up to 1024 bytes, Session up to 256.
type Grant struct {
	Version     int         `json:"version"` // set by Put
	ID          string      `json:"id"`      // set by Put; derived from principal, subject, scope and session
	Principal   Principal   `json:"principal"`
	Subject     Digest      `json:"subject"`
	Name        string      `json:"name"`             // display name of the skill or tool
	Origin      string      `json:"origin,omitempty"` // origin of the skill or owner of the tool, for display
	Permissions Permissions `json:"allows"`
	Needs       []Need      `json:"needs,omitempty"`   // up to 256 dependencies, whose code runs too
	Created     time.Time   `json:"created"`           // set by Put
	Expires     time.Time   `json:"expires,omitzero"`  // zero means never; see [Store.Put]
	Scope       Scope       `json:"scope"`             // required
	Session     string      `json:"session,omitempty"` // required by ForSession, excluded by Always
	By          Principal   `json:"by"`                // user who approved; Kind must be UserPrincipal
	// Presence says how it was established that a user, and not an agent,
	// approved: for example "terminal /dev/pts/3", "digest stated" or "answered
	// in an MCP client: claude-code 2.0.1". "" means that it is unknown, as in
	// grants of older programs. It is printable text of up to 256 bytes.
	Presence string `json:"presence,omitempty"`
	// ReadOnly is set if the user was shown the tool's declaration that it only
	// reads, and allowed agents to call it as a read-only tool.
	ReadOnly bool `json:"read_only,omitempty"`
}

// version returns the lowest format version that has the fields of the grant.
func (g *Grant) version() int {
	switch {
	case g.ReadOnly:
		return readOnlyVersion
	case g.Presence != "":
		return presenceVersion
	}
	return firstVersion
}

// Need is a dependency of a skill with its approved digest: another skill, an
// installed package, or a platform value that the skill sends to a host.
type Need struct {
	Name   string `json:"name"` // such as csv, npm:NAME@VERSION or variable:NAME@HOST
	Digest Digest `json:"digest"`
}

// Expired reports whether the grant has expired at time t. A grant is valid
// before Expires, and always if Expires is zero.
func (g *Grant) Expired(t time.Time) bool { return !g.Expires.IsZero() && !t.Before(g.Expires) }

// NeedsExactly reports whether the grant covers exactly these dependencies and
// digests, in any order. Duplicates are ignored.
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
	g.Permissions.Network = slices.Clone(g.Permissions.Network)
	g.Permissions.Secrets = slices.Clone(g.Permissions.Secrets)
	g.Needs = slices.Clone(g.Needs)
	return g
}

// prepare returns the grant in the form to be stored at time now. It returns an
// error that lists all problems if the grant is invalid.
func (g Grant) prepare(now time.Time) (Grant, error) {
	g = g.clone()
	g.Version = g.version()
	g.Created = now.UTC().Round(0)
	if g.Expires.IsZero() && g.Scope != Always {
		g.Expires = g.Created.Add(sessionExpiry) // otherwise unused grants would accumulate
	}
	if !g.Expires.IsZero() {
		g.Expires = g.Expires.UTC().Round(0)
	}
	g.ID = grantID(g.Principal, g.Subject, g.Scope, g.Session)
	g.Needs = sortedNeeds(g.Needs)
	allows, err := g.Permissions.Normalize()
	g.Permissions = allows
	err = errors.Join(err, g.check())
	if g.Expired(now) {
		err = errors.Join(err, fmt.Errorf("grant expired at %s", g.Expires.Format(time.RFC3339)))
	}
	return g, err
}

// check returns an error that lists all problems with a stored grant.
func (g *Grant) check() error {
	errs := []error{
		g.Principal.Check(),
		g.By.Check(),
		checkText("name", g.Name, 1, maxLabel),
		checkText("origin", g.Origin, 0, maxLabel),
		checkText("session", g.Session, 0, maxID),
		checkText("presence", g.Presence, 0, maxPresence),
	}
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if want := g.version(); g.Version != want {
		add("the fields need version %d, not %d", want, g.Version)
	}
	if g.ReadOnly && !g.Permissions.Call {
		add("read_only requires call")
	}
	if g.By.Kind != UserPrincipal {
		add("only a user can approve, not %q", g.By.Kind)
	}
	if err := g.Subject.Check(); err != nil {
		add("subject: %w", err)
	}
	if len(g.Needs) > maxList {
		add("too many dependencies (%d, limit %d)", len(g.Needs), maxList)
	}
	for _, n := range g.Needs {
		errs = append(errs, checkText("dependency name", n.Name, 1, maxLabel))
		if err := n.Digest.Check(); err != nil {
			add("dependency %.100q: %w", n.Name, err)
		}
	}
	switch {
	case g.Scope != Always && g.Scope != ForSession && g.Scope != Once:
		add("unknown scope %q: want always, session or once", g.Scope)
	case g.Scope == ForSession && g.Session == "":
		add("scope session requires a session")
	case g.Scope == Always && g.Session != "":
		add("scope always excludes a session")
	}
	if g.Created.IsZero() {
		add("missing creation time")
	}
	if want := grantID(g.Principal, g.Subject, g.Scope, g.Session); g.ID != want {
		add("id mismatch: got %.100q, want %s", g.ID, want)
	}
	return errors.Join(errs...)
}

// grantID returns the ID of a grant. It depends only on the principal, subject,
// scope and session, so that two processes cannot store two grants that differ
// only in other fields.
func grantID(p Principal, subject Digest, scope Scope, session string) string {
	key, err := json.Marshal([]string{p.Kind, p.ID, string(subject), string(scope), session})
	if err != nil {
		panic(err) // a list of strings can always be encoded
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:10])
}

// candidateIDs returns all possible IDs of a grant for p, subject and session.
func candidateIDs(p Principal, subject Digest, session string) []string {
	ids := []string{grantID(p, subject, Always, ""), grantID(p, subject, Once, "")}
	if session != "" {
		ids = append(ids, grantID(p, subject, ForSession, session), grantID(p, subject, Once, session))
	}
	return ids
}

// encode returns the JSON form of a grant for storage.
func (g *Grant) encode() ([]byte, error) {
	data, err := plainjson.Indented(g)
	if err != nil {
		return nil, err
	}
	if len(data) > maxGrantBytes {
		return nil, fmt.Errorf("grant too large (%d bytes, limit %d)", len(data), maxGrantBytes)
	}
	return data, nil
}

// ReadGrant decodes the data of a [Row], at most 64 KiB. It accepts only the
// canonical form, apart from white space, because an unknown, duplicate or
// misspelled field might have been meant to restrict the grant. ReadGrant
// returns an error for other data, an invalid grant and an unsupported version.
// It accepts an expired grant.
func ReadGrant(data []byte) (Grant, error) {
	if len(data) > maxGrantBytes {
		return Grant{}, fmt.Errorf("grant too large (limit %d bytes)", maxGrantBytes)
	}
	if err := privatefile.CheckVersion(data, readOnlyVersion); err != nil {
		return Grant{}, err
	}
	var g Grant
	if err := json.Unmarshal(data, &g); err != nil {
		return Grant{}, fmt.Errorf("damaged grant: %w", err)
	}
	if err := g.check(); err != nil {
		return Grant{}, fmt.Errorf("damaged grant: %w", err)
	}
	if n, err := g.Permissions.Normalize(); err != nil || !n.equal(g.Permissions) {
		return Grant{}, errors.Join(errors.New("damaged grant: hosts or secrets are not in canonical form"), err)
	}
	again, err := g.encode()
	var a, b bytes.Buffer
	if err := errors.Join(err, json.Compact(&a, data), json.Compact(&b, again)); err != nil {
		return Grant{}, fmt.Errorf("damaged grant: %w", err)
	}
	if !bytes.Equal(bytes.TrimSpace(a.Bytes()), bytes.TrimSpace(b.Bytes())) {
		return Grant{}, errors.New("damaged grant: unknown, duplicate or misspelled field")
	}
	return g, nil
}
