//! The protocol of the SDKs: JSON-RPC lines in both directions. `docs/protocol.md` describes it.

mod conversation;
mod envelope;
mod host;
mod methods;
mod peer;
pub mod protocol;
mod requests;
mod schema;
mod socket;
mod stdio;

pub use host::{HostBoot, HostLog, HostParts};
pub use schema::schema;
pub(crate) use socket::{RpcConnection, turn_away};
pub use stdio::serve_stdio;
