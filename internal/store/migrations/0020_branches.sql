-- Transcripts of conversations may have branches, which older programs do not know.

CREATE INDEX events_branched ON events (stream, seq) WHERE kind = 'branched';
