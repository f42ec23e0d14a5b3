//! The protocol that makes any program a part: one JSON object a line over standard input and output.
//!
//! `relay/README.md` is its document; what is here follows it. `peer` is a program as the kit sees it, `parts` are the
//! traits of the contract over a peer, and `serve` is the other side with parts of this product behind it.

mod lines;
mod message;
mod parts;
mod peer;
mod serve;

pub use message::PartKind;
pub use serve::{Origin, RelayServeOptions, serve};

pub(crate) use parts::{connect_chronicle, connect_graph, connect_model, connect_tools};
pub(crate) use peer::{Peer, PeerOptions};

/// The version of the protocol that is spoken here.
pub const PROTOCOL: u64 = 1;
/// Bytes of one line, its end included. The largest thing on it is a file or a chronicle's event of one mebibyte.
pub const MAX_LINE: usize = 8 << 20;
