package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// WithGrants returns the decision d, taking the grants in s into account. If
// call c needs approval and a grant of principal p covers the tool or these
// exact arguments, the grant allows the call. The grant may be for the session
// or permanent. A call without arguments, as in planning, matches only grants
// for the tool. Denials are unchanged. If the grants cannot be read, WithGrants
// returns d with a reason that says so. It does not use up one-time grants.
func (d ToolDecision) WithGrants(ctx context.Context, s Store, c ToolCall, p Principal, session string) ToolDecision {
	if !d.NeedsApproval() || s == nil || c.Subject == "" {
		return d
	}
	g, err := c.findGrant(ctx, s, p, session)
	switch {
	case err == nil:
		return ToolDecision{Effect: Allow, Code: Granted, Reason: "approved by " + g.By.String(), Rule: d.Rule, Grant: g}
	case errors.Is(err, ErrNotGranted):
		return d
	}
	d.Reason += "; cannot read earlier approvals: " + printable.Text(err.Error(), 1000)
	if u, ok := errors.AsType[*privatefile.UnsafeError](err); ok {
		d.Hint = "check the owner and permissions of " + printable.Text(u.Path, 500)
	}
	return d
}

// findGrant returns a grant for the call. It returns a one-time grant only if
// there is no other.
func (c *ToolCall) findGrant(ctx context.Context, s Store, p Principal, session string) (*Grant, error) {
	subjects := []Digest{c.Subject}
	if len(c.Arguments) > 0 {
		subjects = append(subjects, c.Subject.WithArguments(c.Arguments))
	}
	var once *Grant
	var unread error
	for _, subject := range subjects {
		g, err := s.Find(ctx, p, subject, session)
		switch {
		case errors.Is(err, ErrNotGranted):
		case err != nil:
			unread = errors.Join(unread, err)
		case g == nil || g.Principal != p || g.Subject != subject:
			unread = errors.Join(unread, errors.New("grant store returned a grant for something else"))
		case !g.Permissions.Call: // not a tool grant
		case g.Scope != Once:
			return g, nil
		default:
			once = g
		}
	}
	switch {
	case once != nil:
		return once, nil
	case unread != nil:
		return nil, unread
	}
	return nil, ErrNotGranted
}

// WithArguments returns the subject of a grant that covers calls to tool d with
// exactly these arguments.
func (d Digest) WithArguments(arguments json.RawMessage) Digest {
	return hashParts("call", string(d), string(ArgumentsDigest(arguments)))
}

// ArgumentsDigest returns a digest of a call's arguments, a JSON object.
// Missing arguments are equal to an empty object. The digest does not depend on
// white space and the order of members. Ambiguous JSON, such as an object with
// duplicate members, is hashed byte by byte.
func ArgumentsDigest(arguments json.RawMessage) Digest {
	text := bytes.TrimSpace(arguments)
	if len(text) == 0 || string(text) == "null" {
		text = []byte("{}")
	}
	if same, ok := canonicalJSON(text); ok {
		return hashParts("arguments", same)
	}
	return hashParts("bytes", string(arguments))
}

// hashParts returns a digest of a list of strings.
func hashParts(parts ...string) Digest {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return Digest("sha256:" + hex.EncodeToString(h.Sum(nil)))
}

// maxNesting is the maximum depth of arguments that are canonicalized.
const maxNesting = 200

// canonicalJSON returns the canonical form of JSON text. It returns false if
// the text is ambiguous.
func canonicalJSON(text []byte) (string, bool) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return "", false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return canonicalValue(dec, 0)
}

func canonicalValue(dec *json.Decoder, depth int) (string, bool) {
	t, err := dec.Token()
	if err != nil || depth > maxNesting {
		return "", false
	}
	delim, nested := t.(json.Delim)
	if !nested {
		if s, ok := t.(string); ok && strings.ContainsRune(s, utf8.RuneError) {
			return "", false // U+FFFD may have replaced an invalid character
		}
		js, err := json.Marshal(t)
		return string(js), err == nil
	}
	var parts []string
	var names []string
	for dec.More() {
		name := ""
		if delim == '{' {
			var ok bool
			if name, ok = canonicalValue(dec, depth+1); !ok {
				return "", false
			}
			names = append(names, name)
			name += ":"
		}
		value, ok := canonicalValue(dec, depth+1)
		if !ok {
			return "", false
		}
		parts = append(parts, name+value)
	}
	if _, err := dec.Token(); err != nil {
		return "", false
	}
	if delim == '[' {
		return "[" + strings.Join(parts, ",") + "]", true
	}
	slices.Sort(names)
	if len(slices.Compact(names)) < len(parts) {
		return "", false // duplicate member
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}", true
}
