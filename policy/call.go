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
)

// WithGrants answers d again for a principal in a session, "" for none: where a
// person has to allow the call c and did before, for the tool or for these very
// arguments, it is allowed by that grant. One that is left out, as in planning,
// asks for the tool alone. Denials stay. Where the grants cannot be read nothing is
// granted, and the reason says so. Nothing is used up; see [Use].
func (d ToolDecision) WithGrants(ctx context.Context, r Reader, c ToolCall, p Principal, session string) ToolDecision {
	if !d.NeedsPerson() || r == nil || c.Subject == "" {
		return d
	}
	g, err := c.granted(ctx, r, p, session)
	switch {
	case err == nil:
		return ToolDecision{Effect: Allow, Code: Granted, Reason: "approved by " + g.By.String(), Rule: d.Rule, Grant: g}
	case errors.Is(err, ErrNotGranted):
		return d
	}
	d.Reason += "; whether it was approved before cannot be read: " + visible(err.Error(), 1000)
	if u, ok := errors.AsType[*UnsafeError](err); ok {
		d.Next = "look at " + visible(u.Path, 500) + ", who owns it and who can write it"
	}
	return d
}

// granted finds a grant for the call, one that lasts before one for a single call.
func (c *ToolCall) granted(ctx context.Context, r Reader, p Principal, session string) (*Grant, error) {
	subjects := []Digest{c.Subject}
	if len(c.Arguments) > 0 {
		subjects = append(subjects, c.Subject.With(c.Arguments))
	}
	var once *Grant
	var unread error
	for _, subject := range subjects {
		g, err := r.Find(ctx, p, subject, session)
		switch {
		case errors.Is(err, ErrNotGranted):
		case err != nil:
			unread = errors.Join(unread, err)
		case g == nil || g.Principal != p || g.Subject != subject:
			unread = errors.Join(unread, errors.New("it answered with a grant of something else"))
		case !g.Allows.Call: // of something that is no tool
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

// With is the subject of a grant for a tool with these arguments and no others.
func (d Digest) With(arguments json.RawMessage) Digest {
	return digestOf("call", string(d), string(ArgumentsDigest(arguments)))
}

// ArgumentsDigest names the arguments of a call, a JSON object; nothing is an empty
// one. The order of members and the blanks between them do not count. What two
// readers could understand differently, as a member given twice, is named by its
// very bytes.
func ArgumentsDigest(arguments json.RawMessage) Digest {
	text := bytes.TrimSpace(arguments)
	if len(text) == 0 || string(text) == "null" {
		text = []byte("{}")
	}
	if same, ok := canonical(text); ok {
		return digestOf("arguments", same)
	}
	return digestOf("bytes", string(arguments))
}

// digestOf names a list of texts.
func digestOf(parts ...string) Digest {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return Digest("sha256:" + hex.EncodeToString(h.Sum(nil)))
}

// maxNesting bounds how deep arguments are that have one form.
const maxNesting = 200

// canonical is the one form of a JSON text, where it has but one meaning.
func canonical(text []byte) (string, bool) {
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
			return "", false // it may have been another character
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
		return "", false // a member given twice
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}", true
}
