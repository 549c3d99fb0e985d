package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Maximum sizes of a tool list.
const (
	MaxTools      = 10_000
	MaxDefinition = 1 << 20  // bytes of a tool as JSON
	MaxListing    = 16 << 20 // bytes of all tools as JSON
	// MaxDescription is the maximum length of a tool description in bytes.
	// Longer descriptions are truncated.
	MaxDescription = 64 << 10
	// MaxAbout is the maximum length in bytes of the title and of the
	// description of a server, and MaxInstructions that of its instructions.
	// Longer text is truncated.
	MaxAbout        = 1 << 10
	MaxInstructions = 16 << 10
	maxPages        = 1000
	maxProblems     = 20
)

// relistAfter is the age at which a listing without a TTL is refreshed.
const relistAfter = 5 * time.Minute

type listError struct{ err error }

func (e *listError) Error() string { return "list tools: " + e.err.Error() }
func (e *listError) Unwrap() error { return e.err }

type checkError struct{ err error }

func (e *checkError) Error() string { return "no answer to health checks: " + e.err.Error() }
func (e *checkError) Unwrap() error { return e.err }

// list reads all pages of the tool list from a connection. It omits or
// truncates tools that exceed the limits and reports them as problems.
func (s *Server) list(ctx context.Context, conn *Conn) (*Listing, error) {
	l := &Listing{At: time.Now(), Era: conn.Era}
	r := conn.InitializeResult()
	l.Instructions = cutText(r.Instructions, MaxInstructions)
	if info := r.ServerInfo; info != nil {
		l.Title, l.Description = cutText(info.Title, MaxAbout), cutText(info.Description, MaxAbout)
	}
	if r.Capabilities == nil || r.Capabilities.Tools == nil {
		return l, nil
	}
	problem := func(format string, args ...any) {
		if len(l.Problems) < maxProblems {
			l.Problems = append(l.Problems, fmt.Sprintf(format, args...))
		}
	}
	seen := map[string]bool{}
	cursors := map[string]bool{}
	params := &mcp.ListToolsParams{}
	total := 0
pages:
	for page := range maxPages {
		res, err := conn.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		if page == 0 {
			for _, reported := range reportedProblems(res.Meta) {
				problem("%s", reported)
			}
			l.TTL = time.Duration(min(res.GetTTLMs(), int(24*time.Hour/time.Millisecond))) * time.Millisecond
		}
		for _, t := range res.Tools {
			switch {
			case t == nil || t.Name == "":
				problem("tool without a name omitted")
				continue
			case seen[t.Name]:
				problem("duplicate tool %q ignored", truncate(t.Name, 100))
				continue
			case !s.config.selectsTool(t.Name):
				continue
			case len(l.Tools) >= MaxTools:
				problem("too many tools (limit %d)", MaxTools)
				continue
			}
			if len(t.Description) > MaxDescription {
				problem("description of tool %q truncated (limit %d bytes)", truncate(t.Name, 100), MaxDescription)
				cut := *t // copy, because the SDK still uses the original
				cut.Description = cutText(t.Description, MaxDescription)
				t = &cut
			}
			data, err := json.Marshal(t)
			if err != nil || len(data) > MaxDefinition {
				problem("tool %q omitted: definition too large (limit %d bytes)", truncate(t.Name, 100), MaxDefinition)
				continue
			}
			if total += len(data); total > MaxListing {
				// Always report this, because later tools are missing.
				l.Problems = append(l.Problems, fmt.Sprintf("definitions too large (limit %d bytes): %q and later tools omitted", MaxListing, truncate(t.Name, 100)))
				break pages
			}
			seen[t.Name] = true
			l.Tools = append(l.Tools, t)
		}
		if res.NextCursor == "" || cursors[res.NextCursor] || len(l.Tools) >= MaxTools {
			break
		}
		cursors[res.NextCursor] = true
		params = &mcp.ListToolsParams{Cursor: res.NextCursor}
	}
	for _, name := range s.config.Tools {
		if !seen[name] && s.config.selectsTool(name) && total <= MaxListing {
			problem("configured tool %q is missing", truncate(name, 100))
		}
	}
	slices.SortFunc(l.Tools, func(a, b *mcp.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return l, nil
}

// cutText truncates s to at most n bytes and drops an incomplete last
// character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// ProblemsKey is the _meta key under which a server reports problems with its
// tool list, as a list of strings.
const ProblemsKey = "loadout/problems"

// reportedProblems returns the problems listed under [ProblemsKey].
func reportedProblems(meta mcp.Meta) []string {
	list, _ := meta[ProblemsKey].([]any)
	var out []string
	for _, item := range list {
		if text, ok := item.(string); ok && text != "" {
			out = append(out, truncate(strings.Join(strings.Fields(text), " "), 400))
		}
	}
	return out
}

// selectsTool reports whether Include and Exclude select the tool with the
// given name.
func (c *Config) selectsTool(name string) bool {
	among := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, name)
			return p == name || ok && err == nil
		})
	}
	return (len(c.Include) == 0 || among(c.Include)) && !among(c.Exclude)
}

// setListing stores a listing in the server and in the cache, unless a newer one
// was stored in the meantime.
func (s *Server) setListing(l *Listing) {
	s.mu.Lock()
	if s.listing != nil && s.listing.At.After(l.At) {
		s.mu.Unlock()
		return
	}
	s.listing, s.confirmed = l, time.Time{}
	s.mu.Unlock()
	s.cacheListing(l)
}

// cacheListing writes a listing to the cache.
func (s *Server) cacheListing(l *Listing) {
	if c := s.pool.o.Cache; c != nil {
		if err := c.Store(s.digest, l); err != nil {
			s.pool.o.Logger.Warn("could not cache the tool list", "server", s.config.Name, "error", err)
		}
	}
}

// isStale reports whether the listing is older than its TTL or, without a TTL,
// relistAfter.
func (s *Server) isStale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := relistAfter
	if s.listing.TTL > 0 {
		age = s.listing.TTL
	}
	return time.Since(s.listing.At) >= age
}
