-- What was done and is about no target, as making a token. Chained: see the columns before_hash and hash.
CREATE TABLE acts (
    sequence    INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    by          TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    about       TEXT    NOT NULL,
    detail      TEXT    NOT NULL,
    before_hash TEXT    NOT NULL,
    hash        TEXT    NOT NULL
) STRICT;

CREATE TRIGGER acts_are_never_rewritten BEFORE UPDATE ON acts
BEGIN SELECT RAISE(ABORT, 'acts are never rewritten'); END;

CREATE TRIGGER acts_are_never_deleted BEFORE DELETE ON acts
BEGIN SELECT RAISE(ABORT, 'acts are never deleted'); END;

-- The newest one, so that one that is gone from the end is missed.
CREATE TABLE acts_head (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL,
    hash     TEXT    NOT NULL
) STRICT;
