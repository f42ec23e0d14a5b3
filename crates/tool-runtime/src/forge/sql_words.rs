//! Whether a tool's source names a statement that writes.
//!
//! It decides only when a run waits for other writers of SQLite: before its first statement, or before its first one that
//! writes. A wrong guess costs a wait, or an error that says to run the tool again; never a wrong result.

/// Two words that begin a statement that writes.
const BEGINNINGS: [(&str, &[&str]); 8] = [
    ("insert", &["into", "or"]),
    ("replace", &["into"]),
    ("delete", &["from"]),
    ("merge", &["into"]),
    ("truncate", &["table"]),
    ("alter", &["table"]),
    ("create", &["table", "temp", "temporary", "index", "unique", "view", "trigger", "virtual", "or"]),
    ("drop", &["table", "index", "view", "trigger"]),
];

/// `UPDATE OR IGNORE schema.table AS name SET`: how many words are between the first and the last.
const UPDATE_WORDS: usize = 7;

/// A tool that runs others does not know what they write.
const RUNS_TOOLS: &str = "exec_tool";

/// True when the source names a statement that writes, or runs another tool.
pub(super) fn may_write(source: &str) -> bool {
    let lower = source.to_ascii_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().any(|(at, word)| {
        let next = |count: usize| words.iter().skip(at + 1).take(count);
        *word == RUNS_TOOLS
            || (*word == "update" && next(UPDATE_WORDS).any(|word| *word == "set"))
            || BEGINNINGS
                .iter()
                .any(|(first, seconds)| word == first && next(1).any(|word| seconds.contains(word)))
    })
}
