//! MCP servers of others as typed imports of forged tools.
//!
//! What a server says of its tools is data: it becomes types, and a comment that is quoted and cut. A change of it is a
//! change of the pin, which a person has to see.
#![forbid(unsafe_code)]

mod names;
mod pin;
mod schema_type;
mod tool;
mod types;

pub use pin::{Pin, PinChange};
pub use tool::UpstreamTool;
pub use types::module_types;
