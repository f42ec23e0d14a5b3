//! The bounds of everything that a server can make grow.

use std::time::Duration;

/// One event. The largest real ones repeat a whole answer, or carry an encrypted thought of some hundred kilobytes.
pub(crate) const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;
/// One turn on the wire. The longest answers have some hundred thousand tokens, each in an event of half a kilobyte.
pub(crate) const MAX_TURN_BYTES: u64 = 256 * 1024 * 1024;
/// The arguments of one call. No model writes that much in one answer, even with every character escaped.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 2 * 1024 * 1024;
/// A block that is kept to be sent back, such as a signed thought.
pub(crate) const MAX_OPAQUE_BYTES: usize = 4 * 1024 * 1024;
/// Calls, and blocks of other kinds, in one turn. Models make a handful of parallel calls.
pub(crate) const MAX_BLOCKS: usize = 256;

/// A whole answer that was not streamed: as large as the event that repeats one.
pub(crate) const MAX_WHOLE_BYTES: usize = MAX_EVENT_BYTES;
/// What is kept of the beginning of a stream, to say what it is when it is none.
pub(crate) const MAX_BEGINNING_BYTES: usize = 256;

/// What is read of the body of a refusal: the message is at its beginning.
pub(crate) const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
/// What is quoted of a provider's own message: a paragraph on a screen.
pub(crate) const MAX_QUOTED_CHARACTERS: usize = 500;

/// The reason for a pause: half a line on a screen.
pub(crate) const MAX_REASON_CHARACTERS: usize = 100;

/// The longest list of models known (a gateway's, with prices and descriptions) has about a megabyte.
pub(crate) const MAX_MODELS_BYTES: usize = 8 * 1024 * 1024;
pub(crate) const MAX_MODELS: usize = 10_000;
/// Pages of a list of models, each of up to a thousand.
pub(crate) const MAX_MODEL_PAGES: usize = 10;

/// No turn takes a day; a larger number in a configuration is a wish for "no bound", which nothing here is without.
pub(crate) const LONGEST_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// More attempts than this only put a load on a server that is down.
pub(crate) const MAX_ATTEMPTS: u32 = 10;
/// A server that asks for a longer pause than this is not waited for: the user should know now.
pub(crate) const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Numbers beyond this say only "never"; a year fits wherever a number of milliseconds is written.
pub(crate) const LONGEST_WISH: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// After the answer is complete only its cost can follow. A server that says nothing more is not waited for longer.
pub(crate) const PATIENCE_AFTER_FINISH: Duration = Duration::from_secs(5);

/// A script of a thousand turns that write files stays far below this.
pub(crate) const MAX_SCRIPT_BYTES: u64 = 16 * 1024 * 1024;
/// A pause between two events of a script is there to be interrupted, not to be sat through.
pub(crate) const LONGEST_SCRIPT_DELAY_MS: u64 = 60_000;
