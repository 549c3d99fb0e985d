package sandbox

import (
	"bytes"
	"slices"
	"strings"
)

// minSecret is the length from which a value is replaced wherever it turns up.
// A shorter one would be found in texts that have nothing to do with it.
const minSecret = 6

// secrets are all values that must not be shown, longest first.
func (s *Spec) secrets() []Secret {
	all := slices.Clone(s.Secrets)
	for _, in := range s.Network.Inject {
		all = append(all, in.Secret)
	}
	all = slices.DeleteFunc(all, func(s Secret) bool { return len(s.value) < minSecret })
	slices.SortStableFunc(all, func(a, b Secret) int { return len(b.value) - len(a.value) })
	return all
}

// Redact returns b with each value of a secret replaced by its name. Values of
// fewer than six bytes are left.
func Redact(b []byte, secrets ...Secret) []byte {
	r := newRedactor((&Spec{Secrets: secrets}).secrets())
	out := append([]byte{}, r.write(b)...)
	return append(out, r.flush()...)
}

// Hide returns a short text with each value of a secret of the spec replaced by
// its name, in capitals or not: for names of hosts, and texts of logs.
func (s *Spec) Hide(text string) string {
	for _, sec := range s.secrets() {
		lower, value := strings.ToLower(text), strings.ToLower(sec.value)
		for i := strings.Index(lower, value); i >= 0 && len(lower) == len(text); i = strings.Index(lower, value) {
			text = text[:i] + "[" + sec.String() + "]" + text[i+len(value):]
			lower = strings.ToLower(text)
			if strings.Contains(strings.ToLower("["+sec.String()+"]"), value) {
				break // or it would never end
			}
		}
		if len(lower) != len(text) && strings.Contains(lower, value) {
			text = "[" + sec.String() + "]"
		}
	}
	return text
}

// redactor replaces secrets in a stream, in which they may come in pieces.
type redactor struct {
	secrets []Secret
	longest int
	rest    []byte // the end of what came, which may be the beginning of one
}

func newRedactor(secrets []Secret) *redactor {
	r := &redactor{secrets: secrets}
	if len(secrets) > 0 {
		r.longest = len(secrets[0].value)
	}
	return r
}

// write returns what can be said by now. It is good until the next call. What
// may be the beginning of a secret is held back before others are replaced, of
// which it may have one inside.
func (r *redactor) write(b []byte) []byte {
	if len(r.secrets) == 0 {
		return b
	}
	data := append(r.rest, b...)
	said := r.whole(data, len(data)-r.held(data))
	out := r.replace(slices.Clone(data[:said]))
	r.rest = slices.Clone(data[said:])
	return out
}

func (r *redactor) flush() []byte {
	out := r.replace(r.rest)
	r.rest = nil
	return out
}

func (r *redactor) replace(b []byte) []byte {
	for _, s := range r.secrets {
		if bytes.Contains(b, []byte(s.value)) {
			b = bytes.ReplaceAll(b, []byte(s.value), []byte("["+s.String()+"]"))
		}
	}
	return b
}

// whole moves the border between what is said and what is held back to where it
// is in no secret.
func (r *redactor) whole(b []byte, border int) int {
	for i := 0; i < len(r.secrets); i++ {
		n := len(r.secrets[i].value)
		from := max(border-n+1, 0)
		at := bytes.Index(b[from:min(border+n-1, len(b))], []byte(r.secrets[i].value))
		if at >= 0 {
			border = from + at
			i = -1 // another may be there now
		}
	}
	return border
}

// held is how many bytes at the end may be the beginning of a secret.
func (r *redactor) held(b []byte) int {
	for n := min(r.longest-1, len(b)); n > 0; n-- {
		end := b[len(b)-n:]
		for _, s := range r.secrets {
			if len(s.value) > n && bytes.HasPrefix([]byte(s.value), end) {
				return n
			}
		}
	}
	return 0
}
