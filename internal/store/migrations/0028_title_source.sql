-- Who gave a conversation its title. Titles of older programs are treated as given by the user.

ALTER TABLE sessions ADD COLUMN title_source TEXT NOT NULL DEFAULT 'user' CHECK (octet_length(title_source) <= 64);
