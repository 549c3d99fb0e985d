-- Comments of reviewers and authors on versions of skills.

CREATE TABLE review_comments (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	version_id TEXT COLLATE BYTES NOT NULL REFERENCES versions (id) ON DELETE CASCADE,
	thread TEXT COLLATE BYTES NOT NULL CHECK (octet_length(thread) BETWEEN 1 AND 64), -- the first comment of the thread
	path TEXT COLLATE BYTES NOT NULL CHECK (octet_length(path) <= 1024), -- '' is the whole version
	base BIGINT NOT NULL, -- the version that has the line, if another one; 0 is the version itself
	line BIGINT NOT NULL, -- 0 is the whole file
	line_text TEXT NOT NULL CHECK (octet_length(line_text) <= 4096),
	author TEXT COLLATE BYTES NOT NULL CHECK (octet_length(author) BETWEEN 1 AND 128),
	text TEXT NOT NULL CHECK (octet_length(text) <= 16384), -- '' is a deleted comment with replies
	created BIGINT NOT NULL,
	edited BIGINT NOT NULL, -- 0 is never
	resolved_by TEXT COLLATE BYTES NOT NULL CHECK (octet_length(resolved_by) <= 128), -- of the first comment
	resolved BIGINT NOT NULL -- 0 is open
);
CREATE INDEX review_comments_version ON review_comments (version_id, id);
CREATE INDEX review_comments_skill ON review_comments (skill_id, id);
CREATE INDEX review_comments_thread ON review_comments (thread, id);
