package script

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// inlineBlock is the regular expression of the specification
// (packaging.python.org, "Inline script metadata", formerly PEP 723).
var inlineBlock = lazyregexp.New(`(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$`)

// inlineMetadata is the content of a script's metadata block.
type inlineMetadata struct {
	requires     string // supported Python versions
	dependencies []dependency
}

type dependency struct {
	text string
	line int // line number in the script
}

// parseInline parses the inline metadata of a Python script. It returns false
// if there is none. As specified, it ignores a block without an end. If the
// block is invalid, the error is a [NeedsError].
func parseInline(p string, src []byte) (inlineMetadata, bool, error) {
	text := normalizeText(src)
	broken := func(line int, message, fix string) (inlineMetadata, bool, error) {
		return inlineMetadata{}, false, &NeedsError{[]Problem{{p, line, "syntax", message, fix}}}
	}
	var content string
	first := 0 // line of the opening comment
	for _, m := range inlineBlock.FindAllStringSubmatchIndex(text, -1) {
		if text[m[2]:m[3]] != "script" {
			continue
		}
		line := 1 + strings.Count(text[:m[0]], "\n")
		if first > 0 {
			return broken(line, "second script block of inline metadata; the first is in line "+fmt.Sprint(first), "remove one")
		}
		first, content = line, uncomment(text[m[4]:m[5]])
	}
	if first == 0 {
		return inlineMetadata{}, false, nil
	}
	if !utf8.ValidString(content) {
		return broken(first, "inline metadata is not UTF-8", "save the script as UTF-8")
	}
	var doc map[string]any
	if _, err := toml.Decode(content, &doc); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return broken(first+pe.Position.Line, "inline metadata is not TOML: "+pe.Message, "correct it; each line is `# ` and a line of TOML")
		}
		return broken(first, "inline metadata is not TOML: "+err.Error(), "correct it; each line is `# ` and a line of TOML")
	}
	var meta inlineMetadata
	var ps []Problem
	add := func(line int, code, message, fix string) { ps = append(ps, Problem{p, line, code, message, fix}) }
	where := func(s string) int { // returns the line of a word in the block
		before, _, ok := strings.Cut(content, s)
		if !ok {
			return first
		}
		return first + 1 + strings.Count(before, "\n")
	}
	switch v := doc["requires-python"].(type) {
	case nil:
	case string:
		meta.requires = strings.TrimSpace(v)
		if !isVersionSpecifier(v) {
			add(where("requires-python"), "syntax", fmt.Sprintf("requires-python %q is not a version specifier", v), `write it like ">=3.11"`)
		}
	default:
		add(where("requires-python"), "syntax", "requires-python is not a string", `write it like ">=3.11"`)
	}
	switch v := doc["dependencies"].(type) {
	case nil:
	case []any:
		for _, d := range v {
			s, ok := d.(string)
			if !ok {
				add(where("dependencies"), "syntax", "dependencies contains a value that is not a string", `write each like "requests>=2"`)
				continue
			}
			meta.dependencies = append(meta.dependencies, dependency{s, where(s)})
		}
	default:
		add(where("dependencies"), "syntax", "dependencies is not a list of strings", `write it like ["requests>=2"]`)
	}
	tool, _ := doc["tool"].(map[string]any)
	uv, _ := tool["uv"].(map[string]any)
	for _, key := range []string{"index", "index-url", "default-index", "extra-index-url", "find-links", "no-index", "sources", "pip"} {
		if _, ok := uv[key]; ok {
			add(where(key), "option", "tool.uv."+key+" changes where packages come from", "remove it; packages come from the index that the operator has chosen")
		}
	}
	if len(ps) > 0 {
		return inlineMetadata{}, false, &NeedsError{sortByLine(ps)}
	}
	return meta, true, nil
}

// uncomment removes the comment characters from the lines of a block.
func uncomment(block string) string {
	var b strings.Builder
	for line := range strings.Lines(block) {
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			b.WriteString(rest)
		} else {
			b.WriteString(line[1:])
		}
	}
	return b.String()
}
