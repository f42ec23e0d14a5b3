//! The tables of the graph, and who sees which row.

mod schema;
