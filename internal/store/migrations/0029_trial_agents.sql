-- Documents of agents that are tried in a conversation before they are saved.

CREATE TABLE trial_agents (
	session TEXT COLLATE BYTES NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
	documents BYTEA NOT NULL
);
