//! Facts, who says them, and the rows in which they hold.

use serde::{Deserialize, Serialize};

use super::identity;
use super::positions::Position;

/// Who says a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FactSource {
    /// A file of the tree, by its path.
    File = 0,
    /// A package that files import and that is not in the tree, by ecosystem and name.
    Package = 1,
    /// A commit, by its id.
    Commit = 2,
    /// The forged tools, all of them together.
    Tools = 3,
}

/// The end of the moments at which facts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frontier {
    /// After all others: what is opened holds from now on.
    Newest,
    /// Before all others: what is opened holds at all moments up to this one.
    Oldest,
}

impl Frontier {
    /// The table of what holds there, by owner.
    pub(crate) fn ledger(self) -> &'static str {
        match self {
            Self::Newest => "now",
            Self::Oldest => "past",
        }
    }

    /// The table of what the owners read.
    pub(crate) fn keys(self) -> &'static str {
        match self {
            Self::Newest => "now_key",
            Self::Oldest => "past_key",
        }
    }
}

/// The stretches of moments, in order and apart from each other, each without its end.
pub(crate) type Stretches = Vec<(i64, i64)>;

/// One node or relationship as it holds at a moment.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    Node { id: i64, props: String, at: Option<Position> },
    Edge { id: i64, kind: &'static str, source: i64, target: i64, props: String, at: Option<Position> },
}

impl Fact {
    /// A node without a position.
    pub(crate) fn node(id: i64, props: String) -> Self {
        Self::Node { id, props, at: None }
    }

    /// A relationship without a position.
    pub(crate) fn edge(
        kind: &'static str,
        source: i64,
        target: i64,
        occurrence: usize,
        props: String,
    ) -> Self {
        let id = identity::edge_id(kind, source, target, occurrence);
        Self::Edge { id, kind, source, target, props, at: None }
    }

    /// The same fact with its position in the file. A change of the position alone does not make it another fact.
    pub(crate) fn at(mut self, position: Position) -> Self {
        let (Self::Node { at, .. } | Self::Edge { at, .. }) = &mut self;
        *at = Some(position);
        self
    }

    pub(super) fn position(&self) -> Option<Position> {
        let (Self::Node { at, .. } | Self::Edge { at, .. }) = self;
        *at
    }

    pub(super) fn identity(&self) -> (Table, i64) {
        match self {
            Self::Node { id, .. } => (Table::Node, *id),
            Self::Edge { id, .. } => (Table::Edge, *id),
        }
    }

    /// Ends and type are in the id; a rare id that two relationships share is distinguished here.
    pub(super) fn digest(&self) -> u64 {
        match self {
            Self::Node { props, .. } => identity::number(&identity::digest(&[props])),
            Self::Edge { source, target, props, .. } => {
                identity::number(&identity::digest(&[props, &source.to_string(), &target.to_string()]))
            }
        }
    }
}

/// A table whose rows hold in stretches of moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Table {
    Node,
    Edge,
    Position,
}

impl Table {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Edge => "edge",
            Self::Position => "position",
        }
    }
}

/// A row that holds from some moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FactRow {
    pub(super) table: Table,
    pub(super) row: i64,
    /// Of positions the number of the file.
    pub(super) id: i64,
    pub(super) digest: u64,
    pub(super) since: i64,
    /// Of a fact that has a position.
    pub(super) slot: Option<u32>,
}

/// What an owner holds at the last moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CurrentFacts {
    pub(super) rows: Vec<FactRow>,
    /// What it read.
    pub(super) keys: Vec<i64>,
    /// Packages outside the tree that it names.
    pub(crate) packages: Vec<String>,
    /// The number under which positions of the file are found, where it has or had any.
    pub(super) number: Option<i64>,
    /// The row with the positions.
    pub(super) positions: Option<FactRow>,
}

impl CurrentFacts {
    /// Every row, that of the positions among them.
    pub(super) fn all_rows(&self) -> impl Iterator<Item = &FactRow> {
        self.rows.iter().chain(&self.positions)
    }
}
