// Package pattern compiles regular expressions when they are first used. All those of
// a large program, compiled as it starts, delay every start by milliseconds, and a
// start uses few of them.
package pattern

import (
	"regexp"
	"sync"
)

// New returns a function that gives the expression, which is compiled once. It panics
// there where the text is none. It is safe for concurrent use.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
