package assembly

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/tools"
)

// definitions remembers for a base how tools of servers are defined, in the database: what
// one person's connection saw first holds for all who have that server. A tool may be
// defined in several ways that were accepted, as servers tell people different things.
type definitions struct{ b *base }

var _ tools.DefinitionStore = definitions{}

// definitionTime bounds how long a listing waits for the database.
const definitionTime = 10 * time.Second

// Screen implements [tools.DefinitionStore].
func (d definitions) Screen(c *upstream.Config, l *upstream.Listing, strict bool) (usable []*mcp.Tool, changed []string, err error) {
	ctx, stop := context.WithTimeout(context.Background(), definitionTime)
	defer stop()
	db, server := d.b.assembler.o.DB, c.Digest()
	known, err := db.ToolDefinitions.Digests(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	usable, changed, fresh := d.classify(known, c, l, strict)
	if len(fresh) == 0 {
		return usable, changed, nil
	}
	err = db.Tx(ctx, func(tx *store.Tx) error { // somebody else may have been first
		known, err := tx.ToolDefinitions.Digests(ctx, server)
		if err != nil {
			return err
		}
		usable, changed, fresh = d.classify(known, c, l, strict)
		return tx.ToolDefinitions.Add(ctx, fresh...)
	})
	if err != nil {
		return nil, nil, err
	}
	return usable, changed, nil
}

// classify divides a listing by what is known, and says what is to be kept of it.
func (d definitions) classify(known map[string]map[string]bool, c *upstream.Config, l *upstream.Listing, strict bool) (usable []*mcp.Tool, changed []string, fresh []store.ToolDefinition) {
	first := known == nil
	for _, t := range l.Tools {
		digest := tools.DefinitionDigest(t)
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
			continue // it was JSON
		}
		fresh = append(fresh, store.ToolDefinition{Server: c.Digest(), Tool: t.Name, Digest: digest, Definition: definition, OwnerID: d.ownerID(c), Accepted: first || !strict})
	}
	return usable, changed, fresh
}

// ownerID is the id of the document or the skill that brings a server, "" where it is the
// operator's.
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

// Accept implements [tools.DefinitionStore].
func (d definitions) Accept(c *upstream.Config, l *upstream.Listing) ([]string, error) {
	_, changed, err := d.Screen(c, l, true)
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	var digests []string
	for _, t := range l.Tools {
		for _, name := range changed {
			if t.Name == name {
				digests = append(digests, tools.DefinitionDigest(t))
			}
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), definitionTime)
	defer stop()
	return d.b.assembler.o.DB.ToolDefinitions.Accept(ctx, c.Digest(), digests, string(d.b.principal.User))
}

// Next implements [tools.DefinitionStore].
func (d definitions) Next(string) string {
	return "accept-tools on the hub, by who may review the server or the skill"
}
