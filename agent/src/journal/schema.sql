CREATE TABLE identity (
  only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
  incarnation TEXT NOT NULL,
  -- Counts commits. A journal that is behind what the coordinator has seen is a copy.
  commits     INTEGER NOT NULL,
  -- The token of the last Welcome.
  token       TEXT NOT NULL DEFAULT '',
  -- The highest coordinator position seen, JSON; empty before the first.
  position    TEXT NOT NULL DEFAULT ''
) STRICT;

-- Every attempt that was ever taken and not forgotten.
CREATE TABLE attempts (
  attempt    TEXT PRIMARY KEY,
  assignment TEXT NOT NULL,
  step       INTEGER NOT NULL,
  phase      TEXT NOT NULL,
  stop       TEXT NOT NULL
) STRICT;

-- Reports, written before they are first sent. AUTOINCREMENT: a sequence is never used twice.
CREATE TABLE outbox (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  claim    TEXT NOT NULL,
  said_at  INTEGER NOT NULL,
  body     TEXT NOT NULL,
  -- The disposition, JSON; NULL until it came.
  answer   TEXT
) STRICT;
CREATE INDEX outbox_unanswered ON outbox (sequence) WHERE answer IS NULL;

-- The highest fence seen per target.
CREATE TABLE fences (
  target TEXT PRIMARY KEY,
  fence  INTEGER NOT NULL
) STRICT;
CREATE TRIGGER fences_grow BEFORE UPDATE ON fences WHEN new.fence < old.fence
BEGIN SELECT raise(ABORT, 'a fence never goes back'); END;
