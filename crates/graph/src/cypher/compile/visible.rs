//! Who sees which row. The only place where a query gets at the tables `node`, `edge`, `label` and `position`.
//!
//! INVARIANT: every alias of `node` and `edge` that the compiler puts into a FROM comes from here, with the predicate of
//! its moment, and without the nodes that are hidden from the caller. Lookups by row are of rows that were found that
//! way. So are those of positions: by the place of such a row, at the moment of the query.

use crate::tables::positions;
use crate::tables::schema::RENAME;

/// The place of the moment that a query sees: the first that is bound.
pub(super) const NOW: &str = "?1";

/// A table in a FROM, and what must hold of its rows.
pub(super) struct VisibleTable {
    pub source: String,
    pub condition: String,
}

/// A moment, and what is hidden at it.
#[derive(Clone, Debug)]
pub(super) struct VisibleAt {
    /// The place of the moment's number.
    pub moment: String,
    /// The place of a JSON array of nodes.
    pub hidden: Option<String>,
}

impl VisibleAt {
    fn at(&self, alias: &str) -> String {
        let Self { moment, .. } = self;
        format!("{alias}.since <= {moment} AND {alias}.until > {moment}")
    }

    /// Whether a node is shown. The list is not part of the row, so SQLite looks it up once for a statement, and asks
    /// this before any condition of the query that could fail on the row.
    fn shown(&self, id: &str) -> String {
        match &self.hidden {
            Some(place) => format!(" AND {id} NOT IN (SELECT value FROM json_each({place}))"),
            None => String::new(),
        }
    }
}

/// Whether a node may be one that was renamed away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tombstones {
    Never,
    /// Where it has no row that is visible otherwise. Each of its relationships has to agree, see [`end`].
    Allowed,
    /// It was bound before: only its relationships are asked.
    Bound,
}

/// An alias of `node`.
pub(super) fn node(alias: &str, ghost: Tombstones, sight: &VisibleAt) -> VisibleTable {
    let moment = format!("{}{}", sight.at(alias), sight.shown(&format!("{alias}.id")));
    let condition = match ghost {
        Tombstones::Never => format!("{moment} AND {alias}.ghost = 0"),
        Tombstones::Allowed => format!(
            "{moment} AND ({alias}.ghost = 0 OR NOT EXISTS (SELECT 1 FROM node AS {alias}v WHERE {alias}v.id = {alias}.id AND {} AND {alias}v.ghost = 0))",
            sight.at(&format!("{alias}v"))
        ),
        Tombstones::Bound => moment,
    };
    VisibleTable { source: format!("node AS {alias}"), condition }
}

/// An alias of `edge`. Both its ends have to be joined by [`node`], and to satisfy [`end`]. That they are shown is asked
/// of the relationship already: its own properties may be met before its ends are.
pub(super) fn edge(alias: &str, sight: &VisibleAt) -> VisibleTable {
    let [source, target] = ["source", "target"].map(|end| sight.shown(&format!("{alias}.{end}")));
    VisibleTable {
        source: format!("edge AS {alias}"),
        condition: format!("{}{source}{target}", sight.at(alias)),
    }
}

/// What must hold of an end of a relationship: only a rename has ends that are gone.
pub(super) fn end(ghost: &str, edge: &str) -> String {
    format!("({ghost} = 0 OR {edge}.type = '{RENAME}')")
}

/// Whether a list of types allows a rename.
pub(super) fn may_be_rename(types: Option<&[String]>) -> bool {
    types.is_none_or(|types| types.iter().any(|name| name == RENAME))
}

/// A row of a node or a relationship, whose properties may be asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PropertyRow {
    /// An alias of `node` or `edge`.
    Alias(String),
    /// A node that was found before, by its row.
    Node(String),
    /// A relationship that was found before, by its row.
    Relationship(String),
}

impl PropertyRow {
    fn column(&self, column: &str) -> String {
        match self {
            Self::Alias(alias) => format!("{alias}.{column}"),
            Self::Node(row) => format!("(SELECT {column} FROM node WHERE row_id = {row})"),
            Self::Relationship(row) => format!("(SELECT {column} FROM edge WHERE row_id = {row})"),
        }
    }

    /// One property, in `name` the place of its name: as JSON, or null.
    pub fn json(&self, name: &str) -> String {
        format!("{} -> {name}", self.column("props"))
    }

    /// What a property is that moves with the lines of its file, in `name` the place of its name.
    pub fn position(&self, name: &str) -> String {
        format!("cy_position({}, {name}, {})", self.place(), self.json(name))
    }

    /// All properties, as a map.
    pub fn map(&self) -> String {
        format!("cy_all({}, {})", self.place(), self.column("props"))
    }

    /// The place and the row that has what is there at the moment of the query.
    fn place(&self) -> String {
        let place = self.column("place");
        let file = positions::file_of(&place);
        format!("{place}, {}", position(&file, NOW))
    }
}

/// The row with the positions of a file at a moment. The stretches of a file do not meet, so it is the last that began.
pub(crate) fn position(file: &str, moment: &str) -> String {
    format!(
        "(SELECT data FROM position WHERE file = {file} AND since <= {moment} AND until > {moment} ORDER BY since DESC LIMIT 1)"
    )
}

/// Whether a node that was found before is gone.
pub(super) fn node_ghost(row: &str) -> String {
    format!("(SELECT ghost FROM node WHERE row_id = {row})")
}

/// A column of a relationship that was found before.
pub(super) fn edge_column(row: &str, column: &str) -> String {
    format!("(SELECT {column} FROM edge WHERE row_id = {row})")
}

/// An end of a relationship that was found before, as a value. `column` is `source` or `target`.
pub(super) fn edge_end(row: &str, column: &str, edge: &str, node: &str, sight: &VisibleAt) -> String {
    let seen = self::node(node, Tombstones::Allowed, sight);
    format!(
        "(SELECT cy_node({node}.row_id, {node}.id) FROM edge AS {edge} CROSS JOIN {} WHERE {edge}.row_id = {row} AND {node}.id = {edge}.{column} AND {} AND {})",
        seen.source,
        seen.condition,
        end(&format!("{node}.ghost"), edge)
    )
}

/// Whether a node has a label.
pub(super) fn has_label(id: &str, label: &str) -> String {
    format!("(SELECT 1 FROM label WHERE name = {label} AND node = {id}) IS NOT NULL")
}

/// The labels of a node as a JSON array.
pub(super) fn labels(id: &str) -> String {
    format!("(SELECT json_group_array(name) FROM label WHERE node = {id})")
}

/// Whether a node was visible at another moment.
pub(super) fn node_at(id: &str, sight: &VisibleAt, alias: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM node AS {alias} WHERE {alias}.id = {id} AND {}{} AND {alias}.ghost = 0)",
        sight.at(alias),
        sight.shown(&format!("{alias}.id"))
    )
}

/// Whether a relationship was visible at another moment, with both its ends.
pub(super) fn edge_at(id: &str, row: &PropertyRow, sight: &VisibleAt, alias: &str) -> String {
    let ends = ["source", "target"].map(|column| {
        let end = format!("{alias}{column}");
        format!(
            "EXISTS (SELECT 1 FROM node AS {end} WHERE {end}.id = {alias}.{column} AND {} AND ({end}.ghost = 0 OR {alias}.type = '{RENAME}'))",
            sight.at(&end)
        )
    });
    let seen = edge(alias, sight);
    // Relationships are found by their ends.
    let same =
        ["source", "type", "target"].map(|column| format!("{alias}.{column} = {}", row.column(column)));
    let same = same.join(" AND ");
    format!(
        "EXISTS (SELECT 1 FROM {} WHERE {same} AND {alias}.id = {id} AND {} AND {})",
        seen.source,
        seen.condition,
        ends.join(" AND ")
    )
}
