"""The tables, as the steps that lead from an empty database to today's; the number of steps is its version."""

from __future__ import annotations

from typing import Final

#: Each step is run once, in one transaction; steps that were ever released never change.
STEPS: Final = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    INSERT INTO meta VALUES ('commits', 0);

    CREATE TABLE folders (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE);
    CREATE TABLE files (
        folder INTEGER NOT NULL REFERENCES folders ON DELETE CASCADE,
        name BLOB NOT NULL,
        device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'ingested', 'duplicate', 'quarantined', 'ignored')),
        reason TEXT,
        unit INTEGER REFERENCES units,
        PRIMARY KEY (folder, name)
    ) WITHOUT ROWID;
    CREATE INDEX files_by_state ON files (state) WHERE state IN ('waiting', 'quarantined');
    CREATE INDEX files_by_unit ON files (unit);

    CREATE TABLE units (
        id INTEGER PRIMARY KEY,
        path BLOB NOT NULL UNIQUE,
        reader TEXT NOT NULL,
        digest TEXT NOT NULL,
        run INTEGER REFERENCES runs
    );
    CREATE INDEX units_by_digest ON units (digest);
    CREATE INDEX units_by_run ON units (run);

    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        program TEXT NOT NULL, run TEXT NOT NULL, build TEXT, started TEXT, added TEXT NOT NULL,
        ranks INTEGER NOT NULL, processors INTEGER NOT NULL, actual_s REAL,
        reader TEXT NOT NULL, grade TEXT NOT NULL, verdict TEXT NOT NULL,
        advice BLOB NOT NULL
    );
    CREATE INDEX runs_by_program ON runs (program, id);

    CREATE TABLE items (
        program TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        action TEXT NOT NULL, title TEXT NOT NULL, region TEXT, phase TEXT, gaps TEXT NOT NULL,
        state TEXT NOT NULL CHECK (
            state IN ('new', 'open', 'acknowledged', 'suppressed', 'applied', 'resolved', 'back')
        ),
        first_run INTEGER NOT NULL, last_run INTEGER NOT NULL,
        ceiling_s REAL NOT NULL, expected_s REAL,
        until TEXT, reason TEXT,
        applied_after INTEGER, promised_s REAL, realised_s REAL,
        PRIMARY KEY (program, fingerprint)
    ) WITHOUT ROWID;

    CREATE TABLE steps (
        id INTEGER PRIMARY KEY,
        program TEXT NOT NULL, fingerprint TEXT NOT NULL,
        run INTEGER, at TEXT NOT NULL, state TEXT NOT NULL, reason TEXT
    );
    CREATE INDEX steps_by_item ON steps (program, fingerprint);
    """,
    """
    CREATE TABLE plugin_faults (
        plugin TEXT PRIMARY KEY, version TEXT NOT NULL, times INTEGER NOT NULL, reason TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    # What every later run asks of a run, apart from its advice; and what lists show, in an index that holds all of it.
    """
    CREATE TABLE summaries (run INTEGER PRIMARY KEY REFERENCES runs, content BLOB NOT NULL);
    ALTER TABLE runs ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0;
    UPDATE runs SET stamp = random();
    DROP INDEX runs_by_program;
    CREATE INDEX runs_by_program ON runs (
        program, id, run, build, started, added, ranks, actual_s, reader, grade, verdict, stamp
    );
    CREATE INDEX runs_by_time ON runs (added);
    """,
)
VERSION: Final = len(STEPS)
