-- Who is there: users, how they sign in, and the groups they are in.

CREATE TABLE users (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	name TEXT COLLATE BYTES NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 256),
	display TEXT NOT NULL CHECK (octet_length(display) <= 1024),
	email TEXT NOT NULL CHECK (octet_length(email) <= 1024),
	password TEXT NOT NULL CHECK (octet_length(password) <= 1024),
	admin BOOLEAN NOT NULL,
	disabled BOOLEAN NOT NULL,
	created BIGINT NOT NULL,
	seen BIGINT NOT NULL
);

CREATE TABLE identities (
	issuer TEXT COLLATE BYTES NOT NULL CHECK (octet_length(issuer) BETWEEN 1 AND 1024),
	subject TEXT COLLATE BYTES NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 1024),
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);

CREATE TABLE tokens (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	name TEXT NOT NULL CHECK (octet_length(name) <= 1024),
	prefix TEXT COLLATE BYTES NOT NULL UNIQUE CHECK (octet_length(prefix) BETWEEN 1 AND 64),
	hash BYTEA NOT NULL,
	scopes TEXT NOT NULL,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	used BIGINT NOT NULL
);
CREATE INDEX tokens_user ON tokens (user_id);

CREATE TABLE logins (
	hash BYTEA NOT NULL PRIMARY KEY,
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	agent TEXT NOT NULL CHECK (octet_length(agent) <= 1024),
	created BIGINT NOT NULL,
	used BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX logins_user ON logins (user_id);
CREATE INDEX logins_expires ON logins (expires);

CREATE TABLE groups (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	name TEXT COLLATE BYTES NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 256),
	display TEXT NOT NULL CHECK (octet_length(display) <= 1024),
	description TEXT NOT NULL CHECK (octet_length(description) <= 16384),
	created BIGINT NOT NULL
);

CREATE TABLE members (
	group_id TEXT COLLATE BYTES NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	role TEXT NOT NULL CHECK (role IN ('owner', 'maintainer', 'developer', 'reporter')),
	since BIGINT NOT NULL,
	PRIMARY KEY (group_id, user_id)
);
CREATE INDEX members_user ON members (user_id);
