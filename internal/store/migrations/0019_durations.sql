-- How long each user's tool calls and runs of scripts took, as histograms.

CREATE TABLE durations (
	owner TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	skill TEXT COLLATE BYTES NOT NULL CHECK (octet_length(skill) <= 512), -- skill of a script; '' for a tool
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 512), -- name of the tool, or path of the script
	bucket BIGINT NOT NULL CHECK (bucket BETWEEN 0 AND 255),
	calls BIGINT NOT NULL,
	day BIGINT NOT NULL, -- day of the last call, in days since 1970 in UTC
	PRIMARY KEY (owner, skill, name, bucket)
);
CREATE INDEX durations_day ON durations (day);
