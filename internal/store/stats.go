package store

import "database/sql"

// Pools are the connections to the database by what they are for: read and write with
// SQLite, all with PostgreSQL.
func (db *DB) Pools() map[string]sql.DBStats {
	if db.writer == db.reader {
		return map[string]sql.DBStats{"all": db.reader.Stats()}
	}
	return map[string]sql.DBStats{"read": db.reader.Stats(), "write": db.writer.Stats()}
}
