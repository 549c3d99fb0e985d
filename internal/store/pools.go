package store

import "database/sql"

// Pools returns the connection pool statistics by purpose: "read" and "write"
// for SQLite, "all" for PostgreSQL.
func (db *DB) Pools() map[string]sql.DBStats {
	if db.writer == db.reader {
		return map[string]sql.DBStats{"all": db.reader.Stats()}
	}
	return map[string]sql.DBStats{"read": db.reader.Stats(), "write": db.writer.Stats()}
}
