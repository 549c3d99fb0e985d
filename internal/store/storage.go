package store

import (
	"context"
	"fmt"
)

// Storage measures how much users and groups store.
type Storage struct{ c conn }

// Skills returns the number of skills that a namespace owns.
func (t Storage) Skills(ctx context.Context, n Namespace) (int64, error) {
	return t.measure(ctx, n, "SELECT count(*) FROM skills WHERE namespace = $1", string(n))
}

// Sessions returns the number of sessions of the user who owns a namespace, or
// 0 if no user owns it.
func (t Storage) Sessions(ctx context.Context, n Namespace) (int64, error) {
	return t.measure(ctx, n, "SELECT count(*) FROM sessions WHERE owner = $1", n.User())
}

// storedBytes adds up sizes without reading the content. Only users own
// sessions. Namespaces, skills, resources and sessions own secrets.
const storedBytes = `SELECT CAST(
	(SELECT COALESCE(SUM(v.size + octet_length(v.meta) + octet_length(v.findings)), 0) FROM skills s JOIN versions v ON v.skill_id = s.id WHERE s.namespace = $1)
	+ (SELECT COALESCE(SUM(octet_length(m.text) + octet_length(m.line_text)), 0) FROM skills s JOIN review_comments m ON m.skill_id = s.id WHERE s.namespace = $1)
	+ (SELECT COALESCE(SUM(octet_length(k.spec)), 0) FROM kinds k WHERE k.namespace = $1)
	+ (SELECT COALESCE(SUM(a.size), 0) FROM sessions c JOIN attachments a ON a.session = c.id WHERE c.owner = $2)
	+ (SELECT COALESCE(SUM(a.size), 0) FROM sessions c JOIN attachment_versions a ON a.session = c.id WHERE c.owner = $2)
	+ (SELECT COALESCE(SUM(octet_length(d.package)), 0) FROM sessions c JOIN drafts d ON d.session = c.id WHERE c.owner = $2)
	+ (SELECT COALESCE(SUM(h.size), 0) FROM shares h WHERE h.owner = $2)
	+ (SELECT COALESCE(SUM(e.bytes), 0) FROM sessions c JOIN stream_sizes e ON e.session = c.id WHERE c.owner = $2)
	+ (SELECT COALESCE(SUM(octet_length(x.sealed)), 0) FROM secrets x WHERE x.owner = $1)
	+ (SELECT COALESCE(SUM(octet_length(x.sealed)), 0) FROM skills s JOIN secrets x ON x.owner = 'skill:' || s.id WHERE s.namespace = $1)
	+ (SELECT COALESCE(SUM(octet_length(x.sealed)), 0) FROM kinds k JOIN secrets x ON x.owner = 'server:' || k.id WHERE k.namespace = $1)
	+ (SELECT COALESCE(SUM(octet_length(x.sealed)), 0) FROM sessions c JOIN secrets x ON x.owner = 'session:' || c.id WHERE c.owner = $2) AS BIGINT)`

// Bytes returns the total size of the data in a namespace. This includes all
// versions of its skills with their files, metadata, findings and comments, its other
// resources, and its secrets with those of its skills and resources. It also
// includes the events, files with their earlier versions, drafts, shares and secrets
// in the sessions of its user. A file is counted in each version that contains it.
func (t Storage) Bytes(ctx context.Context, n Namespace) (int64, error) {
	return t.measure(ctx, n, storedBytes, string(n), n.User())
}

func (t Storage) measure(ctx context.Context, n Namespace, query string, args ...any) (int64, error) {
	total, err := queryScalar[int64](ctx, t.c, query, args...)
	if err != nil {
		return 0, fmt.Errorf("measure storage of namespace %.100q: %w", string(n), err)
	}
	return total, nil
}
