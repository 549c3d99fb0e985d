package redact

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// Finder finds which of many values a text contains, in one pass over the text. If
// values start with the same bytes, the cost grows with the number of distinct lengths,
// but not with the lengths themselves. It is immutable and safe for concurrent
// use.
type Finder struct {
	values []string
	starts map[[MinLength]byte]*sameStart
	base   uint64 // of the hashes; random, so that no text causes collisions
}

// sameStart holds the values that start with the same bytes.
type sameStart struct {
	values  []int        // all of them
	lengths []sameLength // if they are too many or too long to be compared one by one
}

type sameLength struct {
	length int
	power  uint64           // of the base
	hashes map[uint64][]int // the values by their hashes
}

// Limits of comparing values one by one.
const (
	maxCompared      = 4
	maxComparedBytes = 1 << 10
)

// NewFinder returns a finder of values. It ignores values shorter than [MinLength].
func NewFinder(values ...string) *Finder {
	f := &Finder{values, map[[MinLength]byte]*sameStart{}, 1<<32 + rand.Uint64N(1<<60)}
	for i, v := range values {
		if len(v) >= MinLength {
			start := [MinLength]byte([]byte(v[:MinLength]))
			if f.starts[start] == nil {
				f.starts[start] = &sameStart{}
			}
			f.starts[start].values = append(f.starts[start].values, i)
		}
	}
	for _, s := range f.starts {
		if len(s.values) > maxCompared || slices.ContainsFunc(s.values, func(i int) bool { return len(values[i]) > maxComparedBytes }) {
			s.lengths = f.byLength(s.values)
		}
	}
	return f
}

func (f *Finder) byLength(values []int) []sameLength {
	at := map[int]int{}
	var out []sameLength
	for _, i := range values {
		v, hash, power := f.values[i], uint64(0), uint64(1)
		for n := range len(v) {
			hash, power = f.next(hash, v[n]), multiply(power, f.base)
		}
		n, ok := at[len(v)]
		if !ok {
			n = len(out)
			at[len(v)] = n
			out = append(out, sameLength{len(v), power, map[uint64][]int{}})
		}
		out[n].hashes[hash] = append(out[n].hashes[hash], i)
	}
	return out
}

// Find calls found once with the index of each value that text contains.
func (f *Finder) Find(text string, found func(i int)) {
	if len(f.starts) == 0 {
		return
	}
	var start [MinLength]byte
	var hashes []uint64 // of the starts of text, by their lengths
	seen := map[int]bool{}
	check := func(at int, values []int) {
		for _, i := range values {
			if !seen[i] && strings.HasPrefix(text[at:], f.values[i]) {
				seen[i] = true
				found(i)
			}
		}
	}
	for at := 0; at+MinLength <= len(text); at++ {
		copy(start[:], text[at:])
		s := f.starts[start]
		if s == nil {
			continue
		}
		if s.lengths == nil {
			check(at, s.values)
			continue
		}
		if hashes == nil {
			hashes = f.hashes(text)
		}
		for _, l := range s.lengths {
			if end := at + l.length; end <= len(text) {
				check(at, l.hashes[subtract(hashes[end], multiply(hashes[at], l.power))])
			}
		}
	}
}

func (f *Finder) hashes(text string) []uint64 {
	out := make([]uint64, len(text)+1)
	for i := range len(text) {
		out[i+1] = f.next(out[i], text[i])
	}
	return out
}

// next returns the hash of the text extended by one byte.
func (f *Finder) next(hash uint64, b byte) uint64 {
	return reduce(multiply(hash, f.base) + uint64(b) + 1)
}

// Hashes are calculated modulo a prime number.
const prime = 1<<61 - 1

func reduce(n uint64) uint64 {
	if n = n&prime + n>>61; n >= prime {
		n -= prime
	}
	return n
}

func multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return reduce(low&prime + (high<<3 | low>>61))
}

func subtract(a, b uint64) uint64 { return reduce(a + prime - b) }
