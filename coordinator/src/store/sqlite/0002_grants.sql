-- A token holds grants, each a role on the targets that fit a pattern. What was made before counts on every target.
ALTER TABLE tokens ADD COLUMN grants TEXT NOT NULL DEFAULT '[]';     -- JSON, like ["operator:shop@*"]
ALTER TABLE tokens ADD COLUMN created_at INTEGER;
ALTER TABLE tokens ADD COLUMN created_by TEXT;

UPDATE tokens SET grants = json_array(role || ':*');

ALTER TABLE tokens DROP COLUMN role;
