package scan

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// sentenceRule describes an attack as topics that occur near one another in the
// prose of a Markdown file, in any order and language.
type sentenceRule struct {
	rule     string
	severity Severity // 0 for that of the rule
	at       topic    // topic whose word is reported
	close    []topic  // topics within closeBytes; a value with several bits needs any of them
	needs    []topic  // topics within window
	window   int      // maximum distance from the word, in bytes
}

// topicHit is a word of a topic in a text.
type topicHit struct {
	at, end int
	topic   topic
}

// Limits of the sentence rules per file.
const (
	closeBytes   = 130 // a sentence or two
	maxTopicHits = 20_000
	maxSentences = 2000 // words at which rules are tried
)

// checkSentences applies the sentence rules to Markdown. blocks are its blocks.
func (s *scanner) checkSentences(ctx context.Context, t *source, blocks []*block) {
	hits, full := t.findTopics()
	s.report.Truncated = s.report.Truncated || full
	if len(hits) == 0 {
		return
	}
	var all topic
	for _, h := range hits {
		all |= h.topic
	}
	if all&decodes != 0 {
		s.checkEncodedText(t, hits, blocks)
	}
	tried := 0
	for i := range sentenceRules {
		r := &sentenceRules[i]
		if all&r.at == 0 || lacksTopics(all, r.close) || lacksTopics(all, r.needs) || s.isRuleFull(r.rule, t.name) {
			continue
		}
		reported := 0 // end of the last line with a finding
		for n, h := range hits {
			if h.topic&r.at == 0 || h.at < reported {
				continue
			}
			if ctx.Err() != nil {
				return
			}
			if tried++; tried > maxSentences {
				s.report.Truncated = true
				return
			}
			if lacksTopics(t.topicsNear(hits, n, closeBytes), r.close) {
				continue
			}
			if near := t.topicsNear(hits, n, r.window); !lacksTopics(near, r.needs) {
				reported = s.addSentence(r, t, hits, n, near, blocks)
			}
		}
	}
}

// checkEncodedText reports base64 text that contains instructions, after words
// about decoding.
func (s *scanner) checkEncodedText(t *source, hits []topicHit, blocks []*block) {
	from := 0
	for _, h := range hits {
		if h.topic&decodes == 0 || h.end < from || s.isRuleFull("encoded-text", t.name) {
			continue
		}
		from = min(h.end+1200, len(t.data))
		t.work += from - h.end
		m := base64Text.FindIndex(t.data[h.end:from])
		if m != nil && decodesToInstructions(string(t.data[h.end+m[0]:h.end+m[1]])) {
			severity := High
			if isMentioned(t.data, blocks, h.end+m[0]) || s.isTeaching() {
				severity = Low
			}
			s.addFindingAs("encoded-text", severity, t.position(h.end+m[0], h.end+m[1]))
		}
	}
}

var base64Text = lazyregexp.New(`(?:[A-Za-z0-9+/]{40,}\s?)+={0,2}`)

func lacksTopics(found topic, needs []topic) bool {
	return slices.ContainsFunc(needs, func(n topic) bool { return found&n == 0 })
}

// topicsNear returns the topics of words within a distance of a word, in the
// same section.
func (t *source) topicsNear(hits []topicHit, n, window int) topic {
	at := hits[n]
	if t.data[at.at] >= utf8.RuneSelf { // several bytes a letter
		window *= 2
	}
	from, to := max(0, at.at-window), min(len(t.data), at.end+window)
	if at.topic&conceals != 0 {
		from, to = at.at, max(at.end, t.concealedEnd(at))
	}
	if i := lastHeading(t.data[from:at.at]); i >= 0 {
		from += i
	}
	if i := bytes.Index(t.data[at.end:to], []byte("\n#")); i >= 0 && (i == 0 || t.data[at.end+i-1] != '`') {
		to = at.end + i
	}
	t.work += to - from
	var near topic
	for i := n; i >= 0 && hits[i].at >= from; i-- {
		near |= hits[i].topic
	}
	for i := n + 1; i < len(hits) && hits[i].end <= to; i++ {
		near |= hits[i].topic
	}
	return near
}

// concealedEnd returns the end of the comment or element that a word starts.
func (t *source) concealedEnd(h topicHit) int {
	rest := t.data[h.at:min(len(t.data), h.at+2000)]
	stop := "</"
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		stop = "-->"
	case rest[0] == '[':
		stop = "\n"
	}
	if n := bytes.Index(rest, []byte(stop)); n >= 0 {
		return h.at + n
	}
	return h.at + len(rest)
}

// lastHeading returns the offset of the last heading in text, or -1.
func lastHeading(text []byte) int { return bytes.LastIndex(text, []byte("\n#")) }

// maxLine is the number of bytes before and after a word that are searched for the ends
// of its line.
const maxLine = 4 << 10

// addSentence reports a match of a sentence rule at a word. It returns the end of the
// line.
func (s *scanner) addSentence(r *sentenceRule, t *source, hits []topicHit, n int, near topic, blocks []*block) int {
	h := hits[n]
	first, last := max(0, h.at-maxLine), min(len(t.data), h.end+maxLine)
	start := first + bytes.LastIndexByte(t.data[first:h.at], '\n') + 1
	end := h.end + lineLength(t.data[h.end:last])
	t.work += last - first
	severity := byID()[r.rule].Severity
	if r.severity > 0 {
		severity = r.severity
	}
	if t.topicsNear(hits, n, closeBytes)&negates != 0 && r.rule != "injection-remote" {
		return end
	}
	if near&warns != 0 || isInQuotes(t.data[start:end], h.at-start) || isMentioned(t.data, blocks, h.at) {
		severity = min(severity, Low)
	} else if s.isTeaching() && !isUnderSetup(t.data[:h.at]) {
		severity = min(severity, Medium)
	}
	from := start
	if h.at-start > maxExcerpt {
		from = h.at - maxExcerpt/2
	}
	s.addFindingAs(r.rule, severity, t.position(from, end))
	return end
}

// isInQuotes reports whether an offset of a line is in a quoted sentence, which
// is longer than the label of a button.
func isInQuotes(line []byte, at int) bool {
	for _, q := range [][2]string{{`"`, `"`}, {"“", "”"}, {"「", "」"}, {"«", "»"}, {"„", "“"}} {
		before, after := line[:at], line[at:]
		open, shut := bytes.LastIndex(before, []byte(q[0])), bytes.Index(after, []byte(q[1]))
		if open < 0 || shut < 0 || q[0] == q[1] && bytes.Count(before, []byte(q[0]))%2 == 0 || q[0] != q[1] && bytes.LastIndex(before, []byte(q[1])) > open {
			continue
		}
		if at+shut-open > 60 {
			return true
		}
	}
	return false
}

// isMentioned reports whether a position is in a block that the surrounding text
// warns about, or under a heading that does.
func isMentioned(data []byte, blocks []*block, at int) bool {
	for _, b := range blocks {
		if b.hasWarning != nil && b.start <= at && at < b.end && isWarning(lastLine(data[max(0, b.start-maxUnit):b.start])) {
			return true
		}
	}
	if i := lastHeading(data[max(0, at-4096):at]); i >= 0 {
		heading := data[max(0, at-4096)+i+1 : at]
		return teachingWords.Match(heading[:lineLength(heading)])
	}
	return false
}

// lastLine returns the last line of text, without that of a fence.
func lastLine(text []byte) []byte {
	for range 3 {
		text = bytes.TrimRight(text, " \n")
		i := bytes.LastIndexByte(text, '\n') + 1
		if line := text[i:]; findFence(bytes.TrimSpace(line)) == nil {
			return line
		}
		text = text[:i]
	}
	return nil
}

func isWarning(line []byte) bool { return len(line) < maxUnit && warningWords.Match(line) }

// findTopics returns the words of topics in a text, in order. full reports whether there
// are more than maxTopicHits.
func (t *source) findTopics() (out []topicHit, full bool) {
	x := topicIndex.get(newTopicIndex)
	x.matcher.findAll(t.data, func(number uint16, end int) {
		w := &x.words[number]
		at := end - len(w.text)
		if w.bounded && at > 0 && (isLetterByte(t.data[at-1]) || t.data[at-1] == '-' && isWordByte(w.text[0])) || w.exact && end < len(t.data) && isLetterByte(t.data[end]) {
			return
		}
		if full = len(out) == maxTopicHits; full {
			return
		}
		hit := topicHit{at, end, w.topic}
		if w.topic == outside {
			if hit.topic, hit.end = t.classifyAddress(end); hit.topic == 0 {
				return
			}
		}
		out = append(out, hit)
	})
	out = withHiding(out)
	slices.SortStableFunc(out, func(a, b topicHit) int { return a.at - b.at })
	return out, full
}

// withHiding adds the topic hides to words about telling that follow a
// negation, as in "no la menciones nunca".
func withHiding(hits []topicHit) []topicHit {
	last := -100
	for i := range hits {
		switch h := &hits[i]; {
		case h.topic&negations != 0:
			last = h.end
		case h.topic&tells != 0 && h.at-last < 24:
			h.topic |= hides
		}
	}
	return hits
}

// classifyAddress returns the topics of the address whose scheme ends at an
// offset, and where the address ends.
func (t *source) classifyAddress(at int) (topic, int) {
	rest := t.data[at:min(len(t.data), at+300)]
	n := bytes.IndexAny(rest, " \t\r\n\"'`<>()[]{}|，。、）」”")
	if n < 0 {
		n = len(rest)
	}
	address := strings.ToLower(string(rest[:n]))
	host, file := address, ""
	if i := strings.IndexAny(address, "/?#"); i >= 0 {
		host, file = address[:i], address[i+1:]
	}
	host, _, _ = strings.Cut(host, ":")
	if !strings.Contains(host, ".") || isIdentifierHost(host) || isPrivateHost(host) {
		return 0, at + n
	}
	found := topic(0)
	if !isKnownHost(host) {
		found = outside
	}
	file, _, _ = strings.Cut(file, "?")
	file = strings.TrimRight(file, ".,;:*_")
	for _, ext := range foreignExtensions {
		if strings.HasSuffix(file, ext) {
			found |= foreignFile | programs
		}
	}
	return found, at + n
}

var foreignExtensions = []string{".exe", ".msi", ".dmg", ".pkg", ".zip", ".7z", ".rar", ".scr", ".bat", ".ps1", ".appimage", ".command", ".tar.gz", ".tgz", ".run", ".bin", ".deb", ".rpm", ".jar", ".whl"}

// isKnownHost reports whether a host belongs to a vendor that readers know.
func isKnownHost(host string) bool {
	known := knownDomains.get(func() map[string]bool { return setOf(vendorDomains) })
	for domain := host; strings.Contains(domain, "."); {
		if known[domain] {
			return true
		}
		_, domain, _ = strings.Cut(domain, ".")
	}
	return false
}

var knownDomains lazy[map[string]bool]

// vendorDomains lists domains of well-known vendors on which only they publish.
const vendorDomains = `amazon.com anthropic.com apple.com astral.sh atlassian.com azure.com brew.sh bun.sh chatgpt.com claude.ai claude.com cloudflare.com cursor.com cursor.sh debian.org deno.com deno.land
	discord.com docker.com docker.io elastic.co electronjs.org ffmpeg.org figma.com firefox.com fly.io gitlab.com gnu.org go.dev golang.org google.com hashicorp.com heroku.com imagemagick.org intel.com
	jetbrains.com k8s.io kernel.org kubernetes.io linux.org microsoft.com mozilla.org mysql.com netlify.com nodejs.org notion.com notion.so npmjs.com npmjs.org nvidia.com obsidian.md ollama.ai ollama.com
	openai.com oracle.com pnpm.io postgresql.org postman.com pypi.org python.org pytorch.org redis.io ruby-lang.org rust-lang.org rustup.rs sentry.io slack.com stripe.com supabase.com telegram.org
	terraform.io ubuntu.com vercel.com visualstudio.com wikimedia.org wikipedia.org yarnpkg.com zoom.us`

func setOf(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

// topics is the index of the words of topics.
type topics struct {
	matcher *wordMatcher
	words   []topicWord
}

var topicIndex lazy[*topics]

func newTopicIndex() *topics {
	x := &topics{words: listTopicWords()}
	var list []string
	for _, w := range x.words {
		list = append(list, w.text)
	}
	x.matcher = newWordMatcher(list)
	return x
}
