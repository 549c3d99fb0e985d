-- Conversations, what happened in streams, who has which work, and questions.

CREATE TABLE sessions (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	owner TEXT COLLATE BYTES NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 128),
	title TEXT NOT NULL CHECK (octet_length(title) <= 4096),
	agent TEXT COLLATE BYTES NOT NULL CHECK (octet_length(agent) <= 1024),
	data TEXT NOT NULL CHECK (octet_length(data) <= 1048576),
	generation BIGINT NOT NULL,
	created BIGINT NOT NULL,
	updated BIGINT NOT NULL
);
CREATE INDEX sessions_owner ON sessions (owner, id);

CREATE TABLE events (
	stream TEXT COLLATE BYTES NOT NULL CHECK (octet_length(stream) BETWEEN 1 AND 256),
	seq BIGINT NOT NULL,
	kind TEXT NOT NULL CHECK (octet_length(kind) <= 256),
	data TEXT NOT NULL CHECK (octet_length(data) <= 16777216),
	created BIGINT NOT NULL,
	PRIMARY KEY (stream, seq)
);

CREATE TABLE leases (
	name TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 256),
	node TEXT COLLATE BYTES NOT NULL CHECK (octet_length(node) <= 256), -- '' is nobody
	fence BIGINT NOT NULL,
	until BIGINT NOT NULL, -- by the clock of the database
	span BIGINT NOT NULL -- for how long it was last taken
);
CREATE INDEX leases_until ON leases (until);

CREATE TABLE asks (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 256),
	session TEXT COLLATE BYTES NOT NULL CHECK (octet_length(session) <= 64),
	principal TEXT COLLATE BYTES NOT NULL CHECK (octet_length(principal) <= 256),
	data TEXT NOT NULL CHECK (octet_length(data) <= 2097152),
	created BIGINT NOT NULL,
	deadline BIGINT NOT NULL, -- 0 is none
	settled BIGINT NOT NULL, -- 0 is open
	answer TEXT NOT NULL CHECK (octet_length(answer) <= 2097152)
);
CREATE INDEX asks_session ON asks (session, settled);
CREATE INDEX asks_principal ON asks (principal, settled);
CREATE INDEX asks_settled ON asks (settled, deadline);
