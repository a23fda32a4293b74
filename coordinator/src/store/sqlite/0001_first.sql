-- Times are microseconds since 1970, unless a name ends in _ms. The views at the end show them for reading.

CREATE TABLE store (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    id      TEXT    NOT NULL,
    epoch   INTEGER NOT NULL CHECK (epoch BETWEEN 1 AND 16777215),
    made_at INTEGER NOT NULL
) STRICT;

-- One row for each start of a coordinator.
CREATE TABLE runs (
    run        INTEGER PRIMARY KEY,
    base_ms    INTEGER NOT NULL,            -- what all earlier runs served
    served_ms  INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL
) STRICT;

CREATE TRIGGER served_time_only_grows BEFORE UPDATE ON runs
WHEN NEW.served_ms < OLD.served_ms OR NEW.base_ms <> OLD.base_ms
BEGIN SELECT RAISE(ABORT, 'served time only grows'); END;

CREATE TABLE targets (
    name         TEXT    PRIMARY KEY,
    spec         TEXT    NOT NULL,          -- JSON
    declared_by  TEXT    NOT NULL,
    declared_at  INTEGER NOT NULL,
    sequence     INTEGER NOT NULL,          -- its last event
    last_hash    TEXT    NOT NULL,          -- of that event
    waiting      INTEGER NOT NULL,          -- how many deployments wait
    busy         INTEGER NOT NULL           -- whether one is current or waits
) STRICT;

CREATE INDEX busy_targets ON targets (name) WHERE busy = 1;

-- The truth. Chained per target: see the columns before_hash and hash.
CREATE TABLE events (
    global_order INTEGER PRIMARY KEY AUTOINCREMENT,
    target       TEXT    NOT NULL REFERENCES targets (name),
    sequence     INTEGER NOT NULL,
    deployment   TEXT,
    at           INTEGER NOT NULL,
    body         TEXT    NOT NULL,          -- JSON
    before_hash  TEXT    NOT NULL,
    hash         TEXT    NOT NULL,
    UNIQUE (target, sequence)
) STRICT;

CREATE INDEX events_of_deployment ON events (deployment, global_order) WHERE deployment IS NOT NULL;

CREATE TRIGGER events_are_never_rewritten BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are never rewritten'); END;

CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;

-- A target's state after one of its events: a shortcut for loading, never the truth.
CREATE TABLE snapshots (
    target   TEXT    NOT NULL REFERENCES targets (name),
    sequence INTEGER NOT NULL,
    state    TEXT    NOT NULL,              -- JSON
    PRIMARY KEY (target, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE deployments (
    place          INTEGER PRIMARY KEY,     -- in the order of submission, over all targets
    id             TEXT    NOT NULL UNIQUE,
    target         TEXT    NOT NULL REFERENCES targets (name),
    number         INTEGER NOT NULL,        -- shop@prod#12
    request        TEXT    NOT NULL UNIQUE,
    request_digest TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN
                     ('queued', 'active', 'uncertain', 'held', 'succeeded', 'failed', 'cancelled')),
    submitted_by   TEXT    NOT NULL,
    submitted_at   INTEGER NOT NULL,
    ended_at       INTEGER,
    last_evidence  INTEGER NOT NULL,
    record         TEXT    NOT NULL,        -- JSON: all that is recorded of it
    UNIQUE (target, number),
    CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (ended_at IS NOT NULL))
) STRICT;

CREATE INDEX deployments_by_state ON deployments (state, place);

CREATE TRIGGER ended_deployments_stay_as_they_ended BEFORE UPDATE ON deployments
WHEN OLD.ended_at IS NOT NULL AND (NEW.state <> OLD.state OR NEW.ended_at IS NOT OLD.ended_at)
BEGIN SELECT RAISE(ABORT, 'ended deployments stay as they ended'); END;

CREATE TRIGGER deployments_keep_their_identity BEFORE UPDATE ON deployments
WHEN NEW.id <> OLD.id OR NEW.target <> OLD.target OR NEW.number <> OLD.number OR NEW.request <> OLD.request
  OR NEW.request_digest <> OLD.request_digest OR NEW.last_evidence < OLD.last_evidence
BEGIN SELECT RAISE(ABORT, 'deployments keep their identity'); END;

CREATE TRIGGER deployments_are_never_deleted BEFORE DELETE ON deployments
BEGIN SELECT RAISE(ABORT, 'deployments are never deleted'); END;

CREATE TABLE attempts (
    id          TEXT    PRIMARY KEY,
    deployment  TEXT    NOT NULL REFERENCES deployments (id),
    target      TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    agent       TEXT    NOT NULL,
    incarnation TEXT    NOT NULL,
    fence       INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    UNIQUE (target, fence)
) STRICT, WITHOUT ROWID;

CREATE INDEX attempts_of_deployment ON attempts (deployment, number);

CREATE TRIGGER ended_attempts_stay_as_they_ended BEFORE UPDATE ON attempts
WHEN OLD.state <> NEW.state
 AND (OLD.state NOT IN ('offered', 'running', 'uncertain')
      OR (OLD.state = 'uncertain' AND NEW.state <> 'resolved'))
BEGIN SELECT RAISE(ABORT, 'ended attempts stay as they ended'); END;

CREATE TRIGGER attempts_keep_their_identity BEFORE UPDATE ON attempts
WHEN NEW.deployment <> OLD.deployment OR NEW.fence <> OLD.fence OR NEW.agent <> OLD.agent
  OR NEW.incarnation <> OLD.incarnation
BEGIN SELECT RAISE(ABORT, 'attempts keep their identity'); END;

CREATE TRIGGER attempts_are_never_deleted BEFORE DELETE ON attempts
BEGIN SELECT RAISE(ABORT, 'attempts are never deleted'); END;

-- One reservation, one open permit, one growing fence per target.
CREATE TABLE reservations (
    target     TEXT    PRIMARY KEY,
    deployment TEXT    NOT NULL UNIQUE,
    since      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE open_permits (
    target     TEXT    PRIMARY KEY,
    attempt    TEXT    NOT NULL REFERENCES attempts (id),
    step       TEXT    NOT NULL,
    since      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE fences (
    target TEXT    PRIMARY KEY,
    fence  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER fences_only_grow BEFORE UPDATE ON fences WHEN NEW.fence <= OLD.fence
BEGIN SELECT RAISE(ABORT, 'fences only grow'); END;

CREATE TRIGGER fences_are_never_deleted BEFORE DELETE ON fences
BEGIN SELECT RAISE(ABORT, 'fences are never deleted'); END;

CREATE TABLE evidence (
    deployment  TEXT    NOT NULL REFERENCES deployments (id),
    sequence    INTEGER NOT NULL,
    id          TEXT    NOT NULL UNIQUE,
    kind        TEXT    NOT NULL,
    received_at INTEGER NOT NULL,
    body        TEXT    NOT NULL,           -- JSON
    PRIMARY KEY (deployment, sequence)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER evidence_is_never_rewritten BEFORE UPDATE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is never rewritten'); END;

CREATE TRIGGER evidence_is_never_deleted BEFORE DELETE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is never deleted'); END;

-- What was answered to each report, so that one that comes again is told the same.
CREATE TABLE reports (
    incarnation TEXT    NOT NULL,
    sequence    INTEGER NOT NULL,
    digest      TEXT    NOT NULL,
    disposition TEXT    NOT NULL,           -- JSON
    PRIMARY KEY (incarnation, sequence, digest)
) STRICT, WITHOUT ROWID;

-- Reports on deployments that this store does not know.
CREATE TABLE orphan_reports (
    incarnation TEXT    NOT NULL,
    sequence    INTEGER NOT NULL,
    digest      TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    claim       TEXT    NOT NULL,           -- JSON
    report      TEXT    NOT NULL,           -- JSON
    received_at INTEGER NOT NULL,
    PRIMARY KEY (incarnation, sequence, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX orphan_reports_of_agent ON orphan_reports (agent, received_at);

-- Which thing belongs to which target. The selector is '' where every agent reaches it.
CREATE TABLE resources (
    target   TEXT NOT NULL REFERENCES targets (name),
    name     TEXT NOT NULL,
    place    TEXT NOT NULL,
    selector TEXT NOT NULL,                 -- JSON
    PRIMARY KEY (target, name),
    UNIQUE (place, selector)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    name       TEXT PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,        -- SHA-256 of the token
    role       TEXT NOT NULL,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
    name        TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,              -- SHA-256 of the certificate
    incarnation TEXT NOT NULL,
    labels      TEXT NOT NULL,              -- JSON
    last_heard  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The latest refusals.
CREATE TABLE refusals (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    who   TEXT    NOT NULL,
    what  TEXT    NOT NULL,
    why   TEXT    NOT NULL,
    at    INTEGER NOT NULL
) STRICT;

CREATE VIEW readable_events AS
SELECT global_order, target, sequence, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000000.0, 'unixepoch') AS at,
       json_extract(body, '$.event') AS event, deployment, body
FROM events;

CREATE VIEW readable_deployments AS
SELECT d.target || '#' || d.number AS deployment, d.state, r.since IS NOT NULL AS holds_target,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.submitted_at / 1000000.0, 'unixepoch') AS submitted_at, d.submitted_by,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.ended_at / 1000000.0, 'unixepoch') AS ended_at, d.id
FROM deployments d LEFT JOIN reservations r ON r.deployment = d.id;
