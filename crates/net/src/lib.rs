//! What every connection to another machine shares: TLS, one hardened HTTP client, capped bodies and lines, and secrets.
//!
//! Each crate that talks to a server builds its client with [`client_builder`], so that no crate forgets a rule: a client
//! follows no redirect, uses no proxy of the environment, sends no `Referer`, and decompresses nothing. Keys are held as
//! [`Secret`], and text from a server passes a [`SecretScrubber`] before it is shown.
#![forbid(unsafe_code)]

mod body;
mod causes;
mod client;
mod lines;
mod redaction;
mod scrubber;
mod secret;
mod secret_forms;
mod tls;

pub use body::{BodyError, CappedBody, TooLarge, content_encoding, read_body, read_plain_body};
pub use causes::{causes, root_cause};
pub use client::{ClientError, Transport, build_client, client_builder, is_loopback, is_loopback_host};
pub use lines::{CappedLine, CappedLines};
pub use redaction::SecretRedaction;
pub use scrubber::SecretScrubber;
pub use secret::Secret;
pub use secret_forms::secret_forms;
pub use tls::{TlsError, tls_config};
