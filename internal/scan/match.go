package scan

import (
	"bytes"
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Limits per file.
const (
	maxHits     = 4000 // per rule
	maxMentions = 4 << 20
)

// hit is an occurrence of a rule's word. end is the offset after the word.
type hit struct{ end, rule int }

// scanText checks a text file for suspicious characters, matches of the rules,
// and MCP servers.
func (s *scanner) scanText(ctx context.Context, name string, data []byte) {
	t := newSource(name, data)
	defer func() { s.work += t.work }()
	s.checkCharacters(t)
	if isMarkdown(name) {
		if s.mentioned += len(data); s.mentioned <= maxMentions {
			s.mentions = append(s.mentions, data)
		}
	}
	if isNotebook(name) {
		s.scanNotebook(ctx, t)
	}
	s.scanBlocks(ctx, t, t.splitBlocks(), isMarkdown(name))
	if l := fileLanguage(name, data); l&anyCode != 0 && !isMarkdown(name) {
		s.scripts[name] = true
	}
	s.scanServerFile(t)
}

// scanNotebook scans the cells of a notebook as code and Markdown.
func (s *scanner) scanNotebook(ctx context.Context, t *source) {
	code, prose, shellCode := notebookCells(t)
	if code == nil {
		return
	}
	s.scanBlocks(ctx, code, []*block{{end: len(code.data), language: python}}, false)
	s.scanBlocks(ctx, prose, prose.markdownBlocks(), true)
	s.scanBlocks(ctx, shellCode, []*block{{end: len(shellCode.data), language: shell}}, false)
	s.work += code.work + prose.work + shellCode.work
}

// scanBlocks applies the rules to the blocks of a text. markdown reports whether
// it is in Markdown.
func (s *scanner) scanBlocks(ctx context.Context, t *source, blocks []*block, markdown bool) {
	if markdown {
		s.checkSentences(ctx, t, blocks)
	}
	hits := s.findWords(t.data)
	for _, b := range blocks {
		if ctx.Err() != nil {
			return
		}
		from, _ := slices.BinarySearchFunc(hits, b.start+1, func(h hit, at int) int { return h.end - at })
		to, _ := slices.BinarySearchFunc(hits, b.end+1, func(h hit, at int) int { return h.end - at })
		s.scanBlock(ctx, t, b, hits[from:to])
		if t.name == s.manifestPath && b.language == shell && s.shell == nil {
			p := t.position(b.start, b.start+lineLength(t.data[b.start:b.end]))
			s.shell = &p
		}
	}
}

// findWords returns the occurrences of all rules' words, in order.
func (s *scanner) findWords(data []byte) []hit {
	x := ruleWords.get(newRuleIndex)
	var out []hit
	if s.last == nil {
		s.last, s.hit = make([]int, len(rules())), make([]int, len(rules()))
	}
	last, count := s.last, s.hit
	clear(last)
	clear(count)
	x.words.findAll(data, func(number uint16, end int) {
		for _, r := range x.rules[number] {
			if gap := end - last[r]; last[r] > 0 && gap < 256 && bytes.IndexByte(data[last[r]:end], '\n') < 0 {
				continue // the rule was already applied to this unit
			}
			if count[r]++; count[r] > maxHits {
				s.report.Truncated = true
				continue
			}
			last[r] = end
			out = append(out, hit{end, r})
		}
	})
	return out
}

// scanBlock applies the rules whose words occur in a block.
func (s *scanner) scanBlock(ctx context.Context, t *source, b *block, hits []hit) {
	tried := map[int]int{} // by rule: the 1-based index of the unit to which it was last applied
	flows := false
	for _, h := range hits {
		r := &rules()[h.rule]
		if !b.matchesTarget(r) {
			continue
		}
		flows = flows || r.flows
		if r.pattern == nil {
			continue
		}
		b.lex(t)
		unit, ok := b.unitAt(h.end - 1)
		if !ok || tried[h.rule] == unit+1 || s.isRuleFull(r.ID, t.name) {
			continue
		}
		tried[h.rule] = unit + 1
		if ctx.Err() != nil {
			return
		}
		s.applyRule(r, t, b, b.units[unit])
	}
	s.flowing = s.flowing || flows
	if flows || b.whole && b.language&(python|javascript|shell) != 0 {
		s.retain(t, b)
	}
}

// matchesTarget reports whether a rule applies to this kind of block.
func (b *block) matchesTarget(r *Rule) bool {
	switch r.Target {
	case Prose:
		return b.prose
	case Code:
		return !b.prose && (r.languages == 0 && b.language&anyCode != 0 || r.languages&b.language != 0)
	case Text:
		return b.language != inline // covered by the surrounding text
	case Frontmatter:
		return !b.prose && (b.whole || b.language == frontmatter) && r.languages&b.language != 0
	}
	return false
}

// applyRule applies a rule to a unit of a block.
func (s *scanner) applyRule(r *Rule, t *source, b *block, u span) {
	src := b.code
	if r.bare {
		src = b.bare
	}
	u = span{max(0, u.start-r.window), min(len(src), u.end+r.window)}
	unit := src[u.start:u.end]
	t.work += len(unit)
	if len(r.also) > 0 && !containsAny(unit, r.also) {
		return
	}
	m, groups := r.find(unit)
	if m == nil || r.unless != nil && r.unless.Match(unit) {
		return
	}
	from, to := b.start+u.start+m[0], b.start+u.start+m[1]
	for from < to && (t.data[from] == ' ' || t.data[from] == '\n' || t.data[from] == '\t') {
		from++
	}
	p := t.position(from, to)
	switch {
	case s.at != nil:
		p.line, p.column = s.at.line, s.at.column
	case r.note != nil:
		r.note(s, groups, p)
		return
	}
	severity := b.severity(r, t.data, u, m[0], m[1])
	if r.vendor && severity > Medium && isVendorInstaller(t, s.skillName(), string(unit[m[0]:m[1]+lineLength(unit[m[1]:])])) {
		severity = Medium
	}
	s.addFindingAs(r.ID, s.inContext(severity, t, b, r, from), p)
}

// maxRejected is the maximum number of matches in a unit that a rule rejects.
const maxRejected = 16

// find returns the offsets and groups of the first match in a unit that the rule accepts,
// or nil. groups is set only if the rule needs them.
func (r *Rule) find(unit []byte) (m []int, groups []string) {
	if r.accept == nil && r.note == nil {
		return r.pattern.FindSubmatchIndex(unit), nil
	}
	for from, tries := 0, 0; from <= len(unit) && tries < maxRejected; tries++ {
		m = r.pattern.FindSubmatchIndex(unit[from:])
		if m == nil {
			return nil, nil
		}
		groups = make([]string, len(m)/2)
		for i := range m {
			if m[i] >= 0 {
				m[i] += from
			}
		}
		for i := range groups {
			if m[2*i] >= 0 {
				groups[i] = string(unit[m[2*i]:m[2*i+1]])
			}
		}
		if r.accept == nil || r.accept(groups) {
			return m, groups
		}
		from = max(m[1], m[0]+1)
	}
	return nil, nil
}

// severity returns the severity of a match. It is lower than the rule's if the
// surrounding text presents a bad example, as security documents do.
func (b *block) severity(r *Rule, data []byte, u span, from, to int) Severity {
	if r.Severity <= Low || r.Target == Text {
		return r.Severity
	}
	src := data[b.start:b.end]
	if b.prose {
		if isQuoted(src[u.start:u.end], from, to) {
			return Low
		}
		return r.Severity
	}
	if b.hasWarning != nil && b.hasWarning() {
		return r.Severity - 1
	}
	if b.isQuotedCode(u, from, to) {
		return r.Severity - 1
	}
	line := src[u.start : u.start+lineLength(src[u.start:u.end])]
	before := src[max(0, u.start-480):u.start]
	if b.hasWarning != nil && (warningWords.Match(line[min(len(line), bytes.IndexByte(line, '#')+1):]) && bytes.IndexByte(line, '#') > 0 || hasWarningComment(before)) {
		return r.Severity - 1
	}
	return r.Severity
}

// hasWarningComment reports whether one of the preceding lines is a comment
// that contains a warning.
func hasWarningComment(before []byte) bool {
	for line := range bytes.Lines(before) {
		line = bytes.TrimSpace(line)
		if (bytes.HasPrefix(line, []byte("#")) || bytes.HasPrefix(line, []byte("//"))) && warningWords.Match(line) {
			return true
		}
	}
	return false
}

// isQuotedCode reports whether a match in a program is only text: it is inside a
// string of a statement that calls nothing that runs commands, under the name of
// an example.
func (b *block) isQuotedCode(u span, from, to int) bool {
	if b.language&(python|javascript|otherCode) == 0 || !b.isLexed {
		return false
	}
	bare := b.bare[u.start:u.end]
	inString := len(bytes.Trim(bare[from:to], " \n\"'`")) == 0
	return inString && exampleNames.Match(b.code[max(0, u.start-300):u.end]) && !runningCall.Match(bare)
}

var (
	exampleNames = lazyregexp.New(`(?i)\b\w*(?:vulnerab|malicious|payload|pattern|signature|dangerous|suspicious|attack|exploit|blocklist|denylist|forbidden|rule|assert|expect|test_|should_)\w*`)
	runningCall  = lazyregexp.New(`(?i)\b(?:exec\w*|eval|system|spawn\w*|popen|run|call|check_\w+|getoutput|write\w*|sh|shell)\s*\(`)
)

// isQuoted reports whether a phrase is only mentioned, because it is in quotes
// or next to words about attacks.
func isQuoted(unit []byte, from, to int) bool {
	before, after := unit[max(0, from-160):from], unit[to:min(len(unit), to+160)]
	for _, q := range []string{`"`, "`", "“", "”"} {
		q := []byte(q)
		if bytes.Count(before, q)%2 == 1 && bytes.Contains(after, q) && !bytes.Contains(unit[from:to], q) {
			return true
		}
	}
	return warningWords.Match(before) || warningWords.Match(after)
}
