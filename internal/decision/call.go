package decision

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
	"github.com/loadout-dev/loadout/policy"
)

// ForCall decides whether a tool call is allowed, by the user's rules and then
// by those of active skills. The rules of skills can allow only calls that the
// user's rules do not decide, and only calls to tools that are rated, not
// CRITICAL and not marked as needing approval. Their denials always apply.
func ForCall(user, skills policy.Rules, c policy.ToolCall) policy.Decision {
	if needsUserRule(c) || c.Safety == policy.Critical {
		skills = skills.Denials()
	}
	return user.Append(skills).Decide(c)
}

// ForIsolatedCall is like [ForCall] for a call that runs a skill's approved
// code in a sandbox without network access or secrets. Such a call needs no
// approval merely because the tool may modify data: it can only modify files in
// the sandbox. The caller must not use it for tools that are declared
// destructive.
func ForIsolatedCall(user, skills policy.Rules, c policy.ToolCall) policy.Decision {
	d := ForCall(user, skills, c)
	if d.Effect != policy.Ask || d.Code != mayModify {
		return d
	}
	return policy.Decision{Effect: policy.Allow, Code: isolated, Reason: "its approved code runs in the sandbox, without network access and secrets"}
}

// Codes of decisions on calls, in addition to those of package policy.
const (
	mayModify = "may-change" // returned by [policy.Rules.Decide]
	isolated  = "isolated"
)

// needsUserRule reports whether the tool needs approval unless a rule of the
// user allows it: it is marked as needing approval, or its safety is unknown.
func needsUserRule(c policy.ToolCall) bool {
	return c.AlwaysAsk || c.Safety <= policy.Unknown || c.Safety > policy.Critical
}

// WithGrants returns the decision d, taking the grants in s into account. If
// call c needs approval and a grant of principal p covers the tool or these
// exact arguments, the grant allows the call. The grant may be for one call,
// for the session or permanent; WithGrants does not use it up. A call without
// arguments, as in planning, matches only grants for the tool. Denials are
// unchanged. If the grants cannot be read, WithGrants returns d with a reason
// that says so.
func WithGrants(ctx context.Context, d policy.Decision, s policy.Store, c policy.ToolCall, p policy.Principal, session string) policy.Decision {
	if d.Effect != policy.Ask || s == nil || c.Subject == "" {
		return d
	}
	g, err := findGrant(ctx, s, c, p, session)
	switch {
	case err == nil:
		return policy.Decision{Effect: policy.Allow, Code: Granted, Reason: "approved by " + g.By.String(), Rule: d.Rule, Grant: g}
	case errors.Is(err, policy.ErrNotGranted):
		return d
	}
	d.Reason += "; cannot read earlier approvals: " + printable.Text(err.Error(), 1000)
	if u, ok := errors.AsType[*privatefile.UnsafeError](err); ok {
		d.Hint = "check the owner and permissions of " + printable.Text(u.Path, 500)
	}
	return d
}

// CallRecord returns the audit record for decision d on call c. approved is set
// if the user approved the call. The record contains only a digest of the
// arguments, because they may contain secrets.
func CallRecord(d policy.Decision, c policy.ToolCall, p policy.Principal, approved bool) policy.Record {
	r := policy.Record{Principal: p, Action: "call", Subject: c.Subject, Name: c.Permission(), Decision: d.Effect, Reason: d.Reason, Details: map[string]string{
		"code": string(d.Code), "safety": c.Safety.String(), "arguments": string(ArgumentsDigest(c.Arguments))}}
	switch {
	case r.Decision == "":
		r.Decision = policy.Deny
	case r.Decision == policy.Ask && approved:
		r.Decision = policy.Allow
		r.Details["answer"] = "approved"
	}
	if d.Rule != "" {
		r.Details["rule"] = d.Rule
	}
	if d.Grant != nil {
		r.Details["grant"], r.Details["scope"] = d.Grant.ID, string(d.Grant.Scope)
	}
	return r
}

// findGrant returns a grant for the call. It returns a one-time grant only if
// there is no other.
func findGrant(ctx context.Context, s policy.Store, c policy.ToolCall, p policy.Principal, session string) (*policy.Grant, error) {
	subjects := []policy.Digest{c.Subject}
	if len(c.Arguments) > 0 {
		subjects = append(subjects, WithArguments(c.Subject, c.Arguments))
	}
	var once *policy.Grant
	var unread error
	for _, subject := range subjects {
		g, err := s.Find(ctx, p, subject, session)
		switch {
		case errors.Is(err, policy.ErrNotGranted):
		case err != nil:
			unread = errors.Join(unread, err)
		case g == nil || g.Principal != p || g.Subject != subject:
			unread = errors.Join(unread, errors.New("grant store returned a grant for another principal or subject"))
		case !g.Permissions.Call: // not a tool grant
		case g.Scope != policy.Once:
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
	return nil, policy.ErrNotGranted
}

// WithArguments returns the subject of a grant that covers calls to a tool with
// exactly these arguments.
func WithArguments(tool policy.Digest, arguments json.RawMessage) policy.Digest {
	return hashParts("call", string(tool), string(ArgumentsDigest(arguments)))
}

// ArgumentsDigest returns a digest of a call's arguments, a JSON object.
// Missing arguments are equal to an empty object. The digest does not depend on
// white space or the order of members. Ambiguous JSON, such as an object with
// duplicate members, is hashed byte by byte.
func ArgumentsDigest(arguments json.RawMessage) policy.Digest {
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
func hashParts(parts ...string) policy.Digest {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return policy.Digest("sha256:" + hex.EncodeToString(h.Sum(nil)))
}

// maxNesting is the maximum nesting depth of arguments that are canonicalized.
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
