// Package lazyregexp compiles regular expressions on first use. Compiling all
// expressions of a large program at start would delay every start by
// milliseconds, although most runs use few of them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a regular expression that is compiled on first use. The first use
// panics if the expression is not valid. Its methods are those of
// [regexp.Regexp]. A Regexp is safe for concurrent use.
type Regexp struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns a Regexp for the expression in text. A package variable
// initialized with New needs no code at program start, so the linker can drop
// it if it is unused.
func New(text string) *Regexp { return &Regexp{text: text} }

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.compiled = regexp.MustCompile(r.text) })
	return r.compiled
}

func (r *Regexp) Match(b []byte) bool {
	return r.get().Match(b)
}

func (r *Regexp) MatchString(s string) bool {
	return r.get().MatchString(s)
}

func (r *Regexp) FindIndex(b []byte) []int {
	return r.get().FindIndex(b)
}

func (r *Regexp) FindString(s string) string {
	return r.get().FindString(s)
}

func (r *Regexp) FindSubmatch(b []byte) [][]byte {
	return r.get().FindSubmatch(b)
}

func (r *Regexp) FindSubmatchIndex(b []byte) []int {
	return r.get().FindSubmatchIndex(b)
}

func (r *Regexp) FindStringSubmatch(s string) []string {
	return r.get().FindStringSubmatch(s)
}

func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.get().FindStringSubmatchIndex(s)
}

func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte {
	return r.get().FindAllSubmatch(b, n)
}

func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.get().FindAllStringIndex(s, n)
}

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}

func (r *Regexp) ReplaceAll(b, repl []byte) []byte {
	return r.get().ReplaceAll(b, repl)
}

func (r *Regexp) ReplaceAllString(s, repl string) string {
	return r.get().ReplaceAllString(s, repl)
}

func (r *Regexp) ReplaceAllFunc(b []byte, repl func([]byte) []byte) []byte {
	return r.get().ReplaceAllFunc(b, repl)
}

func (r *Regexp) ReplaceAllStringFunc(s string, repl func(string) string) string {
	return r.get().ReplaceAllStringFunc(s, repl)
}

func (r *Regexp) FindAllSubmatchIndex(b []byte, n int) [][]int {
	return r.get().FindAllSubmatchIndex(b, n)
}

func (r *Regexp) FindAll(b []byte, n int) [][]byte {
	return r.get().FindAll(b, n)
}

func (r *Regexp) FindAllString(s string, n int) []string {
	return r.get().FindAllString(s, n)
}
