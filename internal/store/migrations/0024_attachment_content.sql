-- Messages refer to images by their content, which is stored as a file.

CREATE INDEX attachments_content ON attachments (session, sha256);
CREATE INDEX attachment_versions_content ON attachment_versions (session, sha256);
