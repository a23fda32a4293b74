-- By which hosts join: good once. The token itself is nowhere.
CREATE TABLE join_tokens (
    id         TEXT PRIMARY KEY,            -- by which it is listed and taken back
    hash       TEXT NOT NULL UNIQUE,        -- SHA-256 of the token
    agent      TEXT,                        -- the only name that may join with it
    labels     TEXT NOT NULL CHECK (json_valid(labels)),
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    revoked    INTEGER NOT NULL DEFAULT 0,
    used_by    TEXT,                        -- the agent that joined with it
    used_key   TEXT,                        -- SHA-256 of that agent's public key
    CHECK ((used_by IS NULL) = (used_key IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER a_join_token_is_used_once BEFORE UPDATE ON join_tokens
WHEN old.used_key IS NOT NULL AND (new.used_key IS NOT old.used_key OR new.used_by IS NOT old.used_by)
BEGIN SELECT RAISE(ABORT, 'a join token is used once'); END;

-- Every certificate that was signed for an agent, and every one that was revoked.
CREATE TABLE certificates (
    fingerprint TEXT PRIMARY KEY,           -- SHA-256 of the certificate
    agent       TEXT,                       -- missing where it was revoked before it was ever seen
    issued_at   INTEGER NOT NULL,
    expires_at  INTEGER,                    -- missing where it came from elsewhere
    revoked_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX certificates_of_an_agent ON certificates (agent);

CREATE TRIGGER a_revocation_stays BEFORE UPDATE ON certificates
WHEN old.revoked_at IS NOT NULL AND new.revoked_at IS NOT old.revoked_at
BEGIN SELECT RAISE(ABORT, 'a revocation stays'); END;

ALTER TABLE agents ADD COLUMN certificate_until INTEGER;
