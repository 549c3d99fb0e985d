-- Ghosts, Bots, Teams, Models and servers, and what refers to what.

CREATE TABLE kinds (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	kind TEXT COLLATE BYTES NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 64),
	namespace TEXT COLLATE BYTES NOT NULL CHECK (octet_length(namespace) BETWEEN 1 AND 128),
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 512),
	spec TEXT NOT NULL CHECK (octet_length(spec) <= 1048576),
	generation BIGINT NOT NULL,
	created_by TEXT COLLATE BYTES NOT NULL,
	created BIGINT NOT NULL,
	updated BIGINT NOT NULL,
	UNIQUE (kind, namespace, name)
);
CREATE INDEX kinds_namespace ON kinds (namespace);

CREATE TABLE refs (
	from_kind TEXT COLLATE BYTES NOT NULL CHECK (octet_length(from_kind) BETWEEN 1 AND 64),
	from_id TEXT COLLATE BYTES NOT NULL CHECK (octet_length(from_id) BETWEEN 1 AND 64),
	slot TEXT COLLATE BYTES NOT NULL CHECK (octet_length(slot) <= 64),
	position BIGINT NOT NULL,
	to_kind TEXT COLLATE BYTES NOT NULL CHECK (octet_length(to_kind) BETWEEN 1 AND 64),
	to_namespace TEXT COLLATE BYTES NOT NULL CHECK (octet_length(to_namespace) <= 128),
	to_name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(to_name) <= 512),
	to_id TEXT COLLATE BYTES NOT NULL CHECK (octet_length(to_id) <= 64),
	digest TEXT COLLATE BYTES NOT NULL CHECK (octet_length(digest) <= 128),
	PRIMARY KEY (from_kind, from_id, slot, position)
);
CREATE INDEX refs_id ON refs (to_kind, to_id);
CREATE INDEX refs_name ON refs (to_kind, to_name);
