-- Agents that operators let have nothing new.
CREATE TABLE drains (
    agent  TEXT PRIMARY KEY,
    by     TEXT    NOT NULL,
    reason TEXT    NOT NULL,
    since  INTEGER NOT NULL
) STRICT;
