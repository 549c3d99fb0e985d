-- The audit log is searched by time, and requests for changes by their reviewer.

CREATE INDEX audit_at ON audit (at, seq);
CREATE INDEX change_requests_reviewer ON change_requests (reviewer, closed, id);
