//! Failures that are known and not fixed yet.

/// A bug that an oracle has found. Its seed is kept and not run by the test, and random inputs that fail in the same way are
/// passed over. Remove the entry with the fix: from then on the seed has to hold.
#[derive(Clone, Copy, Debug)]
pub struct KnownFailure {
    pub target: &'static str,
    /// The seed below `seeds/TARGET/`.
    pub seed: &'static str,
    /// A part of the oracle's message by which the same failure is recognised in other inputs.
    pub message: &'static str,
    /// The cause, in one line.
    pub cause: &'static str,
}

/// All of them.
pub const KNOWN: &[KnownFailure] = &[];

impl KnownFailure {
    /// Whether a failure of a target is a known one.
    #[must_use]
    pub fn covers(target: &str, message: &str) -> bool {
        KNOWN.iter().any(|known| known.target == target && message.contains(known.message))
    }
}
