-- What conversations take, and how tools of servers are defined.

CREATE TABLE meter (
	day BIGINT NOT NULL, -- days since 1970 in UTC
	owner TEXT COLLATE BYTES NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 128),
	namespace TEXT COLLATE BYTES NOT NULL CHECK (octet_length(namespace) <= 128), -- of the agent; '' is nobody's
	agent TEXT COLLATE BYTES NOT NULL CHECK (octet_length(agent) <= 1024),
	model TEXT COLLATE BYTES NOT NULL CHECK (octet_length(model) <= 512),
	turns BIGINT NOT NULL,
	loads BIGINT NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	input BIGINT NOT NULL,
	output BIGINT NOT NULL,
	cache_read BIGINT NOT NULL,
	cache_write BIGINT NOT NULL,
	PRIMARY KEY (day, owner, namespace, agent, model)
);
CREATE INDEX meter_owner ON meter (owner, day);
CREATE INDEX meter_namespace ON meter (namespace, day);

CREATE TABLE definitions (
	server TEXT COLLATE BYTES NOT NULL CHECK (octet_length(server) BETWEEN 1 AND 128), -- digest of its configuration
	tool TEXT COLLATE BYTES NOT NULL CHECK (octet_length(tool) BETWEEN 1 AND 4096),
	digest TEXT COLLATE BYTES NOT NULL CHECK (octet_length(digest) BETWEEN 1 AND 128),
	definition TEXT NOT NULL CHECK (octet_length(definition) <= 2097152),
	of_id TEXT COLLATE BYTES NOT NULL CHECK (octet_length(of_id) <= 64), -- of the kind or skill that brings the server
	accepted BOOLEAN NOT NULL,
	accepted_by TEXT COLLATE BYTES NOT NULL CHECK (octet_length(accepted_by) <= 128), -- '' is nobody: it was there first
	seen BIGINT NOT NULL,
	decided BIGINT NOT NULL, -- 0 is not yet
	PRIMARY KEY (server, tool, digest)
);
CREATE INDEX definitions_of ON definitions (of_id);
