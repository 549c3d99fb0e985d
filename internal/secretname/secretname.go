// Package secretname defines which names a secret and a platform value may have.
//
// It never reads or stores a secret.
//
// Start with [Check].
package secretname

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

var form = lazyregexp.New(`\A[A-Za-z_][A-Za-z0-9_]{0,127}\z`)

// Check returns an error if s is not a valid secret name. A name has up to 128
// letters, digits and underscores and does not start with a digit. Most secrets
// are passed as environment variables, so the rules for names of variables
// apply. The error contains s.
func Check(s string) error {
	if !form.MatchString(s) {
		return fmt.Errorf("invalid secret name %.150q: use letters, digits and _", s)
	}
	return nil
}

var variable = lazyregexp.New(`\A[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*\z`)

// IsVariable reports whether name can be the name of a platform value, such as
// task_data.region. A name has up to 128 ASCII letters, digits, underscores and,
// after the first dot, hyphens. Its first part is neither user nor secrets.
func IsVariable(name string) bool {
	root, _, _ := strings.Cut(name, ".")
	return len(name) <= 128 && variable.MatchString(name) && root != "user" && root != "secrets"
}
