package store

import "strings"

// dialect holds the SQL that differs between SQLite and PostgreSQL. A dialect
// is immutable.
type dialect struct {
	name string
	// bytes is the name of the collation that compares bytes, and autonumber is
	// the type of an automatically numbered key. They replace COLLATE BYTES and
	// AUTONUMBER in migrations.
	bytes, autonumber string
	// now is an expression for the database's clock, in milliseconds since
	// 1970. Leases and grace periods use it, so that clock differences between
	// nodes do not matter.
	now string
	// skipLocked makes a SELECT lock the rows that it returns, and omit rows that
	// another transaction has locked. It is empty for SQLite, where only one
	// transaction writes at a time.
	skipLocked string
	// position is the function that returns the position of a string in another,
	// from 1, or 0.
	position string
}

var (
	sqliteDialect = dialect{
		name:       "SQLite",
		bytes:      "COLLATE BINARY",
		autonumber: "INTEGER PRIMARY KEY AUTOINCREMENT",
		now:        "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
		position:   "loadout_position",
	}
	postgresDialect = dialect{
		name:       "PostgreSQL",
		bytes:      `COLLATE "C"`,
		autonumber: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		now:        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
		skipLocked: "FOR UPDATE SKIP LOCKED",
		position:   "strpos",
	}
)

// translateDDL replaces the placeholders in a migration with the database's own
// SQL.
func (d dialect) translateDDL(text string) string {
	return strings.NewReplacer("COLLATE BYTES", d.bytes, "AUTONUMBER", d.autonumber).Replace(text)
}
