//! The tables. A fact is a row with the stretch of moments in which it holds.
//!
//! A *moment* is a state of the tree that was ingested: a commit, or the work tree on top of one. Moments are numbered in
//! the order they were ingested, which is not an order of time: a row's stretch `[since, until)` is over these numbers, and a
//! fact that holds in commits of two branches, with a commit of a third numbered in between, has two rows. So whatever
//! the shape of the history is, "holds at this commit" is one comparison of numbers, and it is the same one for nodes and
//! for relationships.
//!
//! The first commit that is ingested has the number [`BASE`]. Its history is read from there backwards, with smaller and
//! smaller numbers, and what is ingested later has larger ones. So the row of a fact that holds now and did not change
//! is written once, whatever is read first: at both ends a row is open until the moment is read at which it is not true.

/// The form of what parsing writes into the store; results of another one are read again.
pub(crate) const FORMAT: i64 = 8;

/// The number of the first moment that is ingested: more commits than that are in no history.
pub(crate) const BASE: i64 = 1 << 25;

/// Commits of one history that are read at most, so that all of them have a number.
pub(crate) const MAX_HISTORY: usize = 1 << 24;

/// `since` of a row that holds at the oldest moment that was read. Smaller than all numbers of moments, and as long as
/// they are in a row: four bytes. A row of an index that got longer when its fact ends would not fit into its page.
pub(crate) const FIRST: i64 = 1 << 23;

/// `until` of a row that still holds at the last moment. Larger than all numbers of moments, and as long in a row.
pub const OPEN: i64 = (1 << 31) - 1;

/// The relationship whose ends may be files that are gone.
pub const RENAME: &str = "WAS_RENAMED_FROM";

/// What a new store is made with. `user_version` distinguishes it from an old one, and an old one is rebuilt.
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
    -- Where its position is found, see `positions.rs`; null where it has none.
    place  INTEGER,
    -- 1 for what is known of a file that was renamed away: visible only as an end of a rename, where it has no row that
    -- is visible otherwise. Its stretch is [0, OPEN).
    ghost  INTEGER NOT NULL DEFAULT 0
);
-- Labels belong to a node for ever.
CREATE TABLE label (
    name   TEXT NOT NULL,
    node   INTEGER NOT NULL,
    -- More of the hash that `node` was taken from, by which two nodes that would share an id are told apart.
    digest INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, node)
) WITHOUT ROWID;
-- One row for each stretch in which a relationship has the same properties. A row whose ends are not both visible is not.
CREATE TABLE edge (
    row_id INTEGER PRIMARY KEY,
    id     INTEGER NOT NULL,
    type   TEXT NOT NULL,
    source INTEGER NOT NULL,
    target INTEGER NOT NULL,
    props  TEXT NOT NULL,
    since  INTEGER NOT NULL,
    until  INTEGER NOT NULL,
    place  INTEGER
);
-- One row for each stretch in which nothing moves in a file.
CREATE TABLE position (
    row_id INTEGER PRIMARY KEY,
    -- A number that the file has as long as it is there.
    file   INTEGER NOT NULL,
    data   BLOB NOT NULL,
    since  INTEGER NOT NULL,
    until  INTEGER NOT NULL
);
";

/// The indexes of labels, nodes, relationships and positions, which are made faster at once than row by row.
pub(crate) const INDEXES: &str = "
CREATE INDEX label_of ON label (node);
CREATE INDEX node_stretch ON node (id, since, until);
CREATE INDEX node_path ON node (json_extract(props, '$.path'));
CREATE INDEX node_name ON node (json_extract(props, '$.name'));
CREATE INDEX edge_out ON edge (source, type, target, since, until);
CREATE INDEX edge_in ON edge (target, type, since, until, source);
CREATE INDEX position_stretch ON position (file, since, until);
";

/// Removes them, within the transaction that makes them again.
pub(crate) const WITHOUT_INDEXES: &str = "
DROP INDEX label_of; DROP INDEX node_stretch; DROP INDEX node_path; DROP INDEX node_name;
DROP INDEX edge_out; DROP INDEX edge_in;
DROP INDEX position_stretch;
";

/// The number of the tables' form; a store with another one is rebuilt.
pub(crate) const VERSION: i64 = 6;

/// What only the ingest reads: the state at the last moment, from which the next one is made.
pub(crate) const LEDGER: &str = "
-- What holds at the last moment, by who says it: a file, an imported package, a commit, the tools.
CREATE TABLE now (
    row_id INTEGER PRIMARY KEY,
    owner  INTEGER NOT NULL,
    name   TEXT NOT NULL,
    -- Of a file: its blob and what is needed to compare it.
    file   BLOB,
    -- The rows of its facts, and what they were derived from.
    facts  BLOB NOT NULL,
    UNIQUE (owner, name)
);
-- Which files looked at what when they were linked, so that they are linked again when it changes.
CREATE TABLE now_key (
    key INTEGER NOT NULL,
    -- The row of the file in `now`.
    row INTEGER NOT NULL,
    PRIMARY KEY (key, row)
) WITHOUT ROWID;
-- The same for the oldest moment, while its history is still to be read.
CREATE TABLE past (
    row_id INTEGER PRIMARY KEY,
    owner  INTEGER NOT NULL,
    name   TEXT NOT NULL,
    file   BLOB,
    facts  BLOB NOT NULL,
    UNIQUE (owner, name)
);
CREATE TABLE past_key (
    key INTEGER NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (key, row)
) WITHOUT ROWID;
-- The rows of `now` that the draft has replaced, as they were; `facts` is null where there was none.
CREATE TABLE undo (
    row_id INTEGER PRIMARY KEY,
    owner  INTEGER NOT NULL,
    name   TEXT NOT NULL,
    file   BLOB,
    facts  BLOB,
    UNIQUE (owner, name)
);
-- What was read from a blob, once for all.
CREATE TABLE parse (
    row_id   INTEGER PRIMARY KEY,
    blob     BLOB NOT NULL,
    language INTEGER NOT NULL,
    data     BLOB NOT NULL,
    UNIQUE (blob, language)
);
-- What a commit says of itself, whether it is visible at the last moment or not.
CREATE TABLE change (
    sha  TEXT PRIMARY KEY,
    data BLOB NOT NULL
) WITHOUT ROWID;
-- What was seen of a file on the disk when it was hashed.
CREATE TABLE stat (
    path TEXT PRIMARY KEY,
    seen TEXT NOT NULL,
    blob BLOB NOT NULL
) WITHOUT ROWID;
-- Ids of nodes whose hash gave the id of another node.
CREATE TABLE alias (
    digest BLOB PRIMARY KEY,
    id     INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
";
