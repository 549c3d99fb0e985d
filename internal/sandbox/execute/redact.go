package execute

import (
	"slices"

	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/sandbox"
)

// redactor returns a redactor for all secrets of the spec.
func redactor(s *sandbox.Spec) *redact.Redactor {
	all := slices.Clone(s.Secrets)
	for _, in := range s.Network.Inject {
		all = append(all, in.Secret)
	}
	return newRedactor(all)
}

// newRedactor returns a redactor that replaces the value of each secret with
// its name. Values shorter than six bytes are not replaced.
func newRedactor(secrets []sandbox.Secret) *redact.Redactor {
	var all []redact.Secret
	for _, s := range secrets {
		if len(s.Reveal()) >= redact.MinLength {
			all = append(all, redact.Secret{Value: s.Reveal(), Replacement: "[" + s.String() + "]"})
		}
	}
	return redact.New(all...)
}

// Redact returns b with the value of each secret replaced by its name in
// brackets. Values shorter than six bytes are not replaced. Redact does not
// modify b, but the result may share memory with it.
func Redact(b []byte, secrets ...sandbox.Secret) []byte { return newRedactor(secrets).Bytes(b) }

// RedactText returns text with each secret value of the spec replaced by its
// name in brackets. It ignores case. The secrets are those in Secrets and
// Network.Inject. RedactText is for short strings such as host names and log
// messages.
func RedactText(s *sandbox.Spec, text string) string { return redactor(s).FoldString(text) }
