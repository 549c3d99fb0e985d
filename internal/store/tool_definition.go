package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// ToolDefinition is an accepted or pending definition of an MCP server's tool.
type ToolDefinition struct {
	Server     string // digest of the server's configuration
	Tool       string // name at the server
	Digest     string // digest of the definition
	Definition json.RawMessage
	OwnerID    string // id of the resource or skill that provides the server; "" if unknown
	Accepted   bool
	AcceptedBy string // a user; "" for the first definition of a server
	Seen       time.Time
	Decided    time.Time // zero while pending
}

const definitionColumns = "server, tool, digest, definition, of_id, accepted, accepted_by, seen, decided"

func (d *ToolDefinition) fields() []any {
	return []any{&d.Server, &d.Tool, &d.Digest, (*jsonText)(&d.Definition), &d.OwnerID, &d.Accepted, &d.AcceptedBy, (*timestamp)(&d.Seen), (*timestamp)(&d.Decided)}
}

// textRow is a row with one text column.
type textRow = scalarRow[string]

// ToolDefinitions stores tool definitions, so that changes are noticed.
type ToolDefinitions struct{ c conn }

// knownDigest is the digest of a stored definition, with its acceptance.
type knownDigest struct {
	Tool, Digest string
	Accepted     bool
}

func (k *knownDigest) fields() []any { return []any{&k.Tool, &k.Digest, &k.Accepted} }

// Digests returns the digests of a server's stored definitions, keyed by tool
// name, and whether each is accepted. The result is nil if no definition is
// stored.
func (t ToolDefinitions) Digests(ctx context.Context, server string) (map[string]map[string]bool, error) {
	found, err := queryAll[knownDigest](ctx, t.c, "SELECT tool, digest, accepted FROM definitions WHERE server = $1", server)
	if err != nil {
		return nil, fmt.Errorf("list digests of tool definitions: %w", err)
	}
	var out map[string]map[string]bool
	for _, k := range found {
		if out == nil {
			out = map[string]map[string]bool{}
		}
		if out[k.Tool] == nil {
			out[k.Tool] = map[string]bool{}
		}
		out[k.Tool][k.Digest] = k.Accepted
	}
	return out, nil
}

// maxAccepted is the maximum number of accepted definitions per tool. Some
// servers change a definition on every request, for example to include a date.
const maxAccepted = 16

// Add stores new definitions. A pending definition replaces any pending
// definition of the same tool. If a tool has too many accepted definitions, Add
// deletes the oldest.
func (t ToolDefinitions) Add(ctx context.Context, all ...ToolDefinition) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		for _, d := range all {
			if d.Seen = now(); d.Accepted {
				d.Decided = d.Seen
			} else if _, err := c.exec(ctx, "DELETE FROM definitions WHERE server = $1 AND tool = $2 AND digest <> $3 AND NOT accepted", d.Server, d.Tool, d.Digest); err != nil {
				return err
			}
			_, err := c.exec(ctx, "INSERT INTO definitions ("+definitionColumns+") VALUES ("+placeholders(1, 9)+") ON CONFLICT (server, tool, digest) DO NOTHING", d.fields()...)
			if err == nil && d.Accepted {
				_, err = c.exec(ctx, `DELETE FROM definitions WHERE server = $1 AND tool = $2 AND digest IN (SELECT o.digest FROM definitions o
					WHERE o.server = $3 AND o.tool = $4 AND o.accepted ORDER BY o.decided DESC, o.digest DESC LIMIT 1000 OFFSET $5)`, d.Server, d.Tool, d.Server, d.Tool, maxAccepted)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add tool definitions: %w", err)
	}
	return nil
}

// ListPending returns the pending definitions of the given servers, sorted by
// server and tool, without their content. It accepts up to [MaxPage] servers
// and returns up to [MaxPage] definitions.
func (t ToolDefinitions) ListPending(ctx context.Context, servers []string) ([]ToolDefinition, error) {
	if len(servers) == 0 {
		return nil, nil
	}
	if len(servers) > MaxPage {
		return nil, fmt.Errorf("list pending tool definitions: %w: %d servers, limit %d", ErrInvalid, len(servers), MaxPage)
	}
	found, err := queryAll[ToolDefinition](ctx, t.c, "SELECT server, tool, digest, '', of_id, accepted, accepted_by, seen, decided FROM definitions WHERE NOT accepted AND server IN ("+
		placeholders(2, len(servers))+") ORDER BY server, tool LIMIT $1", append([]any{MaxPage}, toArgs(servers)...)...)
	if err != nil {
		return nil, fmt.Errorf("list pending tool definitions: %w", err)
	}
	return found, nil
}

// ListChanges returns up to [MaxPage] definitions of a server's tools that have
// a pending definition. For each tool, the latest accepted definition, if any,
// precedes the pending one.
func (t ToolDefinitions) ListChanges(ctx context.Context, server string) ([]ToolDefinition, error) {
	return t.listChanges(ctx, "server", server)
}

// ListChangesByOwner is like [ToolDefinitions.ListChanges] for all servers
// provided by the resource or skill with the given id.
func (t ToolDefinitions) ListChangesByOwner(ctx context.Context, id string) ([]ToolDefinition, error) {
	return t.listChanges(ctx, "of_id", id)
}

func (t ToolDefinitions) listChanges(ctx context.Context, column, value string) ([]ToolDefinition, error) {
	found, err := queryAll[ToolDefinition](ctx, t.c, "SELECT "+definitionColumns+" FROM definitions d WHERE d."+column+` = $1
		AND EXISTS (SELECT 1 FROM definitions h WHERE h.server = d.server AND h.tool = d.tool AND NOT h.accepted)
		AND NOT EXISTS (SELECT 1 FROM definitions l WHERE l.server = d.server AND l.tool = d.tool AND d.accepted AND l.accepted AND (l.decided > d.decided OR l.decided = d.decided AND l.digest > d.digest))
		ORDER BY d.server, d.tool, CASE WHEN d.accepted THEN 0 ELSE 1 END LIMIT $2`, value, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list changed tool definitions: %w", err)
	}
	return found, nil
}

// Accept accepts a server's pending definitions with the given digests and
// returns the tool names. If any of them is not pending, Accept fails with
// [ErrNotFound] and accepts none.
func (t ToolDefinitions) Accept(ctx context.Context, server string, digests []string, by string) ([]string, error) {
	return t.accept(ctx, "server", server, digests, by)
}

// AcceptByOwner is like [ToolDefinitions.Accept] for all servers provided by
// the resource or skill with the given id.
func (t ToolDefinitions) AcceptByOwner(ctx context.Context, id string, digests []string, by string) ([]string, error) {
	return t.accept(ctx, "of_id", id, digests, by)
}

func (t ToolDefinitions) accept(ctx context.Context, column, key string, digests []string, by string) ([]string, error) {
	var out []string
	err := t.c.inTransaction(ctx, func(c conn) error {
		out = nil
		for _, digest := range digests {
			found, err := execReturning[textRow](ctx, c, "UPDATE definitions SET accepted = TRUE, accepted_by = $3, decided = $4 WHERE "+column+" = $1 AND digest = $2 AND NOT accepted RETURNING tool",
				key, digest, by, timestamp(now()))
			if err == nil && len(found) == 0 {
				err = ErrNotFound
			}
			if err != nil {
				return err
			}
			for _, f := range found {
				out = append(out, f.V)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("accept tool definitions: %w", err)
	}
	return out, nil
}

// Prune deletes definitions that were seen before the given time and whose
// resource or skill no longer exists. It returns their number.
func (t ToolDefinitions) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, `DELETE FROM definitions WHERE seen < $1 AND of_id <> ''
		AND NOT EXISTS (SELECT 1 FROM kinds k WHERE k.id = of_id) AND NOT EXISTS (SELECT 1 FROM skills s WHERE s.id = of_id)`, timestamp(before))
	if err != nil {
		return 0, fmt.Errorf("delete old tool definitions: %w", err)
	}
	return n, nil
}
