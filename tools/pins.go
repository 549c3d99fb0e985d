package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/upstream"
)

// Definitions remembers how the tools of servers were defined when they were first seen
// or accepted. A server that changes what it says of a tool, behind the back of who
// approved it, is noticed by that. It is safe for concurrent use.
type Definitions interface {
	// Screen divides a listing into the tools that may be used and the names of those
	// that changed and were not accepted. Tools that were never seen are accepted the
	// first time anything of the server is, and after that, as changes are, where strict
	// is false: then they are named and usable.
	Screen(c *upstream.Config, l *upstream.Listing, strict bool) (usable []*mcp.Tool, changed []string, err error)
	// Accept accepts the tools of a listing as they are defined, and returns the names of
	// those that had changed.
	Accept(c *upstream.Config, l *upstream.Listing) (changed []string, err error)
	// Next says how a person accepts what changed.
	Next(server string) string
}

var _ Definitions = (*Pins)(nil)

// Pins are [Definitions] in files of a directory, one a configuration. They are safe for
// concurrent use between processes as well.
type Pins struct{ Dir string }

// Next implements [Definitions].
func (p *Pins) Next(server string) string { return "loadout servers accept " + server }

// DefinitionDigest identifies a definition: all that a model or a person is told of it.
func DefinitionDigest(t *mcp.Tool) string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // it was JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// subject identifies a tool of the server, with how that is configured and what a
// skill sets for the tool; "" where that cannot be told.
func (sv *server) subject(t *mcp.Tool) policy.Digest {
	settings, err := json.Marshal(sv.settings[t.Name])
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "tool %s %q %s %s", sv.config.Digest(), t.Name, DefinitionDigest(t), settings))
	return policy.Digest("sha256:" + hex.EncodeToString(sum[:]))
}

func (p *Pins) file(key string) string {
	return filepath.Join(p.Dir, strings.TrimPrefix(key, "sha256:")+".json")
}

// maxPins bounds a file of pins, in bytes.
const maxPins = 4 << 20

func (p *Pins) of(key string) *policy.OwnFile { return policy.NewOwnFile(p.file(key), maxPins) }

// load returns what was accepted, nil where nothing ever was.
func (p *Pins) load(key string) (map[string]string, error) {
	b, err := p.of(key).Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.decode(key, b)
}

func (p *Pins) decode(key string, b []byte) (map[string]string, error) {
	if b == nil {
		return nil, nil
	}
	var pins map[string]string
	if err := json.Unmarshal(b, &pins); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", p.file(key), err)
	}
	return pins, nil
}

// update changes the pins of a configuration while nobody else does.
func (p *Pins) update(key string, change func(map[string]string) map[string]string) error {
	return p.of(key).Change(context.Background(), func(old []byte) ([]byte, error) { // waits for no longer than a write takes
		pins, err := p.decode(key, old)
		if err != nil {
			return nil, err
		}
		return json.Marshal(change(pins))
	})
}

// Screen implements [Definitions].
func (p *Pins) Screen(c *upstream.Config, l *upstream.Listing, strict bool) (usable []*mcp.Tool, changed []string, err error) {
	key := c.Digest()
	known, err := p.load(key)
	if err != nil {
		return nil, nil, err
	}
	first := known == nil
	fresh := map[string]string{}
	for _, t := range l.Tools {
		switch hash, seen := known[t.Name]; {
		case seen && hash == DefinitionDigest(t):
			usable = append(usable, t)
			continue
		case seen || !first:
			changed = append(changed, t.Name)
			if strict {
				continue
			}
		}
		usable = append(usable, t)
		fresh[t.Name] = DefinitionDigest(t)
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

// Accept implements [Definitions].
func (p *Pins) Accept(c *upstream.Config, l *upstream.Listing) (changed []string, err error) {
	err = p.update(c.Digest(), func(have map[string]string) map[string]string {
		now := map[string]string{}
		changed = nil
		for _, t := range l.Tools {
			now[t.Name] = DefinitionDigest(t)
			if have != nil && have[t.Name] != now[t.Name] {
				changed = append(changed, t.Name)
			}
		}
		return now
	})
	return changed, err
}

// recheck is for how long what is held back is so without asking again: somebody may have
// accepted it elsewhere.
const recheck = 2 * time.Second

// screened is what came of screening a listing.
type screened struct {
	listing *upstream.Listing
	until   time.Time // zero is as long as the listing is that
	usable  []*mcp.Tool
	held    []string // names of those that are not
	problem string
	named   map[string]*definition // usable ones by the name that the server has
	here    map[string]*definition // and by the name that they have here
}

// definition is a tool as its server defines it, with what is worked out of that
// once.
type definition struct {
	*mcp.Tool
	name    string // here
	schema  func() *schema
	subject func() policy.Digest
}

// index makes the maps.
func (s *screened) index(sv *server) {
	s.named, s.here = map[string]*definition{}, map[string]*definition{}
	for _, t := range s.usable {
		d := &definition{Tool: t, name: upstream.ToolName(sv.name, t.Name),
			schema: sync.OnceValue(func() *schema { return newSchema(t) }), subject: sync.OnceValue(func() policy.Digest { return sv.subject(t) })}
		s.named[t.Name], s.here[d.name] = d, d
	}
}

// screen lets through the tools of a listing whose definitions were accepted.
// What a skill brings, and servers with pin: strict, are quarantined where they
// change; of the person's other servers it is said.
func (s *Set) screen(sv *server, l *upstream.Listing) *screened {
	if have := sv.screened.Load(); have != nil && have.listing == l && (have.until.IsZero() || time.Now().Before(have.until)) {
		return have
	}
	out := &screened{listing: l, usable: l.Tools}
	if s.opts.Pins != nil {
		strict := s.strict(sv)
		usable, changed, err := s.opts.Pins.Screen(sv.config, l, strict)
		switch {
		case err != nil && strict: // nobody knows what was accepted
			out.usable, out.until = nil, time.Now().Add(recheck)
			out.problem = fmt.Sprintf("the tools of MCP server %s are held back, as what was accepted of them cannot be read: %v", sv.name, err)
		case err != nil:
			s.log().Warn("pins of tools", "server", sv.name, "error", err)
		case len(changed) > 0 && strict:
			out.usable, out.held, out.until = usable, changed, time.Now().Add(recheck)
			out.problem = fmt.Sprintf("MCP server %s changed how it defines %s, or added it: held back until accepted with: %s", sv.name, strings.Join(changed, ", "), s.opts.Pins.Next(sv.name))
		case len(changed) > 0:
			out.problem = fmt.Sprintf("MCP server %s changed how it defines %s", sv.name, strings.Join(changed, ", "))
		}
	}
	out.index(sv)
	sv.screened.Store(out)
	return out
}

// strict reports whether changed tools of a server are held back.
func (s *Set) strict(sv *server) bool { return sv.config.Owner != "" || sv.config.Strict }

// Usable reports whether a tool, as its server defines it now, may be shown and
// called by whoever lists the server's tools by connections of its own: false
// where it changed and was not accepted. For a server that is held to what it
// said, it connects where nothing is known.
func (s *Set) Usable(ctx context.Context, server string, t *mcp.Tool) bool {
	sv := s.byName(server)
	if sv == nil || sv.Server == nil {
		return false
	}
	if s.opts.Pins == nil || !s.strict(sv) {
		return true
	}
	l := sv.Known()
	if l == nil {
		ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
		defer cancel()
		var err error
		if l, err = sv.Tools(ctx); err != nil {
			return false
		}
	}
	hash := DefinitionDigest(t)
	return slices.ContainsFunc(s.screen(sv, l).usable, func(u *mcp.Tool) bool { return u.Name == t.Name && DefinitionDigest(u) == hash })
}

// Accept connects a server and accepts its tools as they are defined now. It
// returns the names of those that had changed.
func (s *Set) Accept(ctx context.Context, name string) ([]string, error) {
	sv := s.locate(ctx, name)
	if sv == nil {
		return nil, &NoServerError{Name: name, Near: s.names()}
	}
	if sv.Server == nil {
		return nil, errors.New("MCP server " + name + " is " + missing(sv.unset))
	}
	if s.opts.Pins == nil {
		return nil, errors.New("nothing is kept of how tools are defined")
	}
	l, err := sv.Tools(ctx)
	if err != nil {
		return nil, err
	}
	changed, err := s.opts.Pins.Accept(sv.config, l)
	sv.screened.Store(nil)
	return changed, err
}
