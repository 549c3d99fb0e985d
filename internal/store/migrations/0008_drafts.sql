-- Skills that are tried in a conversation before they are kept.

CREATE TABLE drafts (
	session TEXT COLLATE BYTES NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 1024),
	digest TEXT COLLATE BYTES NOT NULL CHECK (octet_length(digest) BETWEEN 1 AND 128),
	package BYTEA NOT NULL
);
