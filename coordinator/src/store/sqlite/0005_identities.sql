-- Who each agent is: its enrolment, where its journal was last seen, whether it is locked or removed. One JSON object.
CREATE TABLE identities (
    agent TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (json_valid(state))
) STRICT, WITHOUT ROWID;
