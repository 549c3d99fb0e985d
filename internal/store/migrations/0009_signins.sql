-- People who are signed in to MCP servers: what they were given is sealed.

CREATE TABLE signins (
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	server BYTEA NOT NULL, -- the hash of which one, as it is defined
	sealed BYTEA NOT NULL,
	key_id TEXT COLLATE BYTES NOT NULL CHECK (octet_length(key_id) <= 128),
	began BIGINT NOT NULL, -- a renewal does not change it
	PRIMARY KEY (user_id, server)
);

-- Those that were begun, until the browser comes back.
CREATE TABLE signin_attempts (
	state BYTEA NOT NULL PRIMARY KEY, -- the hash of it
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	browser BYTEA NOT NULL, -- the hash of what its cookie has
	sealed BYTEA NOT NULL,
	until BIGINT NOT NULL -- by the clock of the database
);
CREATE INDEX signin_attempts_user ON signin_attempts (user_id, until);
CREATE INDEX signin_attempts_until ON signin_attempts (until);

-- Servers that refused who was not signed in.
CREATE TABLE signin_servers (
	server BYTEA NOT NULL PRIMARY KEY,
	seen BIGINT NOT NULL
);
CREATE INDEX signin_servers_seen ON signin_servers (seen);
