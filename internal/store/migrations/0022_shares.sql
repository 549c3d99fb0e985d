-- Snapshots of conversations that their owners share.

CREATE TABLE shares (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	link TEXT COLLATE BYTES NOT NULL UNIQUE CHECK (octet_length(link) BETWEEN 22 AND 64), -- secret part of the address
	session TEXT COLLATE BYTES NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	owner TEXT COLLATE BYTES NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 128),
	audience TEXT NOT NULL CHECK (octet_length(audience) BETWEEN 1 AND 64),
	title TEXT NOT NULL CHECK (octet_length(title) <= 4096),
	size BIGINT NOT NULL, -- of the snapshot, in bytes
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX shares_owner ON shares (owner, id);
CREATE INDEX shares_session ON shares (session);
CREATE INDEX shares_expires ON shares (expires);

-- Apart from the other columns, so that lists do not read the snapshots.
CREATE TABLE share_snapshots (
	share TEXT COLLATE BYTES NOT NULL PRIMARY KEY REFERENCES shares (id) ON DELETE CASCADE,
	data BYTEA NOT NULL
);

-- Who opened a share on which day, so that the audit log has one record for it.
CREATE TABLE share_views (
	share TEXT COLLATE BYTES NOT NULL REFERENCES shares (id) ON DELETE CASCADE,
	viewer TEXT COLLATE BYTES NOT NULL CHECK (octet_length(viewer) <= 128), -- '' without a sign-in
	day BIGINT NOT NULL, -- in days since 1970 in UTC
	PRIMARY KEY (share, viewer, day)
);
