package sandbox

import (
	"slices"

	"github.com/loadout-dev/loadout/internal/redact"
)

// redactor returns a redactor for all secrets of the spec.
func (s *Spec) redactor() *redact.Redactor {
	all := slices.Clone(s.Secrets)
	for _, in := range s.Network.Inject {
		all = append(all, in.Secret)
	}
	return newRedactor(all)
}

// newRedactor returns a redactor that replaces the value of each secret with
// its name. Values shorter than six bytes are not replaced.
func newRedactor(secrets []Secret) *redact.Redactor {
	var all []redact.Secret
	for _, s := range secrets {
		if len(s.value) >= redact.MinLength {
			all = append(all, redact.Secret{Value: s.value, Replacement: "[" + s.String() + "]"})
		}
	}
	return redact.New(all...)
}

// Redact returns b with the value of each secret replaced by its name. Values
// shorter than six bytes are not replaced. The result may share memory with b.
func Redact(b []byte, secrets ...Secret) []byte { return newRedactor(secrets).Bytes(b) }

// Redact returns text with the value of each of the spec's secrets replaced by
// its name, regardless of case. It is for short texts such as host names and
// log messages.
func (s *Spec) Redact(text string) string { return s.redactor().FoldString(text) }
