-- Notifications are changed and deleted with what they are about.

CREATE INDEX notices_subject ON notices (kind, subject);
