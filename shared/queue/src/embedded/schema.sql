-- Version 1 of the embedded queue (PRAGMA user_version). A run's rows go with the run.

CREATE TABLE runs (
    run         TEXT    NOT NULL PRIMARY KEY,
    generation  INTEGER NOT NULL,
    plan_hash   TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    next_unit   INTEGER NOT NULL DEFAULT 0,
    lease_ms    INTEGER NOT NULL,
    max_strikes INTEGER NOT NULL,
    last_ticket INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE models (
    run           TEXT    NOT NULL REFERENCES runs ON DELETE CASCADE,
    model         TEXT    NOT NULL,
    added         INTEGER NOT NULL DEFAULT 0,
    scored        INTEGER NOT NULL DEFAULT 0,
    failed        INTEGER NOT NULL DEFAULT 0,
    parked_until  INTEGER NOT NULL DEFAULT 0, -- ms since the Unix epoch
    parked_reason TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (run, model)
) STRICT, WITHOUT ROWID;

-- The units that are not done.
CREATE TABLE units (
    run         TEXT    NOT NULL REFERENCES runs ON DELETE CASCADE,
    unit        INTEGER NOT NULL,
    model       TEXT    NOT NULL,
    place       INTEGER NOT NULL DEFAULT 0, -- 0 pending, 1 leased, 2 dead
    dialogues   INTEGER NOT NULL,
    payload     BLOB    NOT NULL,
    attempt     INTEGER NOT NULL DEFAULT 0,
    worker      TEXT    NOT NULL DEFAULT '', -- of the present or latest lease
    deadline_ms INTEGER NOT NULL DEFAULT 0,  -- of the present or latest lease
    strikes     TEXT    NOT NULL DEFAULT '', -- one JSON object a line
    PRIMARY KEY (run, unit)
) STRICT;

CREATE INDEX units_by_place ON units (run, model, place, unit);

CREATE TABLE records (
    run       TEXT    NOT NULL REFERENCES runs ON DELETE CASCADE,
    model     TEXT    NOT NULL,
    task      TEXT    NOT NULL,
    iteration INTEGER NOT NULL,
    scored    INTEGER NOT NULL,
    ticket    INTEGER NOT NULL,
    PRIMARY KEY (run, model, task, iteration)
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
    worker     TEXT    NOT NULL PRIMARY KEY,
    info       BLOB    NOT NULL,
    seen_ms    INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    draining   INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE rates (
    bucket     TEXT    NOT NULL PRIMARY KEY,
    full_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 1;
