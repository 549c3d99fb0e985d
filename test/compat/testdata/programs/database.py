"""sqlite3 with a file, a journal and a full-text index."""
import sqlite3

db = sqlite3.connect("notes.db")
db.execute("pragma journal_mode=wal")
db.execute("create virtual table notes using fts5(text)")
with db:
    db.executemany("insert into notes values (?)", [("a red apple",), ("a green pear",), ("red wine",)])
print(db.execute("select count(*) from notes where notes match 'red'").fetchone()[0])
db.execute("vacuum")
db.close()
