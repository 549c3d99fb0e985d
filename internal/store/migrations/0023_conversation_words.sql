-- The words of each conversation's title and messages, for searches.

CREATE TABLE conversation_words (
	session TEXT COLLATE BYTES NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	step BIGINT NOT NULL, -- first step of this part of the conversation; 0 for the title
	words TEXT COLLATE BYTES NOT NULL CHECK (octet_length(words) <= 16777216), -- each as newline, word, tab, last step of this part with the word
	PRIMARY KEY (session, step)
);

-- Conversations of older programs, whose words are still to be added.
CREATE TABLE unindexed_sessions (
	session TEXT COLLATE BYTES NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO unindexed_sessions (session) SELECT id FROM sessions;
