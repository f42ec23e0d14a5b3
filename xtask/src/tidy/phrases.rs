//! Phrases that no user should have to read, in the messages that `cargo xtask messages` lists.

use std::path::Path;

use anyhow::{Context, Result};
use regex::{Captures, Regex};

use super::allow_list::AllowList;
use crate::messages::{self, Message, one_line};
use crate::sources::SourceFile;

const ALLOWED: &str = "xtask/allowed-messages.txt";

/// A phrase and what to write. Where a group of the pattern matches, the phrase is harmless: "X is no Y" is denied,
/// "there is no tool `X`" and "is no longer" are plain English.
const PHRASES: [(&str, &str); 11] = [
    (r"(\bthere )?\bis no (?:(longer\b)|[a-z]+)", "invalid Y `X`: expected …"),
    (r"\bbroken off\b", "internal error: background task panicked: {cause}"),
    (r"\bgone on with\b", "resumed"),
    (r"\bmade anew\b", "rebuilt"),
    (r"\bmended\b", "fixed"),
    (r"\bstands in\b", "is in"),
    (r"\bstands at\b", "is at"),
    (r"\bwhoever\b", "name the actor: the user, the agent, the kernel"),
    (r"\bsomebody\b", "name the actor: the user, the agent, the kernel"),
    (r"\bnobody\b", "name the actor: the user, the agent, the kernel"),
    (
        r"(\bcannot )?\b(?:remove|delete|rm)\b[^.;:]{0,40}(?:\.state\b|\.tgp\b|\b(?:state|audit|anchor|database|journal|store)\b)",
        "who owns it, and how to read, restore or rename it: state holds the audit and the data",
    ),
];

pub(super) fn check(root: &Path, files: &[SourceFile], problems: &mut Vec<String>) -> Result<()> {
    let phrases = Phrases::new()?;
    let mut allowed = AllowList::read(root, ALLOWED)?;
    for message in messages::of_files(files) {
        for (text, phrase, instead) in phrases.of(&message) {
            let Message { file, line, .. } = &message;
            if !allowed.allows(&format!("{file}: {}", one_line(text))) {
                problems.push(format!(
                    "{file}:{line} has `{phrase}` in a message; write `{instead}`: {}",
                    one_line(text)
                ));
            }
        }
    }
    allowed.report_unused(problems);
    Ok(())
}

/// The compiled phrases, each with what to write.
struct Phrases(Vec<(Regex, &'static str)>);

impl Phrases {
    fn new() -> Result<Self> {
        let compiled = PHRASES.iter().map(|(phrase, instead)| {
            let regex = Regex::new(&format!("(?i){phrase}"));
            Ok((regex.with_context(|| format!("`{phrase}` is not a regular expression"))?, *instead))
        });
        Ok(Self(compiled.collect::<Result<_>>()?))
    }

    /// Each denied phrase in a message: the text with it, the phrase, and what to write.
    fn of<'m>(&self, message: &'m Message) -> Vec<(&'m str, &'m str, &'static str)> {
        let mut found = Vec::new();
        for text in message.texts() {
            for (regex, instead) in &self.0 {
                let is_harmful = |found: &Captures<'_>| found.iter().skip(1).all(|group| group.is_none());
                let phrase = regex.captures_iter(text).find(is_harmful).and_then(|found| found.get(0));
                found.extend(phrase.map(|phrase| (text, phrase.as_str(), *instead)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(text: &str) -> Vec<String> {
        let message = Message {
            file: "a.rs".to_owned(),
            line: 1,
            code: None,
            message: Some(text.to_owned()),
            helps: Vec::new(),
        };
        Phrases::new().unwrap().of(&message).into_iter().map(|(_, phrase, _)| phrase.to_owned()).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(phrases(text), expected, "{text}");
    }

    #[test]
    fn denied_phrases_are_found() {
        check("`{name}` is no tool", &["is no tool"]);
        check("there is no file, and `x` is no name", &["is no name"]);
        check("Nobody agreed; it stands in line 3", &["stands in", "Nobody"]);
        check("the call was broken off", &["broken off"]);
        for advice in [
            "remove `.tgp/.state`",
            "delete the store",
            "remove the damaged audit",
            "rm -r .state",
            "Delete the kernel's state",
            "remove the journal",
        ] {
            assert_eq!(phrases(advice).len(), 1, "{advice}");
        }
    }

    #[test]
    fn plain_english_is_not() {
        check("there is no tool `x`", &[]);
        check("the file is no longer there", &[]);
        check("this is not a query", &[]);
        check("it stands alone", &[]);
        check("cannot remove the anchor of the audit", &[]);
        check("remove the comment; the database stays", &[]);
        check("remove `sandbox` from the configuration", &[]);
        check("<nobody.to_string()>", &[]);
    }
}
