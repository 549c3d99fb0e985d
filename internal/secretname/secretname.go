// Package secretname defines which names a secret may have.
//
// It never reads or stores a secret.
//
// Start with [Check].
package secretname

import (
	"fmt"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

var form = lazyregexp.New(`\A[A-Za-z_][A-Za-z0-9_]{0,127}\z`)

// Check returns an error if s is not a valid secret name. A name has up to 128
// letters, digits and underscores and does not start with a digit. Most secrets
// are passed as environment variables, so the rules for those apply. The error
// contains s.
func Check(s string) error {
	if !form.MatchString(s) {
		return fmt.Errorf("invalid secret name %.150q: use letters, digits and _", s)
	}
	return nil
}
