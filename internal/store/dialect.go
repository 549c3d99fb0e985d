package store

import "strings"

// dialect is what differs between the databases; everything else of the SQL is
// the same. There is one for each, and none is made at run time.
type dialect struct {
	name string
	// bytes is the collation that compares bytes, and autonumber the type of a key that
	// counts by itself: what the migrations call COLLATE BYTES and AUTONUMBER.
	bytes, autonumber string
	// now is the clock of the database in milliseconds since 1970. Leases and the
	// grace of files are measured by it, so that nodes need not agree on the time.
	now string
	// find is the function that says where in a text another one is, 0 for nowhere.
	find string
}

var (
	sqliteDialect = dialect{
		name:       "SQLite",
		bytes:      "COLLATE BINARY",
		autonumber: "INTEGER PRIMARY KEY AUTOINCREMENT",
		now:        "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
		find:       "instr",
	}
	postgresDialect = dialect{
		name:       "PostgreSQL",
		bytes:      `COLLATE "C"`,
		autonumber: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		now:        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
		find:       "strpos",
	}
)

// ddl is a migration in the words of the database.
func (d dialect) ddl(text string) string {
	return strings.NewReplacer("COLLATE BYTES", d.bytes, "AUTONUMBER", d.autonumber).Replace(text)
}
