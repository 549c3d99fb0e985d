-- Messages that their clients may send again, and answers of which no tokens are told.

CREATE TABLE sent (
	session TEXT COLLATE BYTES NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	principal TEXT COLLATE BYTES NOT NULL CHECK (octet_length(principal) BETWEEN 1 AND 128),
	label TEXT COLLATE BYTES NOT NULL CHECK (octet_length(label) BETWEEN 1 AND 200), -- that the client made
	digest TEXT COLLATE BYTES NOT NULL CHECK (octet_length(digest) <= 128),
	input BIGINT NOT NULL,
	PRIMARY KEY (session, principal, label)
);

ALTER TABLE meter ADD COLUMN untold BIGINT NOT NULL DEFAULT 0;
