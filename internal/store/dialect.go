package store

import "strings"

// dialect holds the SQL that differs between SQLite and PostgreSQL. All other SQL
// is the same. A dialect never changes.
type dialect struct {
	name string
	// bytes is the name of the collation that compares bytes. autonumber is the
	// type of an automatic key. Migrations contain COLLATE BYTES and AUTONUMBER
	// in their place.
	bytes, autonumber string
	// now is the clock of the database in milliseconds since 1970. It measures
	// leases and grace periods, so that the clocks of nodes do not matter.
	now string
	// position is the function that returns the position of one text in
	// another, 0 for not found.
	position string
}

var (
	sqliteDialect = dialect{
		name:       "SQLite",
		bytes:      "COLLATE BINARY",
		autonumber: "INTEGER PRIMARY KEY AUTOINCREMENT",
		now:        "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
		position:   "instr",
	}
	postgresDialect = dialect{
		name:       "PostgreSQL",
		bytes:      `COLLATE "C"`,
		autonumber: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		now:        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
		position:   "strpos",
	}
)

// translateDDL returns a migration with the placeholders replaced for the database.
func (d dialect) translateDDL(text string) string {
	return strings.NewReplacer("COLLATE BYTES", d.bytes, "AUTONUMBER", d.autonumber).Replace(text)
}
