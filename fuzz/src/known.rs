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
pub const KNOWN: &[KnownFailure] = &[
    KnownFailure {
        target: "cypher",
        seed: "known/control-character",
        message: "a message has a control character",
        cause: "`quoted` of graph/src/cypher/diagnostics.rs repeats a control character of the query as it is",
    },
    KnownFailure {
        target: "cypher",
        seed: "known/properties-of-an-unwound-node",
        message: "compiled to SQL that is not valid: near \"->\"",
        cause: "`settle` of graph/src/cypher/compile/joins.rs takes every name for a row, and one of UNWIND is a value",
    },
    KnownFailure {
        target: "policy",
        seed: "known/control-character-in-example",
        message: "a message has a control character",
        cause: "`Selector::say` of policy/src/selector.rs repeats names of the file as they are",
    },
    KnownFailure {
        target: "database-url",
        seed: "known/one-slash",
        message: "is shown: sqlite:",
        cause: "a server's URL without `//` is taken for the path of a SQLite file, and shown with its password",
    },
    KnownFailure {
        target: "fetch-url",
        seed: "known/password-in-a-broken-url",
        message: "the password is shown: allowedFetchUrls",
        cause: "`masked` of fetch/src/entry.rs repeats an entry as it is when the URL cannot be parsed",
    },
];

impl KnownFailure {
    /// Whether a failure of a target is a known one.
    #[must_use]
    pub fn covers(target: &str, message: &str) -> bool {
        KNOWN.iter().any(|known| known.target == target && message.contains(known.message))
    }
}
