package seal

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// words finds many words in one pass over a text: the automaton of Aho and Corasick.
// Each node is the beginning of a word.
type words struct {
	nodes []node     // the first is the beginning of all
	first [256]int32 // its children by their byte
}

type node struct {
	child   int32 // first of those with one byte more; 0 is none, as is next
	sibling int32 // next of those with another last byte
	shorter int32 // the longest end of this beginning that is a beginning itself
	depth   int32 // bytes of this beginning
	length  int32 // bytes of the longest word that ends here; 0 is none
	secret  int32 // whose word it is
	last    byte
}

func newWords() words { return words{nodes: make([]node, 1)} }

func (w *words) add(word string, secret int) {
	at := int32(0)
	for i := range len(word) {
		next := w.child(at, word[i])
		if next == 0 {
			next = int32(len(w.nodes))
			w.nodes = append(w.nodes, node{sibling: w.nodes[at].child, depth: int32(i + 1), last: word[i]})
			w.nodes[at].child = next
			if at == 0 {
				w.first[word[i]] = next
			}
		}
		at = next
	}
	if n := &w.nodes[at]; n.length == 0 { // else it is the value of two secrets
		n.length, n.secret = int32(len(word)), int32(secret)
	}
}

// link finds the shorter ends, after all words are there.
func (w *words) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := w.nodes[at].child; c != 0; c = w.nodes[c].sibling {
			n := &w.nodes[c]
			if at != 0 {
				n.shorter = w.next(w.nodes[at].shorter, n.last)
			}
			if s := w.nodes[n.shorter]; n.length == 0 {
				n.length, n.secret = s.length, s.secret
			}
			queue = append(queue, c)
		}
	}
}

func (w *words) child(at int32, b byte) int32 {
	if at == 0 {
		return w.first[b]
	}
	c := w.nodes[at].child
	for c != 0 && w.nodes[c].last != b {
		c = w.nodes[c].sibling
	}
	return c
}

// next is the longest beginning of a word that the text read so far ends with.
func (w *words) next(at int32, b byte) int32 {
	for {
		if c := w.child(at, b); c != 0 || at == 0 {
			return c
		}
		at = w.nodes[at].shorter
	}
}

var percent = pattern.New(`%[0-9A-F]{2}`)

// unescaped are characters that a browser's encodeURIComponent leaves and Go does
// not.
var unescaped = []string{"+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*"}

// formsOf are the ways to write a value: as it is, in JSON, in URLs, and in base64.
func formsOf(value string) []string {
	forms := []string{value}
	for _, html := range []bool{false, true} {
		forms = append(forms, quoted(value, html))
	}
	query := url.QueryEscape(value)
	for _, escaped := range []string{query, url.PathEscape(value), strings.NewReplacer(unescaped...).Replace(query)} {
		forms = append(forms, escaped, lowered(percent(), escaped))
	}
	for before := range 3 {
		std := inBase64(value, before)
		forms = append(forms, std, strings.NewReplacer("+", "-", "/", "_").Replace(std))
	}
	slices.Sort(forms)
	return slices.DeleteFunc(slices.Compact(forms), func(f string) bool { return len(f) < minSecret })
}

func quoted(value string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(value) != nil {
		return value
	}
	return b.String()[1 : b.Len()-len("\"\n")]
}

func lowered(what *regexp.Regexp, text string) string {
	return what.ReplaceAllStringFunc(text, strings.ToLower)
}

// inBase64 is what a value becomes in something encoded in which a number of bytes
// come before it, of which the remainder by three counts: without the characters at
// either end that depend on its neighbours as well.
func inBase64(value string, before int) string {
	encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
	first := (before*8 + 5) / 6
	end := (before + len(value)) * 8 / 6
	return encoded[first:end]
}
