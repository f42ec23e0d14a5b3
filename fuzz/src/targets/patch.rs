//! `patch_file` and `fs_edit`: the input is a text and its edits, apart by lines of `=======`.

use serde_json::Value;
use tgp_contract::{Code, RelativePath};
use tgp_router::files::{Replacement, patch};

use super::{ensure, same, text};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "patch",
    about: "an edit that applies changes its one place, and the reverse edit gives the original",
    oracle: check,
    dictionary: &[
        "\n=======\n",
        "aa",
        "aaa",
        "ab",
        "\r\n",
        "\n",
        "\t",
        "é",
        "\u{1f600}",
        "e\u{301}",
        "fn main() {\n",
        "}\n",
        "$1",
        "\\1",
        "&",
    ],
    generate: None,
    iterations: 70_000,
};

const SEPARATOR: &str = "\n=======\n";

fn check(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let mut pieces = text.split(SEPARATOR);
    let mut current = pieces.next().unwrap_or_default().to_owned();
    while let Some(search) = pieces.next() {
        let replace = pieces.next().unwrap_or_default();
        // The schemas of both tools refuse an empty search.
        if search.is_empty() {
            continue;
        }
        all(&current, search, replace)?;
        if let Some(patched) = once(&current, search, replace)? {
            current = patched;
        }
    }
    Ok(())
}

fn apply(
    text: &str,
    search: &str,
    replace: &str,
    all: bool,
) -> Result<(String, usize), tgp_contract::ToolError> {
    let replacement = Replacement { search: search.to_owned(), replace: replace.to_owned(), all };
    patch(&RelativePath::root(), text, &replacement)
}

/// Where a search text begins, overlaps included, found one byte after the other.
fn places(text: &str, search: &str) -> Vec<usize> {
    text.char_indices()
        .map(|(at, _)| at)
        .filter(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(search)))
        .collect()
}

fn once(text: &str, search: &str, replace: &str) -> Result<Option<String>, String> {
    let places = places(text, search);
    match apply(text, search, replace, false) {
        Ok((patched, count)) => {
            same("the number of places", &(count, places.len()), &(1, 1))?;
            let at = places.first().copied().unwrap_or_default();
            let parts = (text.get(..at), text.get(at + search.len()..));
            let (Some(before), Some(after)) = parts else {
                return Err("the place is inside of a character".to_owned());
            };
            same("the patched text", &patched, &format!("{before}{replace}{after}"))?;
            if !replace.is_empty()
                && let Ok((original, _)) = apply(&patched, replace, search, false)
            {
                same("the reverse edit gives another text", &original.as_str(), &text)?;
            }
            Ok(Some(patched))
        }
        Err(error) => {
            ensure!(places.len() != 1, "an edit with one place was refused: {error}");
            same("the code of the refusal", &error.code, &Code::Validation)?;
            let details = serde_json::to_value(&error).map_err(|error| error.to_string())?;
            let matches = details.pointer("/details/matches").and_then(Value::as_u64);
            same("the number of matches", &matches, &u64::try_from(places.len()).ok())?;
            let lines =
                details.pointer("/details/lines").and_then(Value::as_array).cloned().unwrap_or_default();
            let expected = places
                .iter()
                .take(100)
                .map(|at| text.get(..*at).unwrap_or_default().matches('\n').count() + 1);
            let expected: Vec<Value> = expected.map(Value::from).collect();
            same("the lines of the matches", &lines, &expected)?;
            Ok(None)
        }
    }
}

fn all(text: &str, search: &str, replace: &str) -> Result<(), String> {
    match apply(text, search, replace, true) {
        Ok((patched, count)) => {
            let parts: Vec<&str> = text.split(search).collect();
            same("the number of replaced places", &(count + 1), &parts.len())?;
            ensure!(count > 0, "an edit of no place was applied");
            same("the text with all places replaced", &patched, &parts.join(replace))
        }
        Err(error) => {
            ensure!(!text.contains(search), "an edit of all places was refused: {error}");
            Ok(())
        }
    }
}
