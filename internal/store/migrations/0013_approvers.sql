-- How many reviewers must approve a version of a group's skill, and who did so far.

ALTER TABLE groups ADD COLUMN required_approvers BIGINT NOT NULL DEFAULT 1 CHECK (required_approvers BETWEEN 1 AND 10);

ALTER TABLE versions ADD COLUMN approvers TEXT NOT NULL DEFAULT '' CHECK (octet_length(approvers) <= 65536);
