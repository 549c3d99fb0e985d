package assembly

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// definitions implements [toolset.DefinitionStore] with the database. A definition
// is accepted for all of a server's users. A tool may have several accepted
// definitions, because a server may describe it differently to each user.
type definitions struct{ b *base }

var _ toolset.DefinitionStore = definitions{}

// definitionTime is the timeout for all database operations for one listing.
const definitionTime = 10 * time.Second

// Screen implements [toolset.DefinitionStore].
func (d definitions) Screen(c *upstream.Config, l *upstream.Listing, strict bool) (usable []*mcp.Tool, changed []string, err error) {
	ctx, stop := context.WithTimeout(context.Background(), definitionTime)
	defer stop()
	db, server := d.b.assembler.o.DB, c.Digest()
	known, err := db.ToolDefinitions.Digests(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	usable, changed, fresh := d.sortTools(known, c, l, strict)
	if len(fresh) == 0 {
		return usable, changed, nil
	}
	err = db.Tx(ctx, func(tx *store.Tx) error { // another node may have added definitions
		known, err := tx.ToolDefinitions.Digests(ctx, server)
		if err != nil {
			return err
		}
		usable, changed, fresh = d.sortTools(known, c, l, strict)
		return tx.ToolDefinitions.Add(ctx, fresh...)
	})
	if err != nil {
		return nil, nil, err
	}
	return usable, changed, nil
}

// sortTools returns the usable tools in a listing, the names of tools whose
// definitions changed, and the definitions to store.
func (d definitions) sortTools(known map[string]map[string]bool, c *upstream.Config, l *upstream.Listing, strict bool) (usable []*mcp.Tool, changed []string, fresh []store.ToolDefinition) {
	first := known == nil
	for _, t := range l.Tools {
		digest := upstream.DefinitionDigest(t)
		accepted, seen := known[t.Name][digest]
		if !accepted && !first {
			changed = append(changed, t.Name)
		}
		if accepted || first || !strict {
			usable = append(usable, t)
		}
		if seen && (accepted || strict) {
			continue
		}
		definition, err := json.Marshal(t)
		if err != nil {
			continue // cannot happen: decoded from JSON
		}
		fresh = append(fresh, store.ToolDefinition{Server: c.Digest(), Tool: t.Name, Digest: digest, Definition: definition, OwnerID: d.ownerID(c), Accepted: first || !strict})
	}
	return usable, changed, fresh
}

// ownerID returns the ID of the document or skill that defines a server, or ""
// for an operator's server.
func (d definitions) ownerID(c *upstream.Config) string {
	if s, ok := d.b.servers[c.Name]; ok && s.Owner == c.Owner {
		return s.ID
	}
	key, _, ok := c.Owner.Skill()
	if !ok {
		return ""
	}
	origin, dir, _ := strings.Cut(key, "/")
	return d.b.skillID(origin, dir)
}

// Accept implements [toolset.DefinitionStore].
func (d definitions) Accept(c *upstream.Config, l *upstream.Listing) ([]string, error) {
	_, changed, err := d.Screen(c, l, true)
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	var digests []string
	for _, t := range l.Tools {
		for _, name := range changed {
			if t.Name == name {
				digests = append(digests, upstream.DefinitionDigest(t))
			}
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), definitionTime)
	defer stop()
	return d.b.assembler.o.DB.ToolDefinitions.Accept(ctx, c.Digest(), digests, string(d.b.principal.User))
}

// Next implements [toolset.DefinitionStore].
func (d definitions) Next(string) string {
	return "a reviewer can accept the tools on the hub"
}
