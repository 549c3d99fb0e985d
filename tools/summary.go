package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// ServerSummary describes a server to a model that chooses among servers. Each
// of its strings is a single line without hidden characters or prompt
// delimiters.
type ServerSummary struct {
	Name    string `json:"name"`
	Project bool   `json:"project,omitempty"` // whether a project defines the server
	Shared  bool   `json:"shared,omitempty"`  // whether [Options.Shared] reports the server
	// Purpose is what the server is for, from its configuration or, for the
	// user's own servers, from what the server says about itself. It may be "".
	Purpose string `json:"purpose,omitempty"`
	// Topics are the words that most tools are about, most frequent first.
	Topics []string `json:"topics,omitempty"`
	// Tools is the number of tools that are visible to an agent, or -1 if they
	// are unknown. Examples are up to three of their names, without the name of
	// the server.
	Tools    int      `json:"tools"`
	Examples []string `json:"examples,omitempty"`
	// Problem says why the tools are unknown or do not work, or is "".
	Problem string `json:"problem,omitempty"` // not stored
}

// cachedSummary is a summary with the data from which it was computed.
type cachedSummary struct {
	listing  *upstream.Listing // nil if the tools are unknown, or known only to the cache
	screened *screened         // nil if key identifies the accepted definitions
	key      string
	ServerSummary
}

// Summaries describes the user's servers and those of the profile, in the order
// of the configuration. It uses the tool lists that are known and never
// connects. The caller must not modify the results.
func (s *Set) Summaries() []ServerSummary {
	s.mu.Lock()
	own := slices.Clone(s.own)
	s.mu.Unlock()
	return s.summarize(own)
}

// ConfiguredSummaries is like [Set.Summaries], but describes only what the
// configuration says, which is the same on all nodes of a hub.
func (s *Set) ConfiguredSummaries() []ServerSummary {
	s.mu.Lock()
	own := slices.Clone(s.own)
	s.mu.Unlock()
	out := make([]ServerSummary, 0, len(own))
	for _, sv := range own {
		out = append(out, s.describeServer(sv, nil))
	}
	return out
}

func (s *Set) summarize(servers []*server) []ServerSummary {
	out := make([]ServerSummary, 0, len(servers))
	denied := denials(s.rules.Load().Denials())
	for _, sv := range servers {
		out = append(out, s.summary(sv, denied))
	}
	return out
}

// summary describes a server. Everything except its problem is cached, and
// stored with the tool list, so that a later process need not read that list.
func (s *Set) summary(sv *server, denied string) ServerSummary {
	out := s.summaryWithoutProblem(sv, denied)
	if sv.Server == nil {
		out.Problem = upstream.JoinUnset(sv.unset)
	} else if state, err := sv.Failure(); err != nil && (state == upstream.Dead || state == upstream.Degraded) {
		out.Problem = err.Error()
	}
	out.Problem = cutWords(untrusted.New(out.Problem).ForModel(), maxProblem)
	return out
}

// summaryWithoutProblem returns the summary of a server, except for
// [ServerSummary.Problem].
func (s *Set) summaryWithoutProblem(sv *server, denied string) ServerSummary {
	var now cachedSummary
	storable := false
	if sv.Server != nil {
		if now.key, storable = s.summaryKey(summaryVersion, sv, denied); storable {
			now.listing = sv.LoadedListing()
		} else if now.listing = sv.LastListing(); now.listing != nil {
			now.screened = s.screenListing(sv, now.listing)
		}
	}
	if have := sv.summary.Load(); have != nil && have.listing == now.listing && have.screened == now.screened && have.key == now.key {
		return have.ServerSummary
	}
	if !storable || !s.readSummary(sv, &now) {
		if storable {
			now.listing = sv.LastListing()
			if s.isStrict(sv) {
				sv.screened.Store(nil) // it may be older than the key
			}
		}
		now.ServerSummary = s.describeServer(sv, now.listing)
		if storable && now.listing != nil {
			if sc := s.screenListing(sv, now.listing); !sc.until.IsZero() && len(sc.quarantined) == 0 {
				return now.ServerSummary // the accepted definitions are unreadable for now
			}
			key := now.key
			if !slices.ContainsFunc(now.listing.Tools, func(t *mcp.Tool) bool { return strings.Contains(t.Name, ".") || strings.Contains(t.Name, "__") }) {
				key, _ = s.plainSummaryKey(summaryVersion, sv)
			}
			if data, err := json.Marshal(now.ServerSummary); err == nil {
				sv.SetSummary(now.listing, key, data)
			}
		}
	}
	sv.summary.Store(&now)
	return now.ServerSummary
}

// readSummary reads the stored summary of a server into now. It reports whether
// there is one.
func (s *Set) readSummary(sv *server, now *cachedSummary) bool {
	plain, _ := s.plainSummaryKey(summaryVersion, sv)
	for _, key := range []string{plain, now.key} {
		var stored ServerSummary
		if json.Unmarshal(sv.Summary(key), &stored) == nil {
			now.ServerSummary = stored
			return true
		}
	}
	return false
}

// summaryVersion is the version of the stored summaries. Increase it if
// describeServer starts to describe the same server differently.
const summaryVersion = 1

// summaryKey returns a digest of everything that determines the summary of a
// server, except the tool list. denied is a result of [denials]. ok is false if
// the summary also depends on accepted definitions that have no digest.
func (s *Set) summaryKey(version int, sv *server, denied string) (key string, ok bool) {
	c, accepted := sv.config, ""
	if s.pins != nil && s.isStrict(sv) {
		files, isFiles := s.pins.(*pinFiles)
		if !isFiles {
			return denied, false
		}
		accepted = files.stamp(c.Digest())
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %t %t %q %q", version, sv.name, c.Owner, c.Description, s.isShared(sv), s.isStrict(sv), accepted, denied))
	return hex.EncodeToString(sum[:16]), true
}

// plainSummaryKey returns the key under which a summary is stored if the names
// of the server's tools contain neither "." nor "__". It does not depend on
// rules for other servers.
func (s *Set) plainSummaryKey(version int, sv *server) (key string, ok bool) {
	return s.summaryKey(version, sv, "for the server: "+denials(s.rules.Load().DenialsFor(sv.name)))
}

// isShared reports whether someone other than the user configured a server.
func (s *Set) isShared(sv *server) bool { return s.opts.Shared != nil && s.opts.Shared(sv.config) }

// denials returns a string that identifies the denying rules in r.
func denials(r policy.Rules) string {
	return fmt.Sprintf("%q %s", r.List(), r.Decide(policy.ToolCall{}).Code) // unreadable rules deny everything
}

// Limits on a summary, in bytes unless noted otherwise.
const (
	maxPurpose = 160
	maxProblem = 200
	maxTopics  = 24 // number of words
)

func (s *Set) describeServer(sv *server, l *upstream.Listing) ServerSummary {
	out := ServerSummary{Name: untrusted.New(sv.name).ForModel(), Project: sv.config.Owner == upstream.ProjectOwner, Shared: s.isShared(sv), Tools: -1}
	out.Purpose = cutWords(firstSentence(sv.config.Description), maxPurpose)
	if l == nil {
		return out
	}
	if out.Purpose == "" && !s.isStrict(sv) { // what a strict server says may have changed since its tools were accepted
		for _, said := range []string{l.Description, l.Title, l.Instructions} {
			if said = firstSentence(said); !isGeneric(said, sv.name) {
				out.Purpose = cutWords(said, maxPurpose)
				break
			}
		}
	}
	all := s.listedTools(sv, l)
	out.Tools = len(all)
	names, texts := make([]string, len(all)), make([]string, len(all))
	for i, t := range all {
		names[i], texts[i] = strings.TrimPrefix(t.Name, sv.name+"__"), firstSentence(t.Definition.Title)+" "+firstSentence(t.Definition.Description)
	}
	out.Topics, out.Examples = topicsOf(sv.name, names, texts)
	return out
}

// firstSentence returns the first sentence of an untrusted text.
func firstSentence(text string) string {
	if len(text) > 600 {
		text = text[:600]
	}
	text = strings.TrimLeft(untrusted.New(strings.ToValidUTF8(text, "")).ForModelLines(), " \t\n#*-")
	text, _, _ = strings.Cut(text, "\n")
	for i := range text {
		if end := strings.HasPrefix(text[i:], ". ") || strings.HasPrefix(text[i:], "! ") || strings.HasPrefix(text[i:], "。"); end && i > 12 {
			text = text[:i]
			break
		}
	}
	return strings.TrimRight(untrusted.New(text).ForModel(), ".:;, ")
}

// cutWords truncates s to n bytes at the end of a word.
func cutWords(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = strings.ToValidUTF8(s[:n-len("…")], "")
	if i := strings.LastIndexByte(s, ' '); i > n/2 {
		s = s[:i]
	}
	return strings.TrimRight(s, ".:;, ") + "…"
}

// isGeneric reports whether text says no more about a server than its name
// does.
func isGeneric(text, name string) bool {
	known := append(nameWords(name), nameWords(strings.ToLower(name))...)
	says := func(w string) bool { return !slices.Contains(known, w) && !commonWords()[w] }
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return !slices.ContainsFunc(strings.FieldsFunc(text, between), func(word string) bool { // GitHub is one word
		return slices.ContainsFunc(nameWords(strings.ToLower(word)), says) && slices.ContainsFunc(nameWords(word), says)
	})
}

// isHash reports whether a word looks like a digest or an identifier that a
// program generated.
func isHash(w string) bool {
	hex := strings.Trim(w, "0123456789abcdef") == ""
	return len(w) > 24 || len(w) >= 6 && hex && strings.ContainsAny(w, "0123456789")
}

// topicsOf returns the most common words in the names and texts of a server's
// tools, and the names of three tools that together cover many of them.
func topicsOf(server string, names, texts []string) (topics, examples []string) {
	weight := map[string]int{}
	var order []string
	count := func(words []string, n int) []string {
		slices.Sort(words)
		words = slices.Compact(words)
		for _, w := range words {
			if weight[w] == 0 {
				order = append(order, w)
			}
			weight[w] += n
		}
		return words
	}
	ownWords := nameWords(server)
	subjects := func(text string) []string {
		return slices.DeleteFunc(nameWords(text), func(w string) bool {
			return commonWords()[w] || len(w) < 3 || isHash(w) || slices.Contains(ownWords, w)
		})
	}
	type tool struct {
		name     string
		subjects []string // without repetitions
		words    []string
	}
	left := make([]tool, len(names))
	for i := range names {
		left[i] = tool{names[i], count(subjects(names[i]), 2), nameWords(names[i])}
		count(subjects(texts[i]), 1)
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(weight[b], weight[a]) })
	shown := map[string]bool{}
	for len(examples) < 3 && len(left) > 0 {
		best, most := 0, -1.0
		for i, t := range left {
			sum := 0
			for _, w := range t.subjects {
				if !shown[w] {
					sum += weight[w]
				}
			}
			if score := float64(sum) / float64(1+len(t.words)); score > most {
				best, most = i, score
			}
		}
		for _, w := range left[best].words {
			shown[w] = true
		}
		examples = append(examples, cutWords(left[best].name, upstream.MaxToolName))
		left = slices.Delete(left, best, best+1)
	}
	for _, w := range order {
		if !shown[w] && len(topics) < maxTopics {
			topics = append(topics, w)
		}
	}
	return topics, examples
}

// nameWords returns the words of a name or of other text, in lower case and in
// the singular. It also splits names at capital letters.
func nameWords(text string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, singular(strings.ToLower(string(word))))
		}
		word = word[:0]
	}
	lower := false
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && lower:
			end()
			word = append(word, r)
		default:
			word = append(word, r)
		}
		lower = unicode.IsLower(r)
	}
	end()
	return out
}

// singular converts most English plurals to the singular.
func singular(w string) string {
	switch {
	case len(w) < 4 || strings.HasSuffix(w, "ss") || strings.HasSuffix(w, "us") || strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "xes"):
		return w[:len(w)-2]
	}
	return strings.TrimSuffix(w, "s")
}

// commonWords are words that say little about what a tool is for.
var commonWords = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`a about above action add additional after agent all allow also an and another any api app apply are argument as at available
based be before between both but by call can case change check client complete configured contain context create current custom data default delete
describe detail detailed different do does each either enable etc every exact example existing false field find first follow following for format from
full get give given handle has have help her his how id identifier if important in include including info information input insert instead integration interact into is it
item its just key kind last latest least level like limit list local long make manage many match matching mcp method mode model more most multiple must name
need new no not note number object of offer official on one only operation option optional or other our out output over own parameter part
particular per perform please possible prefer provide read ref related remote remove replace request require required response result retrieve return run same
search see select server service set should show simple single size some specific specified specify start stop string such support that the their them then there
these they this through time to tool true type unless until up update url use used useful user using valid value various via view want was way
we well what when where whether which while who will with within without work would write you your`) {
		out[w] = true
	}
	return out
})
