-- Folded states of conversations, from which a turn continues instead of reading
-- the whole transcript. Each can be computed again from the transcript.

CREATE TABLE snapshots (
	session TEXT COLLATE BYTES NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	position BIGINT NOT NULL, -- number of the last event in the state
	format BIGINT NOT NULL,
	sum TEXT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (session, position)
);
