-- A file of a conversation belongs to the branch on which it was written.

ALTER TABLE attachments ADD COLUMN step BIGINT NOT NULL DEFAULT 0; -- last step of the transcript when it was written
-- Without the index, SQLite would read the content of a file to reach step, which follows it.
CREATE INDEX attachments_list ON attachments (session, path, step, sha256, size, updated);

-- Versions that the current branch does not contain, or that were replaced or deleted.
CREATE TABLE attachment_versions (
	session TEXT COLLATE BYTES NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	path TEXT COLLATE BYTES NOT NULL,
	step BIGINT NOT NULL,
	sha256 TEXT NOT NULL, -- '' for a deletion
	size BIGINT NOT NULL,
	updated BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (session, path, step)
);
