"""The tables on a PostgreSQL server, as the steps that lead to today's, and the roles that read and write them.

The columns are those of ``schema``, without what only SQLite needs. Paths and programs may be longer than an index of
ordered values takes, so that those that nothing limits have indices of hashes. Text is ordered by its bytes, as there.
"""

from __future__ import annotations

from typing import Final

#: All tables are in a schema of this name, so that the database may be one with other tables.
SCHEMA: Final = "gapwatch"
READERS: Final = "gapwatch_reader"
WRITERS: Final = "gapwatch_writer"

#: Each step is run once, in one transaction; steps that were ever released never change.
STEPS: Final = (
    """
    CREATE TABLE meta (name TEXT COLLATE "C" PRIMARY KEY, value TEXT);

    CREATE TABLE folders (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        path BYTEA NOT NULL,
        EXCLUDE USING hash (path WITH =)
    );
    CREATE TABLE runs (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        program TEXT COLLATE "C" NOT NULL, run TEXT NOT NULL, build TEXT, started TEXT,
        added TEXT COLLATE "C" NOT NULL,
        ranks BIGINT NOT NULL, processors BIGINT NOT NULL, actual_s DOUBLE PRECISION,
        reader TEXT NOT NULL, grade TEXT NOT NULL, verdict TEXT NOT NULL,
        advice BYTEA NOT NULL, stamp BIGINT NOT NULL
    );
    CREATE INDEX runs_by_program ON runs (program, id);
    CREATE INDEX runs_by_time ON runs (added);
    CREATE TABLE summaries (run BIGINT PRIMARY KEY REFERENCES runs, content BYTEA NOT NULL);

    CREATE TABLE units (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        path BYTEA NOT NULL,
        reader TEXT NOT NULL,
        digest TEXT COLLATE "C" NOT NULL,
        run BIGINT REFERENCES runs,
        EXCLUDE USING hash (path WITH =)
    );
    CREATE INDEX units_by_digest ON units (digest);
    CREATE INDEX units_by_run ON units (run);

    CREATE TABLE files (
        folder BIGINT NOT NULL REFERENCES folders ON DELETE CASCADE,
        name BYTEA NOT NULL,
        device BIGINT NOT NULL, inode BIGINT NOT NULL, size BIGINT NOT NULL,
        mtime_ns BIGINT NOT NULL, ctime_ns BIGINT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'ingested', 'duplicate', 'quarantined', 'ignored')),
        reason TEXT,
        unit BIGINT REFERENCES units,
        PRIMARY KEY (folder, name)
    );
    CREATE INDEX files_by_state ON files (state) WHERE state IN ('waiting', 'quarantined');
    CREATE INDEX files_by_unit ON files (unit);

    CREATE TABLE items (
        program TEXT COLLATE "C" NOT NULL,
        fingerprint TEXT COLLATE "C" NOT NULL,
        action TEXT NOT NULL, title TEXT NOT NULL, region TEXT, phase TEXT, gaps TEXT NOT NULL,
        state TEXT NOT NULL CHECK (
            state IN ('new', 'open', 'acknowledged', 'suppressed', 'applied', 'resolved', 'back')
        ),
        first_run BIGINT NOT NULL, last_run BIGINT NOT NULL,
        ceiling_s DOUBLE PRECISION NOT NULL, expected_s DOUBLE PRECISION,
        until TEXT COLLATE "C", reason TEXT,
        applied_after BIGINT, promised_s DOUBLE PRECISION, realised_s DOUBLE PRECISION,
        PRIMARY KEY (program, fingerprint)
    );
    CREATE TABLE steps (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        program TEXT COLLATE "C" NOT NULL, fingerprint TEXT COLLATE "C" NOT NULL,
        run BIGINT, at TEXT NOT NULL, state TEXT NOT NULL, reason TEXT
    );
    CREATE INDEX steps_by_item ON steps (program, fingerprint);

    CREATE TABLE plugin_faults (
        plugin TEXT COLLATE "C" PRIMARY KEY, version TEXT NOT NULL, times BIGINT NOT NULL, reason TEXT NOT NULL
    );
    """,
)
VERSION: Final = len(STEPS)


def render_schema() -> str:
    """Return the statements that make the tables, or bring older ones to today's version; all of it or nothing."""
    steps = "".join(
        f"  IF version < {number} THEN\n{step}"
        f"    INSERT INTO meta VALUES ('schema', '{number}') ON CONFLICT (name) DO UPDATE SET value = excluded.value;\n"
        "  END IF;\n"
        for number, step in enumerate(STEPS, start=1)
    )
    return f"""\
SET client_min_messages = warning;
BEGIN;
DO $do$ BEGIN PERFORM pg_advisory_xact_lock(hashtext('gapwatch schema')); END $do$;
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
SET LOCAL search_path = {SCHEMA};
DO $do$
DECLARE version integer := 0;
BEGIN
  IF to_regclass('{SCHEMA}.meta') IS NOT NULL THEN
    SELECT value::integer INTO version FROM meta WHERE name = 'schema';
  END IF;
{steps}END
$do$;
COMMIT;
"""


def render_roles() -> str:
    """Return the statements that make a role for who reads and one for who writes, and say what each may do."""
    roles = "\n".join(
        f"DO $do$ BEGIN CREATE ROLE {role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $do$;"
        for role in (READERS, WRITERS)
    )
    return f"""\
{roles}
GRANT USAGE ON SCHEMA {SCHEMA} TO {READERS}, {WRITERS};
GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {READERS};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {WRITERS};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {WRITERS};
REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA {SCHEMA} FROM {READERS};
"""
