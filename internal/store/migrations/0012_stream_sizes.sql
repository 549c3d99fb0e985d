-- Sizes of event streams. A session's streams are named by its id, which a slash
-- and another word may follow.

CREATE TABLE stream_sizes (
	session TEXT COLLATE BYTES NOT NULL,
	stream TEXT COLLATE BYTES NOT NULL,
	bytes BIGINT NOT NULL, -- of the data of all events
	PRIMARY KEY (session, stream)
);
INSERT INTO stream_sizes (session, stream, bytes)
	SELECT replace(replace(stream, '/in', ''), '/out', ''), stream, SUM(octet_length(data)) FROM events GROUP BY stream;
