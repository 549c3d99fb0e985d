-- Requests for changes that block later versions, viewed files, who may approve, and
-- what an author says about a version.

CREATE TABLE change_requests (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	number BIGINT NOT NULL, -- the version; it may be deleted
	reviewer TEXT COLLATE BYTES NOT NULL CHECK (octet_length(reviewer) BETWEEN 1 AND 128),
	note TEXT NOT NULL CHECK (octet_length(note) <= 65536),
	created BIGINT NOT NULL,
	closed BIGINT NOT NULL -- 0 is open
);
CREATE INDEX change_requests_skill ON change_requests (skill_id, closed, id);

-- Added while changes were requested, so not published without an approval.
ALTER TABLE versions ADD COLUMN needs_approval BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE versions ADD COLUMN changelog TEXT NOT NULL DEFAULT '' CHECK (octet_length(changelog) <= 1024);

-- The group whose members must approve, '' is the group itself, and their lowest role.
ALTER TABLE groups ADD COLUMN approver_group TEXT COLLATE BYTES NOT NULL DEFAULT '' CHECK (octet_length(approver_group) <= 64);
ALTER TABLE groups ADD COLUMN approver_role TEXT COLLATE BYTES NOT NULL DEFAULT 'maintainer' CHECK (approver_role IN ('maintainer', 'owner', 'developer', 'reporter'));

-- The content of the files that users viewed in reviews.
CREATE TABLE viewed_files (
	user_id TEXT COLLATE BYTES NOT NULL CHECK (octet_length(user_id) BETWEEN 1 AND 128),
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	path TEXT COLLATE BYTES NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 1024),
	sha256 TEXT COLLATE BYTES NOT NULL CHECK (octet_length(sha256) = 64),
	PRIMARY KEY (user_id, skill_id, path)
);
CREATE INDEX viewed_files_skill ON viewed_files (skill_id);
