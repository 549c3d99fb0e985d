-- Lists search the index in memory, so that no query reads this text.
ALTER TABLE skills DROP COLUMN folded;
