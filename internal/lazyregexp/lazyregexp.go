// Package lazyregexp compiles regular expressions on first use. Compiling all
// expressions of a large program at start would delay every start by
// milliseconds, although most runs use few of them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. The first call
// compiles it and panics if text is not a valid expression. The function is
// safe for concurrent use.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
