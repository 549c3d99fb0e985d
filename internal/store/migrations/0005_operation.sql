-- Leave that was given, what happened, what is used, and what is set.

CREATE TABLE grants (
	seq AUTONUMBER,
	id TEXT COLLATE BYTES NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 1 AND 256),
	principal TEXT COLLATE BYTES NOT NULL CHECK (octet_length(principal) BETWEEN 1 AND 256),
	subject TEXT COLLATE BYTES NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 256),
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) <= 1024),
	session TEXT COLLATE BYTES NOT NULL CHECK (octet_length(session) <= 64),
	data TEXT NOT NULL CHECK (octet_length(data) <= 1048576),
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL -- 0 is never
);
CREATE INDEX grants_subject ON grants (subject, principal);
CREATE INDEX grants_principal ON grants (principal);
CREATE INDEX grants_name ON grants (name);
CREATE INDEX grants_expires ON grants (expires);

CREATE TABLE audit (
	seq AUTONUMBER,
	at BIGINT NOT NULL,
	actor TEXT COLLATE BYTES NOT NULL CHECK (octet_length(actor) <= 256),
	action TEXT COLLATE BYTES NOT NULL CHECK (octet_length(action) <= 256),
	namespace TEXT COLLATE BYTES NOT NULL CHECK (octet_length(namespace) <= 128),
	subject TEXT COLLATE BYTES NOT NULL CHECK (octet_length(subject) <= 1024),
	decision TEXT NOT NULL CHECK (octet_length(decision) <= 64),
	details TEXT NOT NULL CHECK (octet_length(details) <= 1048576)
);
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_action ON audit (action, seq);
CREATE INDEX audit_namespace ON audit (namespace, seq);
CREATE INDEX audit_subject ON audit (subject, seq);

CREATE TABLE usage (
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	day BIGINT NOT NULL, -- days since 1970 in UTC
	loads BIGINT NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	tokens BIGINT NOT NULL,
	used BIGINT NOT NULL,
	PRIMARY KEY (skill_id, day)
);
CREATE INDEX usage_day ON usage (day);

CREATE TABLE secrets (
	owner TEXT COLLATE BYTES NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 256),
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 256),
	sealed BYTEA NOT NULL,
	key_id TEXT COLLATE BYTES NOT NULL CHECK (octet_length(key_id) <= 128),
	updated_by TEXT COLLATE BYTES NOT NULL,
	updated BIGINT NOT NULL,
	PRIMARY KEY (owner, name)
);
CREATE INDEX secrets_key ON secrets (key_id);

CREATE TABLE settings (
	scope TEXT COLLATE BYTES NOT NULL CHECK (octet_length(scope) BETWEEN 1 AND 128),
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 256),
	value TEXT NOT NULL CHECK (octet_length(value) <= 1048576),
	generation BIGINT NOT NULL,
	updated_by TEXT COLLATE BYTES NOT NULL,
	updated BIGINT NOT NULL,
	PRIMARY KEY (scope, name)
);

CREATE TABLE notices (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	kind TEXT COLLATE BYTES NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 64),
	subject TEXT COLLATE BYTES NOT NULL CHECK (octet_length(subject) <= 512),
	data TEXT NOT NULL CHECK (octet_length(data) <= 65536),
	created BIGINT NOT NULL,
	seen BIGINT NOT NULL, -- 0 is not yet
	UNIQUE (user_id, kind, subject)
);
CREATE INDEX notices_user ON notices (user_id, id);

CREATE TABLE ratings (
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	stars BIGINT NOT NULL CHECK (stars BETWEEN 1 AND 5),
	review TEXT NOT NULL CHECK (octet_length(review) <= 65536),
	updated BIGINT NOT NULL,
	PRIMARY KEY (skill_id, user_id)
);
CREATE INDEX ratings_user ON ratings (user_id);

CREATE TABLE defaults (
	namespace TEXT COLLATE BYTES NOT NULL CHECK (octet_length(namespace) BETWEEN 1 AND 128),
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	preload BOOLEAN NOT NULL,
	exceptions TEXT NOT NULL CHECK (octet_length(exceptions) <= 1048576),
	created_by TEXT COLLATE BYTES NOT NULL,
	created BIGINT NOT NULL,
	PRIMARY KEY (namespace, skill_id)
);
CREATE INDEX defaults_skill ON defaults (skill_id);
