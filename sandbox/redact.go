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

// Redact returns b with the value of each secret replaced by its name in
// brackets. Values shorter than six bytes are not replaced. Redact does not
// modify b, but the result may share memory with it.
func Redact(b []byte, secrets ...Secret) []byte { return newRedactor(secrets).Bytes(b) }

// Redact returns text with each secret value of the spec replaced by its name
// in brackets. It ignores case. The secrets are those in Secrets and
// Network.Inject. Redact is for short texts such as host names and log
// messages.
func (s *Spec) Redact(text string) string { return s.redactor().FoldString(text) }
