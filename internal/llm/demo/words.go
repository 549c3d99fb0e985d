package demo

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// truncate shortens text to at most limit bytes without splitting a character.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

func isChinese(text string) bool { return strings.ContainsFunc(text, isWide) }

// mentions reports whether text contains name as a separate word. Case is
// ignored, and a space matches a hyphen.
func mentions(text, name string) bool {
	name = strings.ToLower(name)
	text = strings.TrimPrefix(strings.ToLower(text), "/") // /name selects a skill
	return hasWord(text, name) || hasWord(text, strings.NewReplacer("-", " ", "_", " ").Replace(name))
}

func hasWord(text, word string) bool {
	if word == "" {
		return false
	}
	for rest, before := text, rune(0); ; {
		i := strings.Index(rest, word)
		if i < 0 {
			return false
		}
		if i > 0 {
			before, _ = utf8.DecodeLastRuneInString(rest[:i])
		}
		after := rest[i+len(word):]
		if !isWordRune(before) && !continuesWord(after) || isWide(firstRune(word)) {
			return true
		}
		_, n := utf8.DecodeRuneInString(rest[i:])
		before, _ = utf8.DecodeRuneInString(rest[i:])
		rest = rest[i+n:]
	}
}

func firstRune(s string) rune { r, _ := utf8.DecodeRuneInString(s); return r }

// isWordRune reports whether a character continues an adjacent word or path.
func isWordRune(r rune) bool {
	return r != 0 && !isWide(r) && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-/", r))
}

// continuesWord is like isWordRune, but for the text after a word, where a full
// stop may end a sentence.
func continuesWord(after string) bool {
	if after == "" {
		return false
	}
	if rest, ok := strings.CutPrefix(after, "."); ok {
		return rest != "" && isWordRune(firstRune(rest))
	}
	return isWordRune(firstRune(after))
}

var (
	runs      = []string{"run", "execute", "start", "运行", "执行", "跑"}
	uses      = []string{"call", "use", "调用", "使用"}
	questions = []string{"what can you do", "what skills", "which skills", "list skills", "list the skills", "list all skills", "what are you", "who are you", "help", "hello", "hi",
		"你能做什么", "你会什么", "你可以做什么", "有哪些技能", "有什么技能", "列出技能", "你是谁", "帮助", "你好"}
)

// asksForOverview reports whether the user only asks what skills or tools are
// available.
func (t *turn) asksForOverview() bool {
	text := strings.Trim(strings.ToLower(t.words), " \t\r\n?!.,。？！，")
	for _, q := range questions {
		if text == q || strings.HasPrefix(text, q) && len(q) > 5 && len(text) < len(q)+20 {
			return true
		}
	}
	return false
}

func hasVerb(text string, verbs ...string) bool {
	text = strings.ToLower(text)
	for _, v := range verbs {
		if hasWord(text, v) {
			return true
		}
	}
	return false
}

// namedFile returns the file that text names by path or base name. If text asks
// to run something, the file extension may be missing.
func namedFile(text string, paths []string) string {
	lower := strings.ToLower(text)
	for _, of := range []func(string) string{
		func(p string) string { return p },
		path.Base,
		func(p string) string {
			stem := strings.TrimSuffix(path.Base(p), path.Ext(p))
			if len(stem) < 3 || !hasVerb(text, runs...) {
				return ""
			}
			return stem
		},
	} {
		for _, p := range paths {
			if p != "" && hasWord(lower, strings.ToLower(of(p))) {
				return p
			}
		}
	}
	return ""
}

// namesTool reports whether text contains the full name of a tool. If text asks
// for a call, the last part of the name is enough.
func namesTool(text, name string) bool {
	if mentions(text, name) {
		return true
	}
	own := name[strings.LastIndexAny(name, "./")+1:]
	if i := strings.LastIndex(own, "__"); i >= 0 {
		own = own[i+2:]
	}
	return len(own) >= 3 && hasVerb(text, slices.Concat(runs, uses)...) && mentions(text, own)
}

// textValues holds the values found in text: a JSON object, or key=value pairs,
// options and quoted words in order.
type textValues struct {
	object json.RawMessage
	values []value
}

type value struct {
	key, text string
	raw       string // as the user typed it
}

var valuePattern = lazyregexp.New(`([\p{L}_][\p{L}\p{N}_-]*)=(?:"([^"]*)"|'([^']*)'|([^\s,;，；。]+))|(?:^|\s)(--?[A-Za-z][\w-]*(?:=\S+)?)|"([^"]+)"|“([^”]+)”|「([^」]+)」|` + "`([^`]+)`")

func parseValues(text string) textValues {
	var g textValues
	if i := strings.IndexByte(text, '{'); i >= 0 {
		d := json.NewDecoder(strings.NewReader(text[i:]))
		var object map[string]json.RawMessage
		if d.Decode(&object) == nil {
			whole := text[i : i+int(d.InputOffset())]
			g.object = json.RawMessage(whole)
			text = text[:i] + " " + text[i+len(whole):]
		}
	}
	for _, m := range valuePattern.FindAllStringSubmatch(text, maxValues) {
		switch {
		case m[1] != "":
			v := m[2] + m[3] + m[4]
			g.values = append(g.values, value{key: m[1], text: v, raw: m[1] + "=" + v})
		default:
			v := m[5] + m[6] + m[7] + m[8] + m[9]
			g.values = append(g.values, value{text: v, raw: v})
		}
	}
	return g
}

const maxValues = 50

// scriptArguments returns the arguments for a script: the values in text or, if
// there are none, the words after "with".
func scriptArguments(text, skill, script string) []string {
	g := parseValues(text)
	var out []string
	for _, v := range g.values {
		if !isName(v.raw, skill, script) {
			out = append(out, v.raw)
		}
	}
	if g.object != nil {
		var b bytes.Buffer
		if json.Compact(&b, g.object) == nil {
			out = append(out, b.String())
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, mark := range []string{" with ", "参数"} {
		if _, rest, ok := strings.Cut(text, mark); ok {
			for _, w := range strings.FieldsFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",，;；:：", r) }) {
				if w = strings.Trim(w, ".!?。！？"); w != "" && len(out) < maxValues && !isName(w, skill, script) {
					out = append(out, w)
				}
			}
			return out
		}
	}
	return nil
}

// isName reports whether a word names the skill or the script and is therefore
// not a value.
func isName(word, skill, script string) bool {
	return strings.EqualFold(word, skill) || strings.EqualFold(word, script) || strings.EqualFold(word, path.Base(script))
}

// toolArguments returns the arguments for a tool: a JSON object in the text,
// key=value pairs, or quoted words in the order of the required arguments.
func toolArguments(text string, t tool) any {
	g := parseValues(text)
	if g.object != nil {
		return g.object
	}
	out := map[string]any{}
	places := requiredProperties(t.schema)
	for _, v := range g.values {
		switch {
		case v.key != "":
			out[v.key] = parseScalar(v.text)
		case len(places) > 0 && !mentions(v.text, t.name):
			out[places[0]], places = v.text, places[1:]
		}
	}
	return out
}

// parseScalar returns the number or boolean that text represents, or else text
// itself.
func parseScalar(text string) any {
	var v any
	if strings.TrimSpace(text) == text && json.Unmarshal([]byte(text), &v) == nil {
		switch v.(type) {
		case float64:
			return json.Number(text)
		case bool:
			return v
		}
	}
	return text
}

// requiredProperties returns a schema's required properties. If none are
// required and there is only one property, it returns that property.
func requiredProperties(schema json.RawMessage) []string {
	var s struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	if len(s.Required) == 0 && len(s.Properties) == 1 {
		for name := range s.Properties {
			return []string{name}
		}
	}
	return s.Required
}

// commonWords lists words that do not describe a topic.
var commonWords = map[string]bool{
	"with": true, "this": true, "that": true, "please": true, "what": true, "have": true, "from": true, "your": true, "skill": true, "skills": true,
	"using": true, "make": true, "want": true, "need": true, "could": true, "would": true, "should": true, "about": true, "when": true, "some": true,
	"them": true, "into": true, "script": true, "tool": true, "tell": true, "give": true, "show": true, "does": true, "will": true, "work": true,
	"write": true, "create": true, "find": true, "help": true, "look": true, "take": true, "these": true, "those": true, "which": true, "where": true,
	"and": true, "are": true, "can": true, "for": true, "has": true, "how": true, "its": true, "not": true, "one": true, "our": true, "out": true, "the": true, "use": true, "was": true, "who": true, "why": true, "you": true, "all": true, "any": true, "but": true, "get": true, "let": true, "may": true,
	"帮我": true, "一个": true, "请问": true, "使用": true, "技能": true, "我想": true, "可以": true, "什么": true, "这个": true, "怎么": true,
}

// fits reports whether a description fits a request: it has two significant words
// of the request, or half of them. In scripts without spaces, a word is two letters.
func fits(request, description string) bool {
	wanted, words := significantWords(request), significantWords(description)
	shared := 0
	for _, w := range wanted {
		if slices.ContainsFunc(words, func(o string) bool { return sameWord(w, o) }) {
			shared++
		}
	}
	return shared >= 2 || shared > 0 && 2*shared >= len(wanted)
}

// sameWord reports whether two words are equal, one of at least four letters starts
// the other, or they differ only in an ending of up to three letters, such as
// greeting and greeted.
func sameWord(a, b string) bool {
	if a == b || isChinese(a) || isChinese(b) {
		return a == b
	}
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n >= 4 && n == min(len(a), len(b)) || n >= 5 && max(len(a), len(b))-n <= 3
}

// significantWords returns the distinct words that describe a topic.
func significantWords(text string) []string {
	var out []string
	add := func(w string, enough bool) {
		if enough && !commonWords[w] && !slices.Contains(out, w) && len(out) < 500 {
			out = append(out, w)
		}
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !isChinese(w) {
			add(w, len(w) >= 3)
			continue
		}
		letters := []rune(w)
		for i := 1; i < len(letters); i++ {
			add(string(letters[i-1:i+1]), isWide(letters[i-1]) && isWide(letters[i]))
		}
	}
	return out
}
