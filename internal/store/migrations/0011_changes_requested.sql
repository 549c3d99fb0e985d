-- Rejected versions whose reviewer asked for changes.

ALTER TABLE versions ADD COLUMN changes_requested BOOLEAN NOT NULL DEFAULT FALSE;
