//! Names of tools as TypeScript can write them.

use std::collections::{BTreeMap, BTreeSet};

/// The longest name in a module; servers have longer ones.
const MAX_NAME: usize = 64;

/// Words that cannot be the name of a function that is exported; a module with `then` would be taken for a promise.
const RESERVED: [&str; 51] = [
    "arguments",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// The name of each tool in the module of its server, by the name that the server gives it. A name that can be written stays;
/// others that come out the same are told apart by a number.
pub(crate) fn identifiers<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let all: BTreeSet<&str> = names.collect();
    let mut taken = BTreeSet::new();
    let mut found = BTreeMap::new();
    let (plain, others): (Vec<&str>, Vec<&str>) = all.into_iter().partition(|name| is_identifier(name));
    for name in plain.into_iter().chain(others) {
        let plain = identifier(name);
        let mut candidate = plain.clone();
        let mut number = 2_usize;
        while !taken.insert(candidate.clone()) {
            candidate = format!("{plain}_{number}");
            number += 1;
        }
        found.insert(name, candidate);
    }
    found
}

/// Whether a name can be written as it is.
pub(crate) fn is_identifier(name: &str) -> bool {
    identifier(name) == name
}

fn identifier(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '_' };
    let mut plain: String = name.chars().take(MAX_NAME).map(plain).collect();
    if plain.is_empty() || plain.starts_with(|first: char| first.is_ascii_digit()) {
        plain.insert(0, '_');
    }
    if RESERVED.contains(&plain.as_str()) {
        plain.push('_');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{RESERVED, identifiers};

    #[test]
    fn every_tool_has_a_name_of_its_own() {
        let names = ["create_issue", "create-issue", "create.issue", "7zip", "delete", "", "grüße", "yield"];
        let found = identifiers(names.into_iter());
        for (name, expected) in [
            ("create_issue", "create_issue"),
            ("create-issue", "create_issue_2"),
            ("create.issue", "create_issue_3"),
            ("7zip", "_7zip"),
            ("delete", "delete_"),
            ("", "_"),
            ("grüße", "gr__e"),
            ("yield", "yield_"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(expected), "{name}");
        }
    }
    /// They check names before the kernel starts, so that a program's mistake is found where it was made.
    #[test]
    fn both_clients_have_the_same_reserved_words() {
        for (file, source) in [
            ("sdk/node", include_str!("../../../sdk/node/src/checked-host-tools.ts")),
            ("sdk/python", include_str!("../../../sdk/python/src/tgp/host_tools.py")),
        ] {
            let (_, rest) = source.split_once("WORDS =").unwrap();
            let list = rest.split(['\'', '"']).skip(1).step_by(2).take(3).collect::<String>();
            assert_eq!(list.split(' ').collect::<Vec<_>>(), RESERVED, "{file}");
        }
    }
}
