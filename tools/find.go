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
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Query selects tools for a search. The zero value selects all tools of the
// user's servers, of active skills and of approved skills whose tools are known.
type Query struct {
	Text   string // search text; "" selects all
	Skill  string // only tools of this skill: a name, [catalog.Entry.Key] or digest; "" for any
	Server string // only tools of this server; "" for any
}

// ToolList is a list of tools from several servers.
type ToolList struct {
	Tools    []Tool
	Problems []string // reasons why tools are missing, for the model and the user
	// Servers describes the searched servers if a search found no tool, or the
	// server that [Query.Server] names. Instructions are those of that server,
	// as the server wrote them.
	Servers      []ServerSummary
	Instructions string
}

// maxConcurrentLists is the maximum number of servers that a search lists
// concurrently.
const maxConcurrentLists = 4

// unknownServerWait is the time that a search waits for servers with unknown
// tools if some tools are known. The servers continue to connect in the
// background.
const unknownServerWait = 3 * time.Second

// Find searches for tools. It knows the tools of unconnected servers if an
// earlier process listed them. Otherwise it connects to these servers, at most
// four at a time. It waits for them up to [Options.Deadline], but only three
// seconds if the tools of another server are known. The best match is first;
// tools of working servers precede the others.
//
// A failing server is a problem in the result, not an error. A search with a
// [Query.Text] reports only problems of relevant servers: those with a tool in the
// result, and those named by the query's Text, Skill or Server. Find returns an error
// if the skill or the server is unknown, or if only users may load the skill. An
// unknown skill is a [*catalog.NotFoundError].
func (s *Set) Find(ctx context.Context, q Query) (*ToolList, error) {
	out := &ToolList{}
	var servers []*server
	if q.Skill != "" {
		e, err := s.rt.Catalog().Resolve(ctx, q.Skill)
		if err == nil && e.DisableModelInvocation {
			err = fmt.Errorf("skill %s can only be started by users, not by a model", e.Name)
		}
		if err != nil {
			return nil, err
		}
		servers, out.Problems = s.serversOf(ctx, e)
	} else {
		s.OpenPermittedServers(ctx)
		servers = slices.DeleteFunc(s.allServers(), s.isUnusedSkillServer)
	}
	if q.Server != "" {
		servers = slices.DeleteFunc(servers, func(sv *server) bool { return sv.name != q.Server })
		if len(servers) == 0 {
			return nil, &unknownServerError{Name: q.Server, Names: s.serverNames()}
		}
	}
	all, problems := s.listTools(ctx, servers)
	out.Tools = rankTools(all, q.Text)
	for i, sv := range servers {
		if problems[i] != "" && (q.Skill != "" || q.Server != "" || isRelated(sv, out.Tools, q.Text)) {
			out.Problems = append(out.Problems, problems[i])
		}
	}
	switch {
	case q.Server != "":
		out.Servers = s.summarize(servers)
		if sv := servers[0]; sv.Server != nil {
			if l := sv.LastListing(); l != nil {
				out.Instructions = l.Instructions
			}
		}
	case q.Skill == "" && len(out.Tools) == 0:
		out.Servers = s.summarize(servers)
	}
	return out, nil
}

// isRelated reports whether a search for text concerns a server: the search
// is for all tools, has found a tool of the server, or contains a word of the
// server's name.
func isRelated(sv *server, found []Tool, text string) bool {
	asked := nameWords(text)
	return len(asked) == 0 || slices.ContainsFunc(found, func(t Tool) bool { return t.server == sv }) ||
		slices.ContainsFunc(nameWords(sv.name), func(w string) bool { return slices.Contains(asked, w) })
}

// unknownServerError reports that there is no server with the given name.
type unknownServerError struct {
	Name  string
	Names []string // names of the known servers
}

func (e *unknownServerError) Error() string {
	if len(e.Names) == 0 {
		return "MCP server " + e.Name + " not found: none is configured"
	}
	const most = 20
	shown, more := e.Names[:min(len(e.Names), most)], ""
	if rest := len(e.Names) - len(shown); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	return "MCP server " + e.Name + " not found; known servers: " + strings.Join(shown, ", ") + more
}

func (s *Set) serverNames() []string {
	var out []string
	for _, sv := range s.allServers() {
		out = append(out, sv.name)
	}
	return out
}

// listTools returns the tools of servers and, for each server, its problem or
// "". It connects only to servers whose tools are unknown.
func (s *Set) listTools(ctx context.Context, servers []*server) ([]Tool, []string) {
	patience := s.opts.Deadline
	if slices.ContainsFunc(servers, func(sv *server) bool { return sv.Server != nil && sv.LastListing() != nil }) {
		patience = min(patience, unknownServerWait) // known tools must not wait for slow servers
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type answer struct {
		tools   []Tool
		problem string
	}
	answers := make([]answer, len(servers))
	places := make(chan struct{}, maxConcurrentLists)
	var running sync.WaitGroup
	for i, sv := range servers {
		if sv.Server != nil && sv.LastListing() != nil {
			answers[i].tools = s.knownTools(sv)
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
	problems := make([]string, len(servers))
	for i, a := range answers {
		all = append(all, a.tools...)
		problems[i] = a.problem
	}
	return all, problems
}

// rankTools sorts tools by relevance to text and drops irrelevant ones. If text
// is empty, it keeps the order. Usable tools precede others.
func rankTools(all []Tool, text string) []Tool {
	if strings.TrimSpace(text) != "" {
		index := bm25.New(func(yield func(bm25.Doc) bool) {
			for _, t := range all {
				if !yield(searchDoc(t)) {
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
	slices.SortStableFunc(all, func(a, b Tool) int { return stateRank(a) - stateRank(b) })
	return all
}

// stateRank returns 0 for a tool that is usable or was not tried, and a higher
// rank for an unusable tool.
func stateRank(t Tool) int {
	switch t.State {
	case upstream.Degraded:
		return 1
	case upstream.Dead:
		return 2
	}
	return 0
}

// Alternatives returns up to three tools that are similar to the named one and
// usable or untried. Tools of connected servers come first. If the named tool's
// server is down, its other tools are omitted. Alternatives does not connect.
func (s *Set) Alternatives(name string) []Tool {
	var all []Tool
	like := &Tool{Definition: &mcp.Tool{Name: name}}
	for _, sv := range s.allServers() {
		for _, t := range s.knownTools(sv) {
			if t.Name == name {
				like = &t
			} else if stateRank(t) == 0 {
				all = append(all, t)
			}
		}
	}
	all = slices.DeleteFunc(all, func(t Tool) bool {
		return t.Server == like.Server && stateRank(*like) > 0 || !areSimilar(t.Definition, like.Definition)
	})
	fit := rankTools(all, like.Definition.Name+" "+like.Definition.Description)
	slices.SortStableFunc(fit, func(a, b Tool) int { return readyRank(b) - readyRank(a) })
	return fit[:min(len(fit), 3)]
}

func readyRank(t Tool) int {
	if t.State == upstream.Ready {
		return 1
	}
	return 0
}

// areSimilar reports whether two tools seem to do similar things. That is the
// case if one tool's name or description contains most words of the shorter
// name.
func areSimilar(a, b *mcp.Tool) bool {
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

// words returns the lower-case words of text.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func searchDoc(t Tool) bm25.Doc {
	d := t.Definition
	words := strings.NewReplacer("_", " ", "-", " ", ".", " ")
	return bm25.Doc{Name: words.Replace(d.Name), Description: strings.TrimSpace(d.Title + " " + d.Description), Tags: []string{t.Server}}
}

// maxTried is the maximum number of skills whose servers findTool connects to.
const maxTried = 5

// findTool returns the tool with the given name. If a skill that is not loaded
// may have it, findTool connects the skill's servers.
func (s *Set) findTool(ctx context.Context, name string) (*Tool, []string) {
	for _, sv := range s.allServers() {
		if t := s.knownTool(sv, name); t != nil {
			return t, nil
		}
	}
	var problems []string
	tried := 0
	ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
	defer cancel()
	for _, sv := range s.allServers() { // servers that were not listed yet or whose tools changed
		if !upstream.MatchesServer(sv.name, name) || sv.skill != "" {
			continue
		}
		_, problem := s.connect(ctx, sv)
		if problem != "" {
			problems = append(problems, problem)
		}
		if t := s.knownTool(sv, name); t != nil {
			return t, nil
		}
	}
	for _, e := range s.rt.Catalog().Snapshot().ForModel() {
		if !upstream.MatchesServer(e.Name, name) || tried == maxTried {
			continue
		}
		tried++
		b := s.connectSkills(ctx, []*catalog.Entry{e})
		for _, sv := range s.allServers() {
			if sv.group == nil || sv.group.key != e.Key() {
				continue
			}
			if t := s.knownTool(sv, name); t != nil {
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

// OpenPermittedServers opens the servers of permitted skills that are not
// loaded, so that searches find the tools listed by earlier processes. It does
// not connect to them, skips skills without approval, and considers at most 100
// skills. [Set.Find] and [Set.Capabilities] call it.
func (s *Set) OpenPermittedServers(ctx context.Context) {
	asked := 0
	for _, e := range s.rt.Catalog().Snapshot().ForModel() {
		if !e.ProvidesTools || s.hasGroup(e.Key()) {
			continue
		}
		if asked++; asked > maxRecalled || ctx.Err() != nil {
			return
		}
		if s.access.isPermitted(ctx, e) {
			s.serversOf(ctx, e)
		}
	}
}

// maxRecalled is the maximum number of skills that are not loaded but
// considered by a search.
const maxRecalled = 100

// isUnusedSkillServer reports whether a server with unknown tools belongs to a
// skill that is not loaded. A search does not start such servers.
func (s *Set) isUnusedSkillServer(sv *server) bool {
	if sv.group == nil || sv.Server == nil || sv.LastListing() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.persistent[sv.group.key] && len(s.conversations[sv.group.key]) == 0
}

func (s *Set) hasGroup(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[key] != nil
}
