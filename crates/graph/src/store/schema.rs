//! The tables. A fact is a row with the stretch of moments in which it holds.
//!
//! A *moment* is a state of the tree that was ingested: a commit, or the work tree on top of one. Moments are numbered in
//! the order they were ingested, which is no order of time: a row's stretch `[since, until)` is over these numbers, and a
//! fact that holds in commits of two branches, with a commit of a third numbered in between, has two rows. So whatever
//! the shape of the history is, "holds at this commit" is one comparison of numbers, and it is the same one for nodes and
//! for relationships.

/// `until` of a row that still holds at the last moment.
pub(crate) const OPEN: i64 = i64::MAX;

/// The relationship whose ends may be files that are gone.
pub(crate) const RENAME: &str = "WAS_RENAMED_FROM";

/// What a new store is made with. `user_version` tells an old one from it, and an old one is made anew.
pub(crate) const SCHEMA: &str = "
-- One row for each moment. `commit_id` is null for the work tree, of which there is at most one row, the last.
CREATE TABLE moment (
    number    INTEGER PRIMARY KEY,
    commit_id TEXT UNIQUE,
    -- The commit that a work tree stands on.
    base      TEXT,
    tree      TEXT NOT NULL
);
-- One row for each stretch in which a node has the same properties. `id` stays the same over all of them.
CREATE TABLE node (
    row_id INTEGER PRIMARY KEY,
    id     INTEGER NOT NULL,
    -- A JSON object.
    props  TEXT NOT NULL,
    since  INTEGER NOT NULL,
    until  INTEGER NOT NULL,
    -- 1 for what is known of a file that was renamed away: visible only as an end of a rename, where it has no row that
    -- is visible otherwise. Its stretch is [0, OPEN).
    ghost  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX node_stretch ON node (id, since, until);
CREATE INDEX node_path ON node (json_extract(props, '$.path'));
CREATE INDEX node_name ON node (json_extract(props, '$.name'));
-- Labels belong to a node for ever.
CREATE TABLE label (
    name TEXT NOT NULL,
    node INTEGER NOT NULL,
    PRIMARY KEY (name, node)
) WITHOUT ROWID;
CREATE INDEX label_of ON label (node);
-- One row for each stretch in which a relationship has the same properties. A row whose ends are not both visible is not.
CREATE TABLE edge (
    row_id INTEGER PRIMARY KEY,
    id     INTEGER NOT NULL,
    type   TEXT NOT NULL,
    source INTEGER NOT NULL,
    target INTEGER NOT NULL,
    props  TEXT NOT NULL,
    since  INTEGER NOT NULL,
    until  INTEGER NOT NULL
);
CREATE INDEX edge_out ON edge (source, type, since, until, target);
CREATE INDEX edge_in ON edge (target, type, since, until, source);
CREATE INDEX edge_stretch ON edge (id, since, until);
";
