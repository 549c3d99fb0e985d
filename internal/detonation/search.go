package detonation

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

const (
	maxDepth    = 3       // nested encodings that a search decodes
	maxRuns     = 64      // encoded runs of one kind that a search decodes in a text
	maxSearched = 8 << 20 // bytes that a search of one text inspects, with all decoded forms
	maxOfRun    = 32 << 20
	maxInflated = 1 << 20
)

// match is a decoy in a text.
type match struct {
	decoy    int    // index in decoys.all
	encoding string // such as "base64, reversed"; "" for plain text
}

// searcher finds decoys in a text, also encoded ones.
type searcher struct {
	d       *decoys
	decoys  []decoy
	budget  int
	matches []match
}

// find returns the decoys in data. It cannot find encrypted decoys.
func (d *decoys) find(data []byte) []match {
	s := &searcher{d: d, decoys: d.all, budget: maxSearched}
	s.search(data, nil)
	slices.SortFunc(s.matches, func(a, b match) int { return a.decoy - b.decoy })
	return s.matches
}

func (s *searcher) search(data []byte, how []string) {
	if len(data) < tokenLength/2 {
		return
	}
	if s.budget < len(data) || s.d.left < len(data) || s.d.ctx.Err() != nil {
		s.d.cut = true
		return
	}
	s.budget, s.d.left = s.budget-len(data), s.d.left-len(data)
	lower := bytes.ToLower(data)
	s.compare(lower, how, "")
	s.compare(reverse(lower), how, "reversed")
	s.compare(rot13(lower), how, "rot13")
	if len(how) == maxDepth {
		return
	}
	for _, c := range codings {
		if c.name == "reversed" && slices.Contains(how, c.name) {
			continue
		}
		for _, decoded := range c.decode(data) {
			s.search(decoded, append(slices.Clip(how), c.name))
		}
	}
}

// compare adds the decoys in text, which is in lower case. Half of a token is
// enough, because code can send a secret in parts.
func (s *searcher) compare(text []byte, how []string, last string) {
	for i, d := range s.decoys {
		if slices.ContainsFunc(s.matches, func(m match) bool { return m.decoy == i }) {
			continue
		}
		half := len(d.token) / 2
		if bytes.Contains(text, []byte(d.token[:half])) || bytes.Contains(text, []byte(d.token[half:])) {
			if last != "" {
				how = append(slices.Clip(how), last)
			}
			s.matches = append(s.matches, match{i, strings.Join(how, ", ")})
		}
	}
}

func reverse(data []byte) []byte {
	out := slices.Clone(data)
	slices.Reverse(out)
	return out
}

// rot13 shifts the lower-case letters of data by 13.
func rot13(data []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return 'a' + (r-'a'+13)%26
		}
		return r
	}, data)
}

// codings are the encodings that a search decodes.
var codings = []struct {
	name   string
	decode func([]byte) [][]byte
}{
	{"compressed", inflate},
	{"base64", decodeBase64},
	{"hex", decodeHex},
	{"base32", decodeBase32},
	{"URL-encoded", decodePercent},
	{"reversed", func(data []byte) [][]byte { return [][]byte{reverse(data)} }},
}

// inflate decompresses data that begins as gzip or zlib do, such data in the body of a
// request, and data of gzip anywhere.
func inflate(data []byte) [][]byte {
	out := inflateOne(data)
	if _, body, ok := bytes.Cut(data, []byte("\r\n\r\n")); ok && len(body) > 0 {
		out = append(out, inflateOne(body)...)
	}
	for at, n := 1, 0; n < maxMembers; n++ { // such as in a form
		i := bytes.Index(data[min(at, len(data)):], gzipHeader)
		if i < 0 {
			break
		}
		out = append(out, inflateOne(data[at+i:])...)
		at += i + 1
	}
	return out
}

// gzipHeader begins data that gzip compressed, of which a search reads up to maxMembers
// parts.
var gzipHeader = []byte{0x1f, 0x8b, 8}

const maxMembers = 8

func inflateOne(data []byte) [][]byte {
	var r io.Reader
	var err error
	switch {
	case len(data) > 2 && data[0] == 0x1f && data[1] == 0x8b:
		r, err = gzip.NewReader(bytes.NewReader(data))
	case len(data) > 2 && data[0] == 0x78:
		r, err = zlib.NewReader(bytes.NewReader(data))
	}
	if r == nil || err != nil {
		return nil
	}
	out, _ := io.ReadAll(io.LimitReader(r, maxInflated)) // truncated data is searched, too
	return [][]byte{out}
}

var (
	base64Run = lazyregexp.New(`[A-Za-z0-9+/_-]{16,}`)
	hexRun    = lazyregexp.New(`(?:[0-9a-fA-F]{2}){10,}`)
	base32Run = lazyregexp.New(`[A-Za-z2-7]{20,}`)
	lineEnd   = lazyregexp.New(`\r?\n|\\n|%0[aA]`)
	hexMark   = lazyregexp.New(`\\x|0x|[:, ]`)
)

// decodeBase64 decodes runs of characters of base64 at each alignment, because
// a path or a label can precede the encoded text.
func decodeBase64(data []byte) [][]byte {
	var out [][]byte
	joined := lineEnd.ReplaceAll(data, nil)
	for _, run := range base64Run.FindAll(joined, maxRuns) {
		std := standardAlphabet(run)
		for offset := range 4 {
			if part := std[min(offset, len(std)):]; len(part) >= 16 {
				n := len(part) - len(part)%4
				if len(part)%4 > 1 {
					n = len(part)
				}
				dst := make([]byte, base64.RawStdEncoding.DecodedLen(n))
				m, _ := base64.RawStdEncoding.Decode(dst, part[:n])
				out = append(out, dst[:m])
			}
		}
	}
	return out
}

// standardAlphabet replaces the characters of the URL alphabet of base64.
func standardAlphabet(run []byte) []byte {
	return bytes.Map(func(r rune) rune {
		switch r {
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, run)
}

// decodeHex decodes runs of hexadecimal digits, also with separators.
func decodeHex(data []byte) [][]byte {
	var out [][]byte
	for _, text := range [][]byte{data, hexMark.ReplaceAll(data, nil)} {
		for _, run := range hexRun.FindAll(text, maxRuns) {
			for offset := range 2 {
				part := run[offset:]
				dst := make([]byte, len(part)/2)
				m, _ := hex.Decode(dst, part[:len(part)/2*2])
				out = append(out, dst[:m])
			}
		}
	}
	return out
}

// decodeBase32 decodes runs of characters of base32, which names of hosts can
// contain. It ignores case.
func decodeBase32(data []byte) [][]byte {
	var out [][]byte
	for _, run := range base32Run.FindAll(data, maxRuns) {
		n := len(run) / 8 * 8
		dst := make([]byte, base32.StdEncoding.DecodedLen(n))
		m, _ := base32.StdEncoding.Decode(dst, bytes.ToUpper(run[:n]))
		out = append(out, dst[:m])
	}
	return out
}

// decodePercent decodes URL-encoded text.
func decodePercent(data []byte) [][]byte {
	if bytes.Count(data, []byte("%")) < 2 {
		return nil
	}
	var b strings.Builder
	for part := range strings.FieldsSeq(string(data)) {
		if decoded, err := url.PathUnescape(part); err == nil {
			part = decoded
		}
		b.WriteString(part)
		b.WriteByte(' ')
	}
	return [][]byte{[]byte(b.String())}
}
