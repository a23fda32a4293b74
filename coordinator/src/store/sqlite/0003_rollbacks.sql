-- Which rollbacks go back over a deployment: the chain from its other end.
CREATE TABLE rollbacks (
    undone   TEXT NOT NULL REFERENCES deployments (id),
    rollback TEXT NOT NULL REFERENCES deployments (id),
    PRIMARY KEY (undone, rollback)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER rollbacks_are_never_deleted BEFORE DELETE ON rollbacks
BEGIN SELECT RAISE(ABORT, 'rollbacks are never deleted'); END;
