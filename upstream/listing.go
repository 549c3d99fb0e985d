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

// Bounds of a listing.
const (
	MaxTools      = 10_000
	MaxDefinition = 1 << 20  // bytes of one tool, as JSON
	MaxListing    = 16 << 20 // bytes of all tools of a server, as JSON
	// MaxDescription is how many bytes of the description of a tool are kept.
	MaxDescription = 64 << 10
	maxPages       = 1000
	maxProblems    = 20
)

// relistAfter is the age from which tools are listed again at a health check,
// where the server gives no other.
const relistAfter = 5 * time.Minute

type listError struct{ err error }

func (e *listError) Error() string { return "listing its tools: " + e.err.Error() }
func (e *listError) Unwrap() error { return e.err }

type checkError struct{ err error }

func (e *checkError) Error() string { return "it does not answer health checks: " + e.err.Error() }
func (e *checkError) Unwrap() error { return e.err }

// list reads all pages of the tools of a connection, within bounds.
func (s *Server) list(ctx context.Context, conn *Conn) (*Listing, error) {
	l := &Listing{At: time.Now(), Era: conn.Era}
	if r := conn.InitializeResult(); r.Capabilities == nil || r.Capabilities.Tools == nil {
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
			for _, told := range own(res.Meta) {
				problem("%s", told)
			}
			l.TTL = time.Duration(min(res.GetTTLMs(), int(24*time.Hour/time.Millisecond))) * time.Millisecond
		}
		for _, t := range res.Tools {
			switch {
			case t == nil || t.Name == "":
				problem("a tool without a name")
				continue
			case seen[t.Name]:
				problem("tool %q twice; the first one counts", clip(t.Name, 100))
				continue
			case !s.config.chooses(t.Name):
				continue
			case len(l.Tools) >= MaxTools:
				problem("more than %d tools; the rest is left out", MaxTools)
				continue
			}
			if len(t.Description) > MaxDescription {
				problem("tool %q: its description has more than %d bytes; the rest is cut off", clip(t.Name, 100), MaxDescription)
				cut := *t // the SDK has the other one
				cut.Description = strings.ToValidUTF8(t.Description[:MaxDescription], "")
				t = &cut
			}
			data, err := json.Marshal(t)
			if err != nil || len(data) > MaxDefinition {
				problem("tool %q: its definition has more than %d bytes; it is left out", clip(t.Name, 100), MaxDefinition)
				continue
			}
			if total += len(data); total > MaxListing {
				// Said in any case: what follows is missing.
				l.Problems = append(l.Problems, fmt.Sprintf("its definitions have more than %d bytes; from tool %q on they are left out", MaxListing, clip(t.Name, 100)))
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
		if !seen[name] && s.config.chooses(name) && total <= MaxListing {
			problem("its configuration lists tool %q, which it does not have", clip(name, 100))
		}
	}
	slices.SortFunc(l.Tools, func(a, b *mcp.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return l, nil
}

// ProblemsKey is the member of a tool list's _meta in which a server may say what
// is wrong with it, as a list of texts: tools that it should have and cannot make.
const ProblemsKey = "loadout/problems"

// own is what a server says is wrong with itself.
func own(meta mcp.Meta) []string {
	list, _ := meta[ProblemsKey].([]any)
	var out []string
	for _, item := range list {
		if text, ok := item.(string); ok && text != "" {
			out = append(out, clip(strings.Join(strings.Fields(text), " "), 400))
		}
	}
	return out
}

// chooses says whether a tool is among those that the configuration wants.
func (c *Config) chooses(name string) bool {
	among := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, name)
			return p == name || ok && err == nil
		})
	}
	return (len(c.Include) == 0 || among(c.Include)) && !among(c.Exclude)
}

// store takes over a listing.
func (s *Server) store(l *Listing) {
	s.keep(l)
	s.mu.Lock()
	s.listing = l
	s.mu.Unlock()
}

// keep writes a listing to the cache.
func (s *Server) keep(l *Listing) {
	if c := s.pool.o.Cache; c != nil {
		if err := c.Store(s.digest, l); err != nil {
			s.pool.o.Logger.Warn("listing not stored in the cache", "server", s.config.Name, "error", err)
		}
	}
}

// stale says whether the listing is older than the server wants it to be.
func (s *Server) stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := relistAfter
	if s.listing.TTL > 0 {
		age = s.listing.TTL
	}
	return time.Since(s.listing.At) >= age
}
