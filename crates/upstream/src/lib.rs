//! MCP servers of others as typed imports of forged tools.
//!
//! A person adds a server ([`ServerDefinition`]) and looks at its tools ([`Pin`]); both are kept in a directory of the user
//! ([`UpstreamStore`]). From the pin, and never from the running server, comes the module that a tool imports
//! ([`UpstreamModule`]). [`Upstreams`] starts servers when they are called, in the jail, and calls a tool only while the
//! server describes it as it was pinned.
//!
//! What a server says is data: it becomes types, a comment that is quoted and cut, and values. Its size, its time and its
//! processes are limited, and its failures are its own.
#![forbid(unsafe_code)]

mod connection;
mod definition;
mod host;
mod module;
mod names;
mod pin;
mod schema_type;
mod shared_pins;
mod store;
mod tool;
mod upstreams;
mod variables;

pub use connection::Login;
pub use definition::{HttpServer, ServerDefinition, StdioServer, ValueSource, check_server_name};
pub use host::{HOST_SPECIFIER, HostModules};
pub use module::{SPECIFIER, UpstreamModule};
pub use pin::{Pin, PinChange};
pub use store::UpstreamStore;
pub use tool::UpstreamTool;
pub use upstreams::{UpstreamOptions, Upstreams};
pub use variables::ValueProvider;
