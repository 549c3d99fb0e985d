-- Counts that were not added to meter and usage yet. Turns only insert into these
-- tables, so that they never wait for each other's rows.

CREATE TABLE meter_pending (
	id AUTONUMBER,
	day BIGINT NOT NULL,
	owner TEXT COLLATE BYTES NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 128),
	namespace TEXT COLLATE BYTES NOT NULL CHECK (octet_length(namespace) <= 128),
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
	untold BIGINT NOT NULL
);

CREATE TABLE usage_pending (
	id AUTONUMBER,
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	day BIGINT NOT NULL,
	loads BIGINT NOT NULL,
	calls BIGINT NOT NULL,
	errors BIGINT NOT NULL,
	tokens BIGINT NOT NULL,
	used BIGINT NOT NULL
);
