//! The tables of the graph: their schema, how a file of them is opened, and what writes rows. Who reads git and who answers
//! questions both build on them.

pub(crate) mod connect;
pub(crate) mod facts;
pub(crate) mod failure;
pub(crate) mod forged;
pub(crate) mod identity;
pub(crate) mod pieces;
pub(crate) mod positions;
pub(crate) mod schema;
pub(crate) mod undo;
pub(crate) mod write;
