-- How users organize their conversations: folders, pinned and archived ones.

CREATE TABLE folders (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	owner TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 1024),
	created BIGINT NOT NULL,
	UNIQUE (owner, name)
);

ALTER TABLE sessions ADD COLUMN folder TEXT COLLATE BYTES NOT NULL DEFAULT ''; -- '' for none
ALTER TABLE sessions ADD COLUMN pinned BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE sessions ADD COLUMN archived BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX sessions_list ON sessions (owner, archived, pinned, id);
CREATE INDEX sessions_folder ON sessions (owner, archived, folder, pinned, id);
