package mcpserver

import (
	"context"
	"regexp"
	"sort"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// promptName is the name of a skill as a command can have it.
func promptName(e *catalog.Entry) string { return strings.Join(strings.Fields(e.Name), "-") }

// hinted matches the arguments in a hint such as "[issue] <priority>".
var hinted = regexp.MustCompile(`\[([^\[\]<>]+)\]|<([^\[\]<>]+)>`)

// promptArguments are those that the hint of a skill names, where there are
// several, else one for all: clients that split what a person types at spaces
// fill one after another, and drop what is left.
func promptArguments(e *catalog.Entry) []*mcp.PromptArgument {
	hint := e.ArgumentHint
	if hint == "" {
		hint = "what to do with the skill"
	}
	all := []*mcp.PromptArgument{{Name: "arguments", Description: hint}}
	parts := hinted.FindAllStringSubmatch(e.ArgumentHint, -1)
	if len(parts) < 2 || strings.TrimSpace(hinted.ReplaceAllString(e.ArgumentHint, "")) != "" {
		return all
	}
	var each []*mcp.PromptArgument
	seen := map[string]bool{}
	for _, part := range parts {
		name := skill.Slug(part[1] + part[2])
		if name == "" || seen[name] {
			return all
		}
		seen[name] = true
		each = append(each, &mcp.PromptArgument{Name: name, Description: part[0]})
	}
	return each
}

// typed is what a person gave for the arguments of a prompt, in order.
func typed(p *mcp.Prompt, given map[string]string) []string {
	if one, ok := given["arguments"]; ok {
		return []string{one}
	}
	var out []string
	for _, a := range p.Arguments {
		out = append(out, given[a.Name])
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// prompt is a skill that a person chose, with what they typed after its name.
func (s *Server) prompt(ctx context.Context, e *catalog.Entry, arguments []string) (*mcp.GetPromptResult, error) {
	all, err := s.fetchEntry(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, invalid("%s", s.explain(err))
	}
	m := all[len(all)-1]
	var rest string
	m.Instructions, rest = fillArguments(m.Instructions, arguments, e.ArgumentHint != "")
	var texts []string
	for _, m := range all {
		texts = append(texts, session.Render(m))
	}
	body := strings.Join(texts, "\n")
	if rest != "" {
		body += "\nArguments: " + rest + "\n"
	}
	return &mcp.GetPromptResult{Description: m.Title,
		Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: body}}}}, nil
}

// argumentPlace matches where an author wants what was typed: all of it, or
// the first to ninth word.
var argumentPlace = regexp.MustCompile(`\$(?:ARGUMENTS\b|[1-9]\b)`)

// fillArguments puts what a person typed where the author wrote $ARGUMENTS, $1
// and so on, and returns what the author left no place for. A lone $1 is also
// what shells and awk write: unless the author says that the skill takes
// arguments, it stays in code, and everywhere where nothing was typed.
func fillArguments(body string, arguments []string, hint bool) (filled, rest string) {
	all := strings.TrimSpace(strings.Join(arguments, " "))
	words := arguments
	if len(arguments) == 1 {
		words = splitWords(arguments[0])
	}
	hint = hint || strings.Contains(body, "$ARGUMENTS")
	placed := false
	var b strings.Builder
	code := codeSpans(body)
	last := 0
	for _, at := range argumentPlace.FindAllStringIndex(body, -1) {
		place := body[at[0]:at[1]]
		if place != "$ARGUMENTS" && (all == "" || !hint && code(at[0])) {
			continue
		}
		placed = true
		b.WriteString(body[last:at[0]])
		last = at[1]
		if place == "$ARGUMENTS" {
			b.WriteString(all)
		} else if i := int(place[1] - '1'); i < len(words) {
			b.WriteString(words[i])
		}
	}
	b.WriteString(body[last:])
	if placed {
		return b.String(), ""
	}
	return body, all
}

// splitWords splits at spaces that are not within quotes.
func splitWords(s string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	began := false
	for _, r := range s {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'') && word.Len() == 0:
			quote, began = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			if began {
				words = append(words, word.String())
			}
			word.Reset()
			began = false
		default:
			word.WriteRune(r)
			began = true
		}
	}
	if began {
		words = append(words, word.String())
	}
	return words
}

// codeSpans returns a function that tells whether an offset of Markdown text is
// in code: between fences, or between backquotes on a line.
func codeSpans(body string) func(int) bool {
	type span struct{ from, to int }
	var spans []span
	fence, at := "", 0
	for line := range strings.SplitAfterSeq(body, "\n") {
		end := at + len(line)
		trimmed := strings.TrimLeft(line, " \t")
		switch {
		case fence != "":
			spans = append(spans, span{at, end})
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
			spans = append(spans, span{at, end})
		default:
			for i, part := range strings.Split(line, "`") {
				if i%2 == 1 {
					spans = append(spans, span{at, at + len(part)})
				}
				at += len(part) + 1
			}
		}
		at = end
	}
	return func(offset int) bool {
		i := sort.Search(len(spans), func(i int) bool { return spans[i].to > offset })
		return i < len(spans) && spans[i].from <= offset
	}
}
