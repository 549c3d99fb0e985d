-- Files of conversations.

CREATE TABLE attachments (
	session TEXT COLLATE BYTES NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	path TEXT COLLATE BYTES NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 1024),
	sha256 TEXT NOT NULL CHECK (octet_length(sha256) = 64),
	size BIGINT NOT NULL,
	updated BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (session, path)
);
