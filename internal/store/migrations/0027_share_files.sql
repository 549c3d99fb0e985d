-- Images and files in shared conversations.

CREATE TABLE share_files (
	share TEXT COLLATE BYTES NOT NULL REFERENCES shares (id) ON DELETE CASCADE,
	ref TEXT COLLATE BYTES NOT NULL CHECK (octet_length(ref) = 64), -- a hash in hexadecimal
	name TEXT COLLATE BYTES NOT NULL CHECK (octet_length(name) <= 4096), -- path of a file, or '' for an image of a message
	type TEXT NOT NULL CHECK (octet_length(type) <= 64), -- MIME type of an image, or ''
	data BYTEA NOT NULL,
	PRIMARY KEY (share, ref, name)
);
