-- Links with which users invite others to the hub, or to a group.

CREATE TABLE invitations (
	id TEXT COLLATE BYTES NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
	prefix TEXT COLLATE BYTES NOT NULL UNIQUE CHECK (octet_length(prefix) BETWEEN 1 AND 64),
	hash BYTEA NOT NULL,
	group_id TEXT COLLATE BYTES REFERENCES groups (id) ON DELETE CASCADE, -- NULL for the hub without a group
	role TEXT NOT NULL CHECK (role IN ('', 'owner', 'maintainer', 'developer', 'reporter')), -- '' without a group
	inviter TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	note TEXT NOT NULL CHECK (octet_length(note) <= 1024),
	uses BIGINT NOT NULL, -- limit of used
	used BIGINT NOT NULL,
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	revoked BIGINT NOT NULL -- 0 is not revoked
);
CREATE INDEX invitations_group ON invitations (group_id, id);
CREATE INDEX invitations_inviter ON invitations (inviter);
CREATE INDEX invitations_expires ON invitations (expires);

CREATE TABLE invitation_uses (
	invitation TEXT COLLATE BYTES NOT NULL REFERENCES invitations (id) ON DELETE CASCADE,
	user_id TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	used BIGINT NOT NULL,
	PRIMARY KEY (invitation, user_id)
);
CREATE INDEX invitation_uses_user ON invitation_uses (user_id);
