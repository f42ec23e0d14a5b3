//! Vue, Svelte and Astro: the script in a template.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{Import, ImportKind, Language};

/// The beginning of a script element, with its attributes, whose quotes may contain a `>`.
static OPENING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i)<script((?:\s(?:[^>"']|"[^"]*"|'[^']*')*)?)>"#).ok());
static CLOSING: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)</script\s*>").ok());
static LANGUAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)\s(?:lang|type)\s*=\s*["']?(?:text/|application/)?(tsx?|typescript|jsx)\b"#).ok()
});
static SOURCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i)\ssrc\s*=\s*(?:"([^"]*)"|'([^']*)')"#).ok());

static TYPE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i)\stype\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"#).ok());
/// The code of Astro, between two lines at the beginning.
static FRONT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\A\u{feff}?\s*---((?s:.*?))(?:\n---|\z)").ok());

/// Script elements of one file; a component has one or two.
const MAX_SCRIPTS: usize = 64;

/// A script element: its attributes, and where its content is.
struct Script<'c> {
    attributes: &'c [u8],
    from: usize,
    until: usize,
}

fn scripts(content: &[u8]) -> Vec<Script<'_>> {
    let mut scripts = Vec::new();
    let (Some(opening), Some(closing)) = (&*OPENING, &*CLOSING) else { return scripts };
    let mut at = 0;
    while scripts.len() < MAX_SCRIPTS
        && let Some(found) = opening.captures_at(content, at)
    {
        let from = found.get(0).map_or(content.len(), |whole| whole.end());
        let attributes = found.get(1).map(|attributes| attributes.as_bytes()).unwrap_or_default();
        let until = closing.find_at(content, from).map_or(content.len(), |end| end.start());
        if is_code(attributes) {
            scripts.push(Script { attributes, from, until });
        }
        at = until;
    }
    scripts
}

/// Whether a script element has code, and not data or a template.
fn is_code(attributes: &[u8]) -> bool {
    let found = TYPE.as_ref().and_then(|pattern| pattern.captures(attributes));
    let Some(value) = found.and_then(|found| (1..=3).find_map(|group| found.get(group))) else { return true };
    let value = value.as_bytes().trim_ascii().to_ascii_lowercase();
    value.is_empty()
        || value == b"module"
        || [&b"javascript"[..], b"ecmascript", b"typescript", b"babel", b"jsx", b"tsx"]
            .iter()
            .any(|name| value.ends_with(name))
}

/// All that is script, with blanks for the rest so that every line and column stays, and its language.
pub(super) fn script(content: &[u8]) -> (Language, Vec<u8>) {
    let mut script: Vec<u8> =
        content.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { *byte } else { b' ' }).collect();
    let mut language = Language::JavaScript;
    let front = FRONT.as_ref().and_then(|front| front.captures(content)?.get(1));
    if let Some(front) = front {
        language = Language::TypeScript;
        if let Some(to) = script.get_mut(front.range()) {
            to.copy_from_slice(front.as_bytes());
        }
    }
    for Script { attributes, from, until } in scripts(content) {
        let named = LANGUAGE.as_ref().and_then(|named| named.captures(attributes)?.get(1));
        match named.map(|named| named.as_bytes().to_ascii_lowercase()).as_deref() {
            Some(b"tsx") => language = Language::Tsx,
            Some(b"ts" | b"typescript") if language != Language::Tsx => language = Language::TypeScript,
            _ => {}
        }
        if let (Some(to), Some(code)) = (script.get_mut(from..until), content.get(from..until)) {
            to.copy_from_slice(code);
        }
    }
    (language, script)
}

/// Files that hold the script of an element: `<script src="x">`.
pub(super) fn sources(content: &[u8]) -> Vec<Import> {
    let mut imports = Vec::new();
    for Script { attributes, from, .. } in scripts(content) {
        let found = SOURCE.as_ref().and_then(|source| source.captures(attributes));
        let Some(source) = found.and_then(|found| found.get(1).or_else(|| found.get(2))) else { continue };
        let before = content.get(..from).unwrap_or_default();
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        imports.push(Import {
            kind: ImportKind::Bind,
            specifier: String::from_utf8_lossy(source.as_bytes()).into_owned(),
            names: Vec::new(),
            module: None,
            line: u32::try_from(lines).unwrap_or(u32::MAX - 1) + 1,
            scope: String::new(),
            type_only: false,
        });
    }
    imports
}
