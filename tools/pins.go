package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// pinFiles is a [toolset.DefinitionStore] with a file of at most 4 MiB for each
// server configuration. The directory is created when it is needed. Several
// processes can use it concurrently. Methods return an error if other users can
// read a file, or if its content is invalid.
type pinFiles struct {
	dir         string
	howToAccept func(server string) string
}

// Next implements [toolset.DefinitionStore].
func (p *pinFiles) Next(server string) string {
	if p.howToAccept == nil {
		return ""
	}
	return p.howToAccept(server)
}

// toolSubject returns a digest of a tool's definition, its server's
// configuration and the skill's settings. It returns "" if the settings cannot
// be encoded.
func (sv *server) toolSubject(t *mcp.Tool) policy.Digest {
	settings, err := json.Marshal(sv.settings[t.Name])
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "tool %s %q %s %s", sv.config.Digest(), t.Name, upstream.DefinitionDigest(t), settings))
	return policy.Digest("sha256:" + hex.EncodeToString(sum[:]))
}

func (p *pinFiles) file(key string) string {
	return filepath.Join(p.dir, strings.TrimPrefix(key, "sha256:")+".json")
}

// stamp returns a string that changes whenever the accepted definitions of a
// configuration change.
func (p *pinFiles) stamp(key string) string {
	fi, err := os.Stat(p.file(key))
	if err != nil {
		return ""
	}
	return fmt.Sprint(fi.ModTime().UnixNano(), fi.Size())
}

// maxPins is the maximum size of a pins file in bytes.
const maxPins = 4 << 20

func (p *pinFiles) ownFile(key string) *privatefile.File {
	return privatefile.New(p.file(key), maxPins)
}

// load returns the accepted hashes by tool name, or nil if none was ever
// accepted.
func (p *pinFiles) load(key string) (map[string]string, error) {
	b, err := p.ownFile(key).Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.decode(key, b)
}

func (p *pinFiles) decode(key string, b []byte) (map[string]string, error) {
	if b == nil {
		return nil, nil
	}
	var pins map[string]string
	if err := json.Unmarshal(b, &pins); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", p.file(key), err)
	}
	return pins, nil
}

// update modifies a configuration's pins while holding a lock.
func (p *pinFiles) update(key string, change func(map[string]string) map[string]string) error {
	return p.ownFile(key).Change(context.Background(), func(old []byte) ([]byte, error) { // waits only for other writes
		pins, err := p.decode(key, old)
		if err != nil {
			return nil, err
		}
		return json.Marshal(change(pins))
	})
}

// Screen implements [toolset.DefinitionStore].
func (p *pinFiles) Screen(c *upstream.Config, l *upstream.Listing, strict bool) (usable []*mcp.Tool, changed []string, err error) {
	key := c.Digest()
	known, err := p.load(key)
	if err != nil {
		return nil, nil, err
	}
	first := known == nil
	fresh := map[string]string{}
	for _, t := range l.Tools {
		switch hash, seen := known[t.Name]; {
		case seen && hash == upstream.DefinitionDigest(t):
			usable = append(usable, t)
			continue
		case seen || !first:
			changed = append(changed, t.Name)
			if strict {
				continue
			}
		}
		usable = append(usable, t)
		fresh[t.Name] = upstream.DefinitionDigest(t)
	}
	if len(fresh) > 0 {
		err = p.update(key, func(have map[string]string) map[string]string {
			if have == nil {
				have = map[string]string{}
			}
			for name, hash := range fresh {
				if _, seen := have[name]; !seen || !strict {
					have[name] = hash
				}
			}
			return have
		})
	}
	return usable, changed, err
}

// Accept implements [toolset.DefinitionStore].
func (p *pinFiles) Accept(c *upstream.Config, l *upstream.Listing) (changed []string, err error) {
	err = p.update(c.Digest(), func(have map[string]string) map[string]string {
		now := map[string]string{}
		changed = nil
		for _, t := range l.Tools {
			now[t.Name] = upstream.DefinitionDigest(t)
			if have != nil && have[t.Name] != now[t.Name] {
				changed = append(changed, t.Name)
			}
		}
		return now
	})
	return changed, err
}

// recheckInterval is the time after which the pins of quarantined tools are
// read again, because another process may have accepted the tools.
const recheckInterval = 2 * time.Second

// screened is a listing split into usable and quarantined tools.
type screened struct {
	listing      *upstream.Listing
	until        time.Time // zero if valid as long as the listing
	usable       []*mcp.Tool
	quarantined  []string // names of quarantined tools
	problem      string
	byServerName map[string]*definition // usable tools by the server's own names
	byLocalName  map[string]*definition // usable tools by their names in the set
}

// definition is a server's definition of a tool, with cached derived values.
type definition struct {
	*mcp.Tool
	name    string // name in the set
	schema  func() *schema
	subject func() policy.Digest
}

func (s *screened) index(sv *server) {
	s.byServerName, s.byLocalName = map[string]*definition{}, map[string]*definition{}
	for _, t := range s.usable {
		d := &definition{Tool: t, name: upstream.ToolName(sv.name, t.Name),
			schema: sync.OnceValue(func() *schema { return newSchema(t) }), subject: sync.OnceValue(func() policy.Digest { return sv.toolSubject(t) })}
		s.byServerName[t.Name], s.byLocalName[d.name] = d, d
	}
}

// screenListing returns the tools in a listing whose definitions were accepted.
// Changed tools of skills and of servers with pin: strict are quarantined.
// Changes to the user's other servers are only reported.
func (s *Set) screenListing(sv *server, l *upstream.Listing) *screened {
	if have := sv.screened.Load(); have != nil && have.listing == l && (have.until.IsZero() || time.Now().Before(have.until)) {
		return have
	}
	out := &screened{listing: l, usable: l.Tools}
	if s.pins != nil {
		strict := s.isStrict(sv)
		usable, changed, err := s.pins.Screen(sv.config, l, strict)
		switch {
		case err != nil && strict: // unknown accepted definitions: quarantine all tools
			out.usable, out.until = nil, time.Now().Add(recheckInterval)
			out.problem = fmt.Sprintf("tools of MCP server %s are quarantined: cannot read the accepted definitions: %v", sv.name, err)
		case err != nil:
			s.log().Warn("cannot read tool pins", "server", sv.name, "error", err)
		case len(changed) > 0 && strict:
			out.usable, out.quarantined, out.until = usable, changed, time.Now().Add(recheckInterval)
			out.problem = fmt.Sprintf("MCP server %s changed or added %s: quarantined until accepted", sv.name, strings.Join(changed, ", "))
			if next := s.pins.Next(sv.name); next != "" {
				out.problem += " with: " + next
			}
		case len(changed) > 0:
			out.problem = fmt.Sprintf("MCP server %s changed or added %s", sv.name, strings.Join(changed, ", "))
		}
	}
	out.index(sv)
	sv.screened.Store(out)
	return out
}

// isStrict reports whether a server's changed tools are quarantined.
func (s *Set) isStrict(sv *server) bool { return sv.config.Owner != "" || sv.config.Strict }

// Usable reports whether the tool definition t may be shown and called on a
// caller's own connection to the server. It returns false if the tool changed
// and the change was not accepted. If the server is strict and its tools are
// unknown, Usable connects to it first, within [Options.Deadline]. It returns
// false if that fails or if the set has no such server.
func (s *Set) Usable(ctx context.Context, server string, t *mcp.Tool) bool {
	sv := s.serverByName(server)
	if sv == nil || sv.Server == nil {
		return false
	}
	if s.pins == nil || !s.isStrict(sv) {
		return true
	}
	l := sv.LastListing()
	if l == nil {
		ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
		defer cancel()
		var err error
		if l, err = sv.Tools(ctx); err != nil {
			return false
		}
	}
	hash := upstream.DefinitionDigest(t)
	return slices.ContainsFunc(s.screenListing(sv, l).usable, func(u *mcp.Tool) bool { return u.Name == t.Name && upstream.DefinitionDigest(u) == hash })
}

// Accept connects to a server and accepts its current tool definitions. It
// returns the server's own names for the tools that changed, or nil if the server
// has never been listed before. It waits for the server until ctx is done. It
// returns an error if the server is unknown, lacks a variable or cannot be listed,
// or if definitions are not stored; see [Options.DefinitionsDir].
func (s *Set) Accept(ctx context.Context, name string) ([]string, error) {
	sv := s.findServer(ctx, name)
	if sv == nil {
		return nil, &unknownServerError{Name: name, Names: s.serverNames()}
	}
	if sv.Server == nil {
		return nil, errors.New(sv.notConfigured())
	}
	if s.pins == nil {
		return nil, errors.New("tool definitions cannot be accepted: pinning is disabled")
	}
	l, err := sv.Tools(ctx)
	if err != nil {
		return nil, err
	}
	changed, err := s.pins.Accept(sv.config, l)
	sv.screened.Store(nil)
	return changed, err
}
