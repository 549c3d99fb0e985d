-- Requests that their clients may send again, with their responses.

CREATE TABLE requests (
	principal TEXT COLLATE BYTES NOT NULL CHECK (octet_length(principal) BETWEEN 1 AND 128),
	label TEXT COLLATE BYTES NOT NULL CHECK (octet_length(label) BETWEEN 1 AND 200), -- that the client made
	digest TEXT COLLATE BYTES NOT NULL CHECK (octet_length(digest) <= 128),
	created BIGINT NOT NULL,
	status BIGINT NOT NULL, -- of the response; 0 while there is none
	response TEXT NOT NULL CHECK (octet_length(response) <= 16777216), -- encrypted
	PRIMARY KEY (principal, label)
);
CREATE INDEX requests_created ON requests (created);
