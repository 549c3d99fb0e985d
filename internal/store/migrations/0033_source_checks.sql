-- The last check of the source of an imported skill.

CREATE TABLE source_checks (
	skill_id TEXT COLLATE BYTES NOT NULL PRIMARY KEY REFERENCES skills (id) ON DELETE CASCADE,
	checked BIGINT NOT NULL,
	failed_since BIGINT NOT NULL, -- the first of the last failures; 0 after a success
	error TEXT NOT NULL CHECK (octet_length(error) <= 1024), -- '' after a success
	newest TEXT NOT NULL CHECK (octet_length(newest) <= 128) -- newer commit that the last success found, or ''
);
