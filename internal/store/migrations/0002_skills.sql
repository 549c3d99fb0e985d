-- Skills: files by what is in them, what a version is made of, and where a skill is listed.

-- Counters that tell caches whether something changed. Raised in the
-- transaction of the change, so that they are seen in the order of commits.
CREATE TABLE revisions (
	name TEXT COLLATE BYTES NOT NULL PRIMARY KEY,
	value BIGINT NOT NULL
);

CREATE TABLE blobs (
	sha256 TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(sha256) = 64),
	size BIGINT NOT NULL,
	touched BIGINT NOT NULL -- when it was last wanted, by the clock of the database
);
CREATE INDEX blobs_touched ON blobs (touched);

CREATE TABLE blob_parts (
	sha256 TEXT COLLATE BYTES NOT NULL REFERENCES blobs (sha256) ON DELETE CASCADE,
	part BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (sha256, part)
);

CREATE TABLE skills (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	namespace TEXT COLLATE BYTES NOT NULL CHECK (octet_length(namespace) BETWEEN 1 AND 128),
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 512),
	current TEXT COLLATE BYTES NOT NULL, -- a version; '' is none yet
	hidden BOOLEAN NOT NULL,
	created_by TEXT COLLATE BYTES NOT NULL CHECK (octet_length(created_by) <= 128),
	created BIGINT NOT NULL,
	updated BIGINT NOT NULL,
	origin TEXT COLLATE BYTES NOT NULL CHECK (octet_length(origin) <= 2048),
	source TEXT NOT NULL CHECK (octet_length(source) <= 65536),
	folded TEXT NOT NULL, -- what a text is looked for in
	UNIQUE (namespace, name)
);
CREATE INDEX skills_origin ON skills (origin, id);

-- Where a skill is seen: in its own namespace, and in those it is published to.
CREATE TABLE listings (
	namespace TEXT COLLATE BYTES NOT NULL CHECK (octet_length(namespace) BETWEEN 1 AND 128),
	name TEXT COLLATE BYTES NOT NULL,
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	listed_by TEXT COLLATE BYTES NOT NULL,
	listed BIGINT NOT NULL,
	PRIMARY KEY (namespace, name)
);
CREATE INDEX listings_skill ON listings (skill_id);

CREATE TABLE versions (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	number BIGINT NOT NULL,
	label TEXT NOT NULL CHECK (octet_length(label) <= 1024),
	digest TEXT COLLATE BYTES NOT NULL CHECK (octet_length(digest) BETWEEN 1 AND 128),
	size BIGINT NOT NULL,
	files BIGINT NOT NULL,
	review TEXT COLLATE BYTES NOT NULL CHECK (review IN ('pending', 'approved', 'rejected')),
	reviewer TEXT COLLATE BYTES NOT NULL CHECK (octet_length(reviewer) <= 128),
	reviewed BIGINT NOT NULL,
	created_by TEXT COLLATE BYTES NOT NULL CHECK (octet_length(created_by) <= 128),
	created BIGINT NOT NULL,
	display TEXT NOT NULL CHECK (octet_length(display) <= 4096),
	description TEXT NOT NULL CHECK (octet_length(description) <= 65536),
	tags TEXT NOT NULL CHECK (octet_length(tags) <= 65536),
	note TEXT NOT NULL CHECK (octet_length(note) <= 65536),
	source TEXT NOT NULL CHECK (octet_length(source) <= 65536),
	meta TEXT NOT NULL CHECK (octet_length(meta) <= 262144),
	findings TEXT NOT NULL CHECK (octet_length(findings) <= 4194304),
	UNIQUE (skill_id, number),
	UNIQUE (skill_id, digest)
);
CREATE INDEX versions_digest ON versions (digest);
CREATE INDEX versions_review ON versions (review, id);

CREATE TABLE version_files (
	version_id TEXT COLLATE BYTES NOT NULL REFERENCES versions (id) ON DELETE CASCADE,
	path TEXT COLLATE BYTES NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 1024),
	sha256 TEXT COLLATE BYTES NOT NULL REFERENCES blobs (sha256),
	size BIGINT NOT NULL,
	PRIMARY KEY (version_id, path)
);
CREATE INDEX version_files_blob ON version_files (sha256);

-- The last change of each skill, also of those that are gone.
CREATE TABLE skill_changes (
	skill_id TEXT COLLATE BYTES NOT NULL PRIMARY KEY,
	revision BIGINT NOT NULL
);
CREATE UNIQUE INDEX skill_changes_revision ON skill_changes (revision);
