//! `tgp --version --verbose`: what this program was built from.

use std::ffi::OsString;

use serde_json::{Map, Value};

use crate::printer::Printer;

/// Columns of the names.
const WIDTH: usize = 10;

/// Whether the words ask for it, and whether as JSON. `--version` alone is the parser's.
pub fn is_asked(words: &[OsString]) -> Option<bool> {
    let words: Option<Vec<&str>> = words.iter().skip(1).map(|word| word.to_str()).collect();
    let words = words?;
    let has = |names: [&str; 2]| words.iter().any(|word| names.contains(word));
    let known = ["-V", "--version", "-v", "--verbose", "--json"];
    let is_asked = has(["-V", "--version"]) && has(["-v", "--verbose"]);
    (is_asked && words.iter().all(|word| known.contains(word))).then(|| has(["--json", "--json"]))
}

pub fn print(printer: &Printer) {
    let rows = rows();
    if printer.json() {
        let fields: Map<String, Value> =
            rows.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        printer.document(&crate::commands::done(Value::Object(fields)));
        return;
    }
    for (name, value) in rows {
        printer.line(&format!("{name:<WIDTH$} {value}"));
    }
}

fn rows() -> Vec<(&'static str, String)> {
    let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let machine = format!("{}-{}-{library}", std::env::consts::ARCH, std::env::consts::OS);
    let features: Vec<&str> =
        [("embedded-model", cfg!(feature = "embedded-model")), ("graph-bolt", cfg!(feature = "graph-bolt"))]
            .into_iter()
            .filter_map(|(name, is_on)| is_on.then_some(name))
            .collect();
    let mut rows = vec![
        ("tgp", env!("CARGO_PKG_VERSION").to_owned()),
        // `cargo xtask dist` names it; a build from source has no certain one.
        ("commit", option_env!("TGP_COMMIT").unwrap_or("unknown").to_owned()),
        ("machine", machine),
        ("build", if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()),
        ("features", if features.is_empty() { "none".to_owned() } else { features.join(", ") }),
    ];
    rows.extend(tgp::engine_versions());
    rows
}

#[cfg(test)]
mod tests {
    use super::is_asked;

    #[test]
    fn only_the_two_words_together_ask_for_it() {
        let cases = [
            ("tgp --version --verbose", Some(false)),
            ("tgp -V -v", Some(false)),
            ("tgp --json --verbose --version", Some(true)),
            ("tgp --version", None),
            ("tgp --verbose", None),
            ("tgp run --version --verbose", None),
            ("tgp", None),
        ];
        for (line, expected) in cases {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            assert_eq!(is_asked(&words), expected, "{line}");
        }
    }
}
