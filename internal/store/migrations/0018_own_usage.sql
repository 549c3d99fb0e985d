-- How often each user used each skill, for the order of that user's lists of skills.
-- The uses before the last day with uses are separate, so that an order of a day
-- need not count the uses of that day.

CREATE TABLE own_usage (
	owner TEXT COLLATE BYTES NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	skill_id TEXT COLLATE BYTES NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
	day BIGINT NOT NULL, -- last day with uses, in days since 1970 in UTC
	uses BIGINT NOT NULL, -- on that day
	earlier_day BIGINT NOT NULL, -- last day with uses before that, or 0
	earlier_uses BIGINT NOT NULL, -- until that day
	PRIMARY KEY (owner, skill_id)
);
CREATE INDEX own_usage_skill ON own_usage (skill_id);

ALTER TABLE usage_pending ADD COLUMN owner TEXT COLLATE BYTES REFERENCES users (id) ON DELETE SET NULL;
CREATE INDEX usage_pending_owner ON usage_pending (owner);
