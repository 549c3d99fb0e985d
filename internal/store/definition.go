package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Definition is how a tool of an MCP server is defined, as somebody accepted it or not
// yet.
type Definition struct {
	Server     string // digest of its configuration
	Tool       string // as the server calls it
	Digest     string // of the definition
	Definition json.RawMessage
	Of         string // id of the kind or skill that brings the server, "" where that is not known
	Accepted   bool
	AcceptedBy string // a user, "" where it was what was there first
	Seen       time.Time
	Decided    time.Time // zero is not yet
}

const definitionColumns = "server, tool, digest, definition, of_id, accepted, accepted_by, seen, decided"

func (d *Definition) fields() []any {
	return []any{&d.Server, &d.Tool, &d.Digest, (*document)(&d.Definition), &d.Of, &d.Accepted, &d.AcceptedBy, (*stamp)(&d.Seen), (*stamp)(&d.Decided)}
}

// text is the answer to a question that is one text.
type text = value[string]

// Definitions keeps how tools of servers are defined, so that a change is noticed.
type Definitions struct{ c conn }

// knownDigest is a definition without what is in it.
type knownDigest struct {
	Tool, Digest string
	Accepted     bool
}

func (k *knownDigest) fields() []any { return []any{&k.Tool, &k.Digest, &k.Accepted} }

// Known returns the digests of definitions of a server by the names of its tools, and
// whether they are accepted. It is nil where nothing of the server was ever seen.
func (t Definitions) Known(ctx context.Context, server string) (map[string]map[string]bool, error) {
	found, err := all[knownDigest](ctx, t.c, "SELECT tool, digest, accepted FROM definitions WHERE server = $1", server)
	if err != nil {
		return nil, fmt.Errorf("definitions of tools: %w", err)
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

// maxAccepted is how many definitions of a tool are kept that nobody was asked about: a
// server may tell another one each time, as with the date in it.
const maxAccepted = 16

// Add keeps definitions that were not there. One that is not accepted takes the place of
// another of its tool that is not, and one that is that of the oldest of many.
func (t Definitions) Add(ctx context.Context, all ...Definition) error {
	err := t.c.atomic(ctx, func(c conn) error {
		for _, d := range all {
			if d.Seen = now(); d.Accepted {
				d.Decided = d.Seen
			} else if _, err := c.exec(ctx, "DELETE FROM definitions WHERE server = $1 AND tool = $2 AND digest <> $3 AND NOT accepted", d.Server, d.Tool, d.Digest); err != nil {
				return err
			}
			_, err := c.exec(ctx, "INSERT INTO definitions ("+definitionColumns+") VALUES ("+places(1, 9)+") ON CONFLICT (server, tool, digest) DO NOTHING", d.fields()...)
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
		return fmt.Errorf("keep definitions of tools: %w", err)
	}
	return nil
}

// Held returns the definitions of servers that wait to be accepted, by server and tool,
// without what is in them: at most [MaxPage] servers, and as many definitions.
func (t Definitions) Held(ctx context.Context, servers []string) ([]Definition, error) {
	if len(servers) == 0 {
		return nil, nil
	}
	if len(servers) > MaxPage {
		return nil, fmt.Errorf("held definitions: %w: of %d servers, more than %d", ErrInvalid, len(servers), MaxPage)
	}
	found, err := all[Definition](ctx, t.c, "SELECT server, tool, digest, '', of_id, accepted, accepted_by, seen, decided FROM definitions WHERE NOT accepted AND server IN ("+
		places(2, len(servers))+") ORDER BY server, tool LIMIT $1", append([]any{MaxPage}, anys(servers)...)...)
	if err != nil {
		return nil, fmt.Errorf("held definitions: %w", err)
	}
	return found, nil
}

// Changes returns of each tool of a server that waits to be accepted how it is defined
// now, and before it how it was when it was accepted for the last time, where it was: at
// most [MaxPage].
func (t Definitions) Changes(ctx context.Context, server string) ([]Definition, error) {
	return t.changes(ctx, "server", server)
}

// ChangesOf is [Definitions.Changes] of all servers that a kind or a skill brings, by its id.
func (t Definitions) ChangesOf(ctx context.Context, id string) ([]Definition, error) {
	return t.changes(ctx, "of_id", id)
}

func (t Definitions) changes(ctx context.Context, column, value string) ([]Definition, error) {
	found, err := all[Definition](ctx, t.c, "SELECT "+definitionColumns+" FROM definitions d WHERE d."+column+` = $1
		AND EXISTS (SELECT 1 FROM definitions h WHERE h.server = d.server AND h.tool = d.tool AND NOT h.accepted)
		AND NOT EXISTS (SELECT 1 FROM definitions l WHERE l.server = d.server AND l.tool = d.tool AND d.accepted AND l.accepted AND (l.decided > d.decided OR l.decided = d.decided AND l.digest > d.digest))
		ORDER BY d.server, d.tool, CASE WHEN d.accepted THEN 0 ELSE 1 END LIMIT $2`, value, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("changed definitions of tools: %w", err)
	}
	return found, nil
}

// Accept accepts definitions of a server that wait, and returns the names of their tools.
// One that is not there, or not any more, is [ErrNotFound]; then none is accepted.
func (t Definitions) Accept(ctx context.Context, server string, digests []string, by string) ([]string, error) {
	return t.accept(ctx, "server", server, digests, by)
}

// AcceptOf is [Definitions.Accept] for all servers that a kind or a skill brings, by its id.
func (t Definitions) AcceptOf(ctx context.Context, id string, digests []string, by string) ([]string, error) {
	return t.accept(ctx, "of_id", id, digests, by)
}

func (t Definitions) accept(ctx context.Context, column, key string, digests []string, by string) ([]string, error) {
	var out []string
	err := t.c.atomic(ctx, func(c conn) error {
		out = nil
		for _, digest := range digests {
			found, err := changed[text](ctx, c, "UPDATE definitions SET accepted = TRUE, accepted_by = $3, decided = $4 WHERE "+column+" = $1 AND digest = $2 AND NOT accepted RETURNING tool",
				key, digest, by, stamp(now()))
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
		return nil, fmt.Errorf("accept definitions of tools: %w", err)
	}
	return out, nil
}

// Prune removes definitions that were seen before a time and are of a kind or a skill that
// is not there any more.
func (t Definitions) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, `DELETE FROM definitions WHERE seen < $1 AND of_id <> ''
		AND NOT EXISTS (SELECT 1 FROM kinds k WHERE k.id = of_id) AND NOT EXISTS (SELECT 1 FROM skills s WHERE s.id = of_id)`, stamp(before))
	if err != nil {
		return 0, fmt.Errorf("remove definitions of tools: %w", err)
	}
	return n, nil
}
