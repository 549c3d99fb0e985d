-- The time of the last message of the user. Lists of conversations are sorted by it.

ALTER TABLE sessions ADD COLUMN last_message BIGINT NOT NULL DEFAULT 0;
UPDATE sessions SET last_message = created;
UPDATE sessions SET last_message = (SELECT max(created) FROM events WHERE stream = sessions.id || '/in' AND kind = 'message')
	WHERE EXISTS (SELECT 1 FROM events WHERE stream = sessions.id || '/in' AND kind = 'message');
DROP INDEX sessions_list;
DROP INDEX sessions_folder;
CREATE INDEX sessions_list ON sessions (owner, archived, pinned, last_message, id);
CREATE INDEX sessions_folder ON sessions (owner, archived, folder, pinned, last_message, id);
