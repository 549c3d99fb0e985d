package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/upstream"
)

// Query asks for tools.
type Query struct {
	Text   string // what they are for; "" is all
	Skill  string // only those that this skill brings
	Server string // only those of this server
}

// Found is what came of a search.
type Found struct {
	Tools    []Tool   // best first, ready ones before the others
	Problems []string // what kept tools out of it
}

// listAtOnce is how many servers are asked at a time for tools that nobody knows
// yet.
const listAtOnce = 4

// knownPatience is how long a search waits for servers of which nothing is known,
// where tools of others are. They go on connecting.
const knownPatience = 3 * time.Second

// Find finds tools. Those of servers that were never connected are known from
// earlier processes; a server of which nothing is known is connected and asked,
// within the deadline of the set.
func (s *Set) Find(ctx context.Context, q Query) (*Found, error) {
	out := &Found{}
	var servers []*server
	if q.Skill != "" {
		e, err := s.opts.Skills.Catalog().Resolve(ctx, q.Skill)
		if err == nil && e.DisableModelInvocation {
			err = fmt.Errorf("skill %s is for people to start, not for a model", e.Name)
		}
		if err != nil {
			return nil, err
		}
		servers, out.Problems = s.serversOf(ctx, e)
	} else {
		s.Recall(ctx)
		servers = slices.DeleteFunc(s.all(), s.unasked)
	}
	if q.Server != "" {
		servers = slices.DeleteFunc(servers, func(sv *server) bool { return sv.name != q.Server })
		if len(servers) == 0 {
			return nil, &NoServerError{Name: q.Server, Near: s.names()}
		}
	}
	all, problems := s.list(ctx, servers)
	out.Problems = append(out.Problems, problems...)
	out.Tools = rank(all, q.Text)
	return out, nil
}

// NoServerError says that there is no server of a name.
type NoServerError struct {
	Name string
	Near []string // names that there are
}

func (e *NoServerError) Error() string {
	if len(e.Near) == 0 {
		return "there is no MCP server " + e.Name + ": none is configured"
	}
	return "there is no MCP server " + e.Name + "; there are " + strings.Join(e.Near, ", ")
}

func (s *Set) names() []string {
	var out []string
	for _, sv := range s.all() {
		out = append(out, sv.name)
	}
	return out
}

// list are the tools of servers; those of which nothing is known are asked.
func (s *Set) list(ctx context.Context, servers []*server) ([]Tool, []string) {
	patience := s.opts.Deadline
	if slices.ContainsFunc(servers, func(sv *server) bool { return sv.Server != nil && sv.Known() != nil }) {
		patience = min(patience, knownPatience) // what is known is not kept waiting for what is slow
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type answer struct {
		tools   []Tool
		problem string
	}
	answers := make([]answer, len(servers))
	places := make(chan struct{}, listAtOnce)
	var running sync.WaitGroup
	for i, sv := range servers {
		if sv.Server != nil && sv.Known() != nil {
			answers[i].tools = s.tools(sv)
			if st := sv.Status(); st.State == upstream.Degraded || st.State == upstream.Dead {
				answers[i].problem = fmt.Sprintf("MCP server %s is %s: %s", sv.name, st.State, st.Error)
			}
			continue
		}
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			answers[i].tools, answers[i].problem = s.connect(ctx, sv)
		})
	}
	running.Wait()
	var all []Tool
	var problems []string
	for _, a := range answers {
		all = append(all, a.tools...)
		if a.problem != "" {
			problems = append(problems, a.problem)
		}
	}
	return all, problems
}

// rank orders tools by how well they fit, and drops what does not; without a
// text the order stays. What works comes before what does not.
func rank(all []Tool, text string) []Tool {
	if strings.TrimSpace(text) != "" {
		index := bm25.New(func(yield func(bm25.Doc) bool) {
			for _, t := range all {
				if !yield(doc(t)) {
					return
				}
			}
		})
		var fit []Tool
		for _, h := range index.Search(text, len(all)) {
			fit = append(fit, all[h.Doc])
		}
		all = fit
	}
	slices.SortStableFunc(all, func(a, b Tool) int { return usable(a) - usable(b) })
	return all
}

// usable is 0 for a tool that works or has not been tried, more the less it does.
func usable(t Tool) int {
	switch t.State {
	case upstream.Degraded:
		return 1
	case upstream.Dead:
		return 2
	}
	return 0
}

// Alternatives are at most three tools of servers that work, or were not tried, and
// that are like one that does not work: those of connected servers first.
func (s *Set) Alternatives(name string) []Tool {
	var all []Tool
	like := &Tool{Definition: &mcp.Tool{Name: name}}
	for _, sv := range s.all() {
		for _, t := range s.tools(sv) {
			if t.Name == name {
				like = &t
			} else if usable(t) == 0 {
				all = append(all, t)
			}
		}
	}
	all = slices.DeleteFunc(all, func(t Tool) bool {
		return t.Server == like.Server && usable(*like) > 0 || !alike(t.Definition, like.Definition)
	})
	fit := rank(all, like.Definition.Name+" "+like.Definition.Description)
	slices.SortStableFunc(fit, func(a, b Tool) int { return ready(b) - ready(a) })
	return fit[:min(len(fit), 3)]
}

func ready(t Tool) int {
	if t.State == upstream.Ready {
		return 1
	}
	return 0
}

// alike says whether two tools do something of the same kind: most words of the
// shorter of their names are in the other, or in what that says of itself.
func alike(a, b *mcp.Tool) bool {
	few, other := words(a.Name), b
	if more := words(b.Name); len(more) < len(few) {
		few, other = more, a
	}
	have := words(other.Name + " " + other.Title + " " + other.Description)
	common := 0
	for _, w := range few {
		if slices.Contains(have, w) {
			common++
		}
	}
	return len(few) > 0 && 2*common > len(few)
}

// words are those of a text, in small letters.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func doc(t Tool) bm25.Doc {
	d := t.Definition
	words := strings.NewReplacer("_", " ", "-", " ", ".", " ")
	return bm25.Doc{Name: words.Replace(d.Name), Description: strings.TrimSpace(d.Title + " " + d.Description), Tags: []string{t.Server}}
}

// maxTried bounds the skills that are asked to bring a tool.
const maxTried = 5

// find returns the tool of a name. Where it is of a skill that was not loaded
// here, the skill is asked to bring it.
func (s *Set) find(ctx context.Context, name string) (*Tool, []string) {
	for _, sv := range s.all() {
		if t := s.known(sv, name); t != nil {
			return t, nil
		}
	}
	var problems []string
	tried := 0
	ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
	defer cancel()
	for _, sv := range s.all() { // of one that was not asked yet, or has changed
		if !upstream.MayHave(sv.name, name) || sv.skill != "" {
			continue
		}
		_, problem := s.connect(ctx, sv)
		if problem != "" {
			problems = append(problems, problem)
		}
		if t := s.known(sv, name); t != nil {
			return t, nil
		}
	}
	for _, e := range s.opts.Skills.Catalog().Snapshot().Offered() {
		if !upstream.MayHave(e.Name, name) || tried == maxTried {
			continue
		}
		tried++
		b := s.bringAll(ctx, []*catalog.Entry{e})
		for _, sv := range s.all() {
			if sv.bundle == nil || sv.bundle.key != e.Key() {
				continue
			}
			if t := s.known(sv, name); t != nil {
				return t, nil
			}
		}
		for _, p := range b.Problems {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	return nil, problems
}

// Recall makes known the servers of skills that may bring theirs and were not
// loaded here, so that their tools are found in what earlier processes listed. It
// connects nothing, and passes over skills that nobody approved.
func (s *Set) Recall(ctx context.Context) {
	if s.opts.Permits == nil {
		return
	}
	asked := 0
	for _, e := range s.opts.Skills.Catalog().Snapshot().Offered() {
		if !e.Brings || s.has(e.Key()) {
			continue
		}
		if asked++; asked > maxRecalled || ctx.Err() != nil {
			return
		}
		if s.opts.Permits(ctx, e) {
			s.serversOf(ctx, e)
		}
	}
}

// maxRecalled bounds the skills that one search asks policy about.
const maxRecalled = 100

// unasked says whether a server is of a skill that nobody has loaded, and nothing
// is known of its tools: a search does not start it.
func (s *Set) unasked(sv *server) bool {
	if sv.bundle == nil || sv.Server == nil || sv.Known() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.shared[sv.bundle.key] && len(s.holders[sv.bundle.key]) == 0
}

func (s *Set) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.brought[key] != nil
}
