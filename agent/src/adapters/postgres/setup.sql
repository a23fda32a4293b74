-- Holdfast's record in this database. A database administrator installs it once and may run it again at any time: what is there
-- stays, and a raised fence never goes down. Needs PostgreSQL 13 or later.
--
-- | who         | may                                                                                    |
-- | ----------- | -------------------------------------------------------------------------------------- |
-- | deploy      | apply, finish, begin_statement, end_statement: change the resource once, under a fence |
-- | fence       | raise_fence                                                                            |
-- | all three   | read                                                                                   |
-- | the owner   | anything. It is the one who ran this, and none of the three                             |
--
-- Refusals have a SQLSTATE of their own:
--   ZH001 fenced off   ZH002 another revision   ZH003 another owner   ZH004 no such resource   ZH005 another role
--   ZH006 another content   ZH007 begun, and not known to be done   ZH008 taken over   ZH009 the ledger and the row don't agree
--
-- What runs as the owner names everything in full, takes no SQL from outside, and looks nothing up in a schema of others.
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

DO $holdfast$
BEGIN
  IF current_setting('server_version_num')::integer < 130000 THEN
    RAISE EXCEPTION 'this needs PostgreSQL 13 or later';
  END IF;
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'holdfast' AND nspowner <> current_user::regrole) THEN
    RAISE EXCEPTION 'the schema "holdfast" is there and is not yours: run this as its owner, or find out who made it';
  END IF;
END
$holdfast$;

CREATE SCHEMA IF NOT EXISTS holdfast;
REVOKE ALL ON SCHEMA holdfast FROM PUBLIC;

-- What is changed: a schema.
CREATE TABLE IF NOT EXISTS holdfast.resource (
  schema_name   text PRIMARY KEY,
  -- `target/resource`, who alone changes it.
  owner         text NOT NULL UNIQUE,
  identity      uuid NOT NULL DEFAULT gen_random_uuid(),
  deploy_role   text NOT NULL,
  fence_role    text NOT NULL,
  highest_fence bigint NOT NULL DEFAULT 0 CHECK (highest_fence >= 0),
  -- The version of the last migration.
  revision      text,
  -- The operation that ran it.
  operation     text
);

-- Whose turn it is: locked while a migration runs. No raise ever waits for it.
CREATE TABLE IF NOT EXISTS holdfast.turn (
  schema_name text PRIMARY KEY
);

-- The ledger: what ran.
CREATE TABLE IF NOT EXISTS holdfast.migration (
  schema_name text NOT NULL,
  version     text NOT NULL,
  name        text NOT NULL,
  -- SHA-256 of the file.
  checksum    text NOT NULL,
  operation   text NOT NULL,
  fence       bigint NOT NULL,
  -- The application_name of the session that runs it.
  session     text NOT NULL,
  run_by      text NOT NULL DEFAULT session_user,
  begun_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Not there: begun outside of a transaction, and not known to be done.
  done_at     timestamptz,
  PRIMARY KEY (schema_name, version)
);

-- Begun outside of a transaction, not known to be done, and begun again by another attempt: nobody ever says what became of these.
CREATE TABLE IF NOT EXISTS holdfast.abandoned (
  schema_name text NOT NULL,
  version     text NOT NULL,
  operation   text NOT NULL,
  fence       bigint NOT NULL,
  begun_at    timestamptz NOT NULL,
  PRIMARY KEY (schema_name, version, fence)
);

-- Operations whose whole effect is there.
CREATE TABLE IF NOT EXISTS holdfast.operation (
  schema_name text NOT NULL,
  operation   text NOT NULL,
  fence       bigint NOT NULL,
  revision    text NOT NULL,
  done_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (schema_name, operation)
);

-- The resource, as far as that role may act on it under that fence.
CREATE OR REPLACE FUNCTION holdfast.admitted(r holdfast.resource, an_owner text, a_role text, a_fence bigint)
RETURNS holdfast.resource LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
  IF r.schema_name IS NULL THEN
    RAISE EXCEPTION 'the schema is no resource here' USING ERRCODE = 'ZH004';
  ELSIF r.owner <> an_owner THEN
    RAISE EXCEPTION 'the schema "%" belongs to %, not to %', r.schema_name, r.owner, an_owner USING ERRCODE = 'ZH003';
  ELSIF NOT pg_has_role(session_user, a_role, 'MEMBER') THEN
    RAISE EXCEPTION '"%" is not the role for that on schema "%"', session_user, r.schema_name USING ERRCODE = 'ZH005';
  ELSIF a_fence < r.highest_fence THEN
    RAISE EXCEPTION 'the fence is below the highest seen' USING ERRCODE = 'ZH001', DETAIL = r.highest_fence::text;
  END IF;
  RETURN r;
END
$holdfast$;

-- Its row, locked until the transaction ends: nobody else raises the fence or writes a revision meanwhile.
CREATE OR REPLACE FUNCTION holdfast.locked(a_schema text, an_owner text, a_role_kind text, a_fence bigint)
RETURNS holdfast.resource LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  r holdfast.resource;
BEGIN
  SELECT * INTO r FROM holdfast.resource WHERE schema_name = a_schema FOR NO KEY UPDATE;
  RETURN holdfast.admitted(r, an_owner, CASE a_role_kind WHEN 'fence' THEN r.fence_role ELSE r.deploy_role END, a_fence);
END
$holdfast$;

-- The first migration of an operation meets the expected revision, each further one what the operation itself left.
CREATE OR REPLACE FUNCTION holdfast.expect(r holdfast.resource, an_operation text, an_expected text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  has_begun boolean := EXISTS (
    SELECT FROM holdfast.migration m
    WHERE m.schema_name = r.schema_name AND m.operation = an_operation AND m.done_at IS NOT NULL);
BEGIN
  IF has_begun AND r.operation IS DISTINCT FROM an_operation THEN
    RAISE EXCEPTION 'another operation came in between: %', r.operation USING ERRCODE = 'ZH002', DETAIL = coalesce(r.revision, '');
  ELSIF NOT has_begun AND an_expected IS NOT NULL AND r.revision IS DISTINCT FROM an_expected THEN
    RAISE EXCEPTION 'the revision is %', coalesce(r.revision, 'none yet') USING ERRCODE = 'ZH002', DETAIL = coalesce(r.revision, '');
  END IF;
END
$holdfast$;

-- What is told is on disk, whatever the role's setting says.
CREATE OR REPLACE FUNCTION holdfast.durably() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'local', true);
  END IF;
END
$holdfast$;

-- Waits until no other migration of the schema runs. False: that version is there already.
CREATE OR REPLACE FUNCTION holdfast.take_turn(a_schema text, an_owner text, an_operation text, a_fence bigint, an_expected text, a_version text, a_checksum text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  r holdfast.resource;
  m holdfast.migration;
BEGIN
  SELECT * INTO r FROM holdfast.resource WHERE schema_name = a_schema;
  r := holdfast.admitted(r, an_owner, r.deploy_role, a_fence);
  PERFORM FROM holdfast.turn WHERE schema_name = a_schema FOR UPDATE;
  -- Anew: it may have been a long wait.
  SELECT * INTO r FROM holdfast.resource WHERE schema_name = a_schema;
  r := holdfast.admitted(r, an_owner, r.deploy_role, a_fence);
  SELECT * INTO m FROM holdfast.migration WHERE schema_name = a_schema AND version = a_version;
  IF FOUND AND m.done_at IS NOT NULL THEN
    IF m.checksum <> a_checksum THEN
      RAISE EXCEPTION 'it was applied as % with another content', m.name USING ERRCODE = 'ZH006';
    END IF;
    RETURN false;
  END IF;
  SELECT * INTO m FROM holdfast.migration WHERE schema_name = a_schema AND done_at IS NULL LIMIT 1;
  IF FOUND THEN
    PERFORM holdfast.take_over(r, m, a_fence, a_version);
  END IF;
  PERFORM holdfast.expect(r, an_operation, an_expected);
  RETURN true;
END
$holdfast$;

-- What was begun and is not known to be done is begun again only in another attempt, and when nothing runs it any more.
CREATE OR REPLACE FUNCTION holdfast.take_over(r holdfast.resource, m holdfast.migration, a_fence bigint, a_version text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  backend integer := (
    SELECT a.pid FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.application_name = m.session AND a.pid <> pg_backend_pid()
      AND pg_has_role(a.usesysid, r.deploy_role, 'MEMBER') LIMIT 1);
BEGIN
  IF backend IS NOT NULL THEN
    RAISE EXCEPTION 'version % is run by backend % for %', m.version, backend, m.operation USING ERRCODE = 'ZH007';
  ELSIF m.version <> a_version OR m.fence >= a_fence THEN
    RAISE EXCEPTION 'version % was begun by % and is not known to be done', m.version, m.operation USING ERRCODE = 'ZH007';
  END IF;
END
$holdfast$;

-- A row of that version that was begun, and is taken over, gives way; one that is done does not.
CREATE OR REPLACE FUNCTION holdfast.abandon(a_schema text, a_version text, a_fence bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
  INSERT INTO holdfast.abandoned (schema_name, version, operation, fence, begun_at)
    SELECT m.schema_name, m.version, m.operation, m.fence, m.begun_at FROM holdfast.migration m
    WHERE m.schema_name = a_schema AND m.version = a_version AND m.done_at IS NULL AND m.fence < a_fence;
  DELETE FROM holdfast.migration m
    WHERE m.schema_name = a_schema AND m.version = a_version AND m.done_at IS NULL AND m.fence < a_fence;
END
$holdfast$;

-- Writes what the schema is at now, by which operation, and with its last version that the operation is whole. The row is locked.
CREATE OR REPLACE FUNCTION holdfast.leave(a_schema text, an_operation text, a_fence bigint, a_version text, is_last boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
  UPDATE holdfast.resource SET highest_fence = greatest(highest_fence, a_fence), revision = a_version, operation = an_operation
    WHERE schema_name = a_schema;
  IF is_last THEN
    INSERT INTO holdfast.operation (schema_name, operation, fence, revision) VALUES (a_schema, an_operation, a_fence, a_version);
  END IF;
  PERFORM holdfast.durably();
END
$holdfast$;

-- Writes that a version is there: the fence and the revision are compared under the row's lock, in the transaction of the effect.
CREATE OR REPLACE FUNCTION holdfast.record(a_schema text, an_owner text, an_operation text, a_fence bigint, an_expected text, a_version text, a_name text, a_checksum text, is_last boolean)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  r holdfast.resource := holdfast.locked(a_schema, an_owner, 'deploy', a_fence);
BEGIN
  PERFORM holdfast.expect(r, an_operation, an_expected);
  PERFORM holdfast.abandon(a_schema, a_version, a_fence);
  INSERT INTO holdfast.migration (schema_name, version, name, checksum, operation, fence, session, begun_at, done_at)
    VALUES (a_schema, a_version, a_name, a_checksum, an_operation, a_fence, current_setting('application_name'), now(), clock_timestamp());
  PERFORM holdfast.leave(a_schema, an_operation, a_fence, a_version, is_last);
END
$holdfast$;

-- Runs a migration as who calls it, and records it. One statement is one transaction, and EXECUTE takes no COMMIT: all or nothing.
-- What the migration deferred runs here too, and a cursor that it holds is closed: at COMMIT both would run with the row locked, and
-- a raise would wait for them.
-- False: it had been applied before, and nothing ran.
CREATE OR REPLACE FUNCTION holdfast.apply(a_schema text, an_owner text, an_operation text, a_fence bigint, an_expected text, a_version text, a_name text, a_checksum text, is_last boolean, statements text)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
  IF NOT holdfast.take_turn(a_schema, an_owner, an_operation, a_fence, an_expected, a_version, a_checksum) THEN
    RETURN false;
  END IF;
  PERFORM set_config('search_path', quote_ident(a_schema) || ', pg_temp', true);
  EXECUTE statements;
  SET CONSTRAINTS ALL IMMEDIATE;
  EXECUTE 'CLOSE ALL';
  PERFORM holdfast.record(a_schema, an_owner, an_operation, a_fence, an_expected, a_version, a_name, a_checksum, is_last);
  RETURN true;
END
$holdfast$;

-- Records an operation that finds its revision there. False: it was recorded before.
CREATE OR REPLACE FUNCTION holdfast.finish(a_schema text, an_owner text, an_operation text, a_fence bigint, an_expected text, a_revision text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  r holdfast.resource := holdfast.locked(a_schema, an_owner, 'deploy', a_fence);
  is_new boolean := NOT EXISTS (SELECT FROM holdfast.operation o WHERE o.schema_name = a_schema AND o.operation = an_operation);
BEGIN
  IF is_new THEN
    PERFORM holdfast.expect(r, an_operation, an_expected);
    IF r.revision IS DISTINCT FROM a_revision THEN
      RAISE EXCEPTION 'the ledger ends with %, and the record has the revision %', a_revision, coalesce(r.revision, 'none yet')
        USING ERRCODE = 'ZH009';
    END IF;
    INSERT INTO holdfast.operation (schema_name, operation, fence, revision) VALUES (a_schema, an_operation, a_fence, a_revision);
    UPDATE holdfast.resource SET operation = an_operation WHERE schema_name = a_schema;
  END IF;
  UPDATE holdfast.resource SET highest_fence = a_fence WHERE schema_name = a_schema;
  PERFORM holdfast.durably();
  RETURN is_new;
END
$holdfast$;

-- Says that a statement outside of a transaction begins. False: that version is there already.
CREATE OR REPLACE FUNCTION holdfast.begin_statement(a_schema text, an_owner text, an_operation text, a_fence bigint, an_expected text, a_version text, a_name text, a_checksum text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
  IF NOT holdfast.take_turn(a_schema, an_owner, an_operation, a_fence, an_expected, a_version, a_checksum) THEN
    RETURN false;
  END IF;
  PERFORM holdfast.locked(a_schema, an_owner, 'deploy', a_fence);
  PERFORM holdfast.abandon(a_schema, a_version, a_fence);
  INSERT INTO holdfast.migration (schema_name, version, name, checksum, operation, fence, session)
    VALUES (a_schema, a_version, a_name, a_checksum, an_operation, a_fence, current_setting('application_name'));
  UPDATE holdfast.resource SET highest_fence = a_fence WHERE schema_name = a_schema;
  PERFORM holdfast.durably();
  RETURN true;
END
$holdfast$;

-- Says that it is done: an observation, and true under any fence, as long as nobody took the version over.
CREATE OR REPLACE FUNCTION holdfast.end_statement(a_schema text, an_owner text, an_operation text, a_fence bigint, a_version text, is_last boolean)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  r holdfast.resource := holdfast.locked(a_schema, an_owner, 'deploy', 9223372036854775807);
BEGIN
  UPDATE holdfast.migration SET done_at = clock_timestamp()
    WHERE schema_name = a_schema AND version = a_version AND operation = an_operation AND fence = a_fence AND done_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'version % was taken over', a_version USING ERRCODE = 'ZH008';
  END IF;
  PERFORM holdfast.leave(a_schema, an_operation, a_fence, a_version, is_last);
END
$holdfast$;

-- From when this has returned every lower fence is refused for good. Repeatable, never down.
CREATE OR REPLACE FUNCTION holdfast.raise_fence(a_schema text, an_owner text, a_fence bigint)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '15s' AS $holdfast$
DECLARE
  r holdfast.resource := holdfast.locked(a_schema, an_owner, 'fence', 9223372036854775807);
BEGIN
  UPDATE holdfast.resource SET highest_fence = greatest(highest_fence, a_fence) WHERE schema_name = a_schema;
  PERFORM holdfast.durably();
  RETURN greatest(r.highest_fence, a_fence);
END
$holdfast$;

REVOKE ALL ON ALL TABLES IN SCHEMA holdfast FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC;

-- Makes a schema a resource, and lets the three roles in.
CREATE OR REPLACE FUNCTION holdfast.claim(a_schema text, an_owner text, deploy text, inspect text, fence text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
  r holdfast.resource;
  role text;
BEGIN
  FOREACH role IN ARRAY ARRAY[deploy, inspect, fence] LOOP
    IF pg_has_role(role, current_user, 'MEMBER') THEN
      RAISE EXCEPTION 'the role "%" could rewrite the record: it may not be, or be a member of, "%" who owns it', role, current_user;
    END IF;
  END LOOP;
  IF pg_has_role(deploy, fence, 'MEMBER') OR pg_has_role(inspect, fence, 'MEMBER') OR pg_has_role(inspect, deploy, 'MEMBER') OR pg_has_role(fence, deploy, 'MEMBER') THEN
    RAISE EXCEPTION 'deploy, inspect and fence are three roles, none a member of another';
  END IF;
  EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', a_schema);
  EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', a_schema, deploy);
  INSERT INTO holdfast.resource (schema_name, owner, deploy_role, fence_role) VALUES (a_schema, an_owner, deploy, fence)
    ON CONFLICT (schema_name) DO UPDATE SET deploy_role = excluded.deploy_role, fence_role = excluded.fence_role
    WHERE resource.owner = excluded.owner;
  SELECT * INTO r FROM holdfast.resource WHERE schema_name = a_schema;
  IF r.owner <> an_owner THEN
    RAISE EXCEPTION 'the schema "%" belongs to %, not to %', a_schema, r.owner, an_owner;
  END IF;
  INSERT INTO holdfast.turn VALUES (a_schema) ON CONFLICT DO NOTHING;
  EXECUTE format('GRANT USAGE ON SCHEMA holdfast TO %I, %I, %I', deploy, inspect, fence);
  EXECUTE format('GRANT SELECT ON holdfast.resource, holdfast.migration, holdfast.abandoned, holdfast.operation TO %I, %I, %I', deploy, inspect, fence);
  EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.apply, holdfast.take_turn, holdfast.record, holdfast.finish, holdfast.begin_statement, holdfast.end_statement TO %I', deploy);
  EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.raise_fence TO %I', fence);
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast.claim FROM PUBLIC;

