//! Vue, Svelte and Astro: the scripts in a template, and what its markup loads.
//!
//! The frameworks cut their files in different ways, and a script must not hide where one of them sees it and this reader
//! does not. So wherever the cut is open to doubt the file counts as one that was not read whole.

use std::ops::Range;

use super::{Import, ImportKind, Language, Parse};

/// Script elements of one file; a component has one or two.
const MAX_SCRIPTS: usize = 64;

/// A piece of code in a template.
struct Script {
    range: Range<usize>,
    language: Language,
    /// Whether it may as well be data or a template, so that a syntax error in it means nothing.
    is_doubtful: bool,
}

/// The parts of a template.
#[derive(Default)]
struct Cut {
    scripts: Vec<Script>,
    /// Where files are named that hold the script of an element, and how.
    sources: Vec<(usize, Specifier)>,
    /// Whether there may be other scripts, or these may be others.
    is_doubtful: bool,
}

/// What is loaded: a text that is known, or the code that makes it.
type Specifier = Result<String, String>;

/// An attribute of an element: its name, and its value without quotes.
type Attribute<'c> = (&'c [u8], &'c [u8]);

pub(super) fn read(content: &[u8], parse: &mut Parse) {
    let cut = cut(content);
    let language = cut.scripts.iter().map(|script| script.language).max_by_key(|language| match language {
        Language::Tsx => 2,
        Language::TypeScript => 1,
        _ => 0,
    });
    let whole: Vec<&Script> = cut.scripts.iter().filter(|script| !script.is_doubtful).collect();
    super::read_code(language.unwrap_or(Language::JavaScript), &joined(content, &whole), parse);
    if cut.scripts.len() > 1 || whole.len() < cut.scripts.len() {
        for script in &cut.scripts {
            read_alone(content, script, parse);
        }
    }
    parse
        .imports
        .extend(cut.sources.iter().map(|(at, source)| load(source.clone(), lines(content, *at) + 1)));
    parse.imports.extend(markup_loads(content, &cut));
    if cut.is_doubtful {
        (parse.broken, parse.unparsed) = (true, true);
    }
}

/// All that is script, with blanks for the rest so that every line and column stays. Only the end of a script has to be the
/// end of its last line, which a line separator is without being a line to those who count them.
fn joined(content: &[u8], scripts: &[&Script]) -> Vec<u8> {
    const SEPARATOR: &[u8] = "\u{2028}".as_bytes();
    let blank = |byte: &u8| if matches!(byte, b'\n' | b'\r') { *byte } else { b' ' };
    let mut joined: Vec<u8> = content.iter().map(blank).collect();
    for Script { range, .. } in scripts {
        if let (Some(to), Some(code)) = (joined.get_mut(range.clone()), content.get(range.clone())) {
            to.copy_from_slice(code);
        }
        let end = range.end..range.end + SEPARATOR.len();
        if let Some(to) = joined.get_mut(end).filter(|to| to.iter().all(|byte| *byte == b' ')) {
            to.copy_from_slice(SEPARATOR);
        }
    }
    joined
}

/// Adds what a script imports that is not seen where it is read together with the others: one of them may open what another
/// one closes.
fn read_alone(content: &[u8], script: &Script, parse: &mut Parse) {
    let mut alone = Parse::default();
    super::read_code(script.language, content.get(script.range.clone()).unwrap_or_default(), &mut alone);
    if script.is_doubtful && alone.unparsed {
        return;
    }
    parse.broken |= alone.broken && !script.is_doubtful;
    parse.unparsed |= alone.unparsed;
    let before = lines(content, script.range.start);
    for mut import in alone.imports {
        import.line += before;
        let is_known = |known: &Import| known.specifier == import.specifier && known.kind == import.kind;
        if !parse.imports.iter().any(is_known) {
            parse.imports.push(import);
        }
    }
}

/// Returns how many lines end before a byte.
fn lines(content: &[u8], at: usize) -> u32 {
    let before = content.get(..at).unwrap_or_default();
    u32::try_from(before.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX - 1)
}

fn load(specifier: Specifier, line: u32) -> Import {
    let kind = if specifier.is_ok() { ImportKind::Bind } else { ImportKind::Computed };
    let (Ok(specifier) | Err(specifier)) = specifier;
    Import { kind, specifier, names: Vec::new(), module: None, line, scope: String::new(), type_only: false }
}

fn starts_with(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
}

/// Returns where a text begins that is written in small or large letters, from a byte on.
fn find(content: &[u8], text: &[u8], from: usize) -> Option<usize> {
    let rest = content.get(from..)?;
    rest.windows(text.len()).position(|part| part.eq_ignore_ascii_case(text)).map(|at| from + at)
}

fn cut(content: &[u8]) -> Cut {
    let mut cut = Cut::default();
    let mut at = front(content, &mut cut);
    loop {
        let Some(next) = content.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'<')) else {
            return cut;
        };
        at += next;
        let here = content.get(at..).unwrap_or_default();
        if here.starts_with(b"<!--") {
            let end = find(content, b"-->", at + 4);
            let comment = content.get(at + 4..end.unwrap_or(content.len())).unwrap_or_default();
            // Some take `<!-->` for a whole comment, some end it with `--!>`, and in a text it may be none.
            cut.is_doubtful |= end.is_none()
                || comment.starts_with(b">")
                || comment.starts_with(b"->")
                || find(comment, b"--!>", 0).is_some()
                || find(comment, b"script", 0).is_some_and(|_| has_script(comment));
            at = end.map_or(content.len(), |end| end + 3);
        } else if starts_with(here, b"</script") {
            // An end without a beginning: the beginning is where this reader sees none.
            cut.is_doubtful |= ends_name(here.get(8));
            at += 2;
        } else if starts_with(here, b"<script") && ends_name(here.get(7)) {
            at = element(content, at + 7, &mut cut);
        } else {
            at += 1;
        }
    }
}

fn has_script(text: &[u8]) -> bool {
    find(text, b"<script", 0).is_some() || find(text, b"</script", 0).is_some()
}

fn ends_name(byte: Option<&u8>) -> bool {
    byte.is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'))
}

/// Reads a script element from behind its name. Returns where it ends.
fn element(content: &[u8], at: usize, cut: &mut Cut) -> usize {
    let Some((attributes, from, is_closed)) = attributes(content, at) else {
        cut.is_doubtful = true;
        return at;
    };
    if cut.scripts.len() >= MAX_SCRIPTS {
        cut.is_doubtful = true;
        return content.len();
    }
    let value = |name: &[u8]| {
        let attribute = attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        attribute.map(|(_, value)| decoded(&String::from_utf8_lossy(value)))
    };
    if let Some(source) = value(b"src") {
        // In braces it is an expression.
        let inside = source.strip_prefix('{').and_then(|source| source.strip_suffix('}'));
        let source = match inside {
            Some(code) => literal(&format!("{code})")).ok_or_else(|| code.to_owned()),
            None => Ok(source.trim().to_owned()),
        };
        cut.sources.push((at, source));
    }
    if is_closed {
        return from;
    }
    let (kind, named) = (value(b"type").unwrap_or_default(), value(b"lang").unwrap_or_default());
    let kind = kind.trim().to_ascii_lowercase();
    let language = match (named.trim().to_ascii_lowercase().as_str(), kind.rsplit('/').next()) {
        ("tsx", _) | ("", Some("tsx")) => Language::Tsx,
        ("ts" | "typescript", _) | (_, Some("ts" | "typescript" | "x-typescript")) => Language::TypeScript,
        _ => Language::JavaScript,
    };
    let until = find(content, b"</script", from);
    let body = content.get(from..until.unwrap_or(content.len())).unwrap_or_default();
    // Some read on behind an end with more than blanks in it, and behind a beginning within a comment.
    let tail = until.and_then(|until| content.get(until + 8..)).unwrap_or_default();
    let is_end = tail.trim_ascii_start().starts_with(b">");
    cut.is_doubtful |= !is_end || find(body, b"<script", 0).is_some_and(|at| ends_name(body.get(at + 7)));
    let until = until.unwrap_or(content.len());
    cut.scripts.push(Script { range: from..until, language, is_doubtful: !is_code(&kind) });
    // An end that is none for some is found again, and the file counts as doubtful then.
    until + if is_end { 9 + tail.len() - tail.trim_ascii_start().len() } else { 8 }
}

/// Whether a type is one of code, and not of data or a template. Frameworks do not ask.
fn is_code(kind: &str) -> bool {
    let names = ["javascript", "ecmascript", "typescript", "babel", "jsx", "tsx", "/ts", "/js"];
    matches!(kind, "" | "module" | "ts" | "js") || names.iter().any(|name| kind.ends_with(name))
}

/// Returns the attributes of an element, where its content begins, and whether it has none. None where tags of different
/// frameworks end in different places.
fn attributes(content: &[u8], mut at: usize) -> Option<(Vec<Attribute<'_>>, usize, bool)> {
    let mut attributes = Vec::new();
    let until = |at: usize, ends: &dyn Fn(u8) -> bool| {
        let length = content.get(at..)?.iter().position(|byte| ends(*byte))?;
        Some(at + length)
    };
    let blank = |byte: u8| !byte.is_ascii_whitespace();
    loop {
        at = until(at, &blank)?;
        match content.get(at)? {
            b'>' => return Some((attributes, at + 1, false)),
            b'/' if content.get(at + 1) == Some(&b'>') => return Some((attributes, at + 2, true)),
            b'{' => {
                at = braces(content, at)?;
                continue;
            }
            _ => {}
        }
        let end = until(at, &|byte| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'>' | b'/'))?;
        let name = content.get(at..end)?;
        if name.is_empty() || name.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'{')) {
            return None;
        }
        at = until(end, &blank)?;
        if content.get(at) != Some(&b'=') {
            attributes.push((name, &[][..]));
            continue;
        }
        at = until(at + 1, &blank)?;
        let first = *content.get(at)?;
        let (from, to, next) = match first {
            b'"' | b'\'' => {
                let end = until(at + 1, &|byte| byte == first)?;
                (at + 1, end, end + 1)
            }
            b'{' => {
                let end = braces(content, at)?;
                (at, end, end)
            }
            _ => {
                let end = until(at, &|byte| byte.is_ascii_whitespace() || byte == b'>')?;
                (at, end, end)
            }
        };
        let value = content.get(from..to)?;
        let is_plain = matches!(first, b'"' | b'\'' | b'{')
            || !value.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'=' | b'{'))
                && !value.ends_with(b"/");
        if !is_plain {
            return None;
        }
        attributes.push((name, value));
        at = next;
    }
}

/// Returns where an expression in braces ends; none where it has what could end the tag for those who know no braces.
fn braces(content: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, byte) in content.get(at..)?.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'>' | b'<' => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at + offset + 1);
        }
    }
    None
}

/// Reads the code of Astro, between two lines at the beginning. Returns where it ends.
fn front(content: &[u8], cut: &mut Cut) -> usize {
    let mut at = if content.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
    // Comments may precede it.
    loop {
        let here = content.get(at..).unwrap_or_default();
        at += here.len() - here.trim_ascii_start().len();
        let Some(end) = here.trim_ascii_start().starts_with(b"<!--").then(|| find(content, b"-->", at + 4))
        else {
            break;
        };
        let Some(end) = end else { return 0 };
        // What is doubtful in a comment is judged with the others.
        if has_script(content.get(at..end).unwrap_or_default()) {
            return 0;
        }
        at = end + 3;
    }
    let is_first = content.get(at..).is_some_and(|here| here.starts_with(b"---"));
    let Some(open) = (if is_first { Some(at) } else { find(content, b"---", at) }) else { return 0 };
    let close = find(content, b"\n---", open + 3);
    if is_first {
        let range = open + 3..close.unwrap_or(content.len());
        cut.is_doubtful |= has_script(content.get(range.clone()).unwrap_or_default());
        cut.scripts.push(Script { range, language: Language::TypeScript, is_doubtful: false });
        return close.unwrap_or(content.len());
    }
    // Text may precede it as well; dashes behind an element are those of the page.
    let before = content.get(at..open).unwrap_or_default();
    if let Some(close) = close.filter(|_| !before.contains(&b'<')) {
        cut.scripts.push(Script {
            range: open + 3..close,
            language: Language::TypeScript,
            is_doubtful: true,
        });
        cut.is_doubtful = true;
    }
    0
}

/// Returns the modules that expressions of the markup load.
fn markup_loads(content: &[u8], cut: &Cut) -> Vec<Import> {
    let mut loads: Vec<Import> = Vec::new();
    let mut from = 0;
    let ends = cut.scripts.iter().map(|script| script.range.clone());
    for script in ends.chain(std::iter::once(content.len()..content.len())) {
        let markup = content.get(from..script.start).unwrap_or_default();
        let text = decoded(&String::from_utf8_lossy(markup));
        for (at, specifier) in loads_of(&text) {
            loads.push(load(specifier, lines(content, from) + lines(text.as_bytes(), at) + 1));
        }
        from = script.end.max(from);
    }
    loads
}

/// Where a text loads modules, and what.
fn loads_of(text: &str) -> Vec<(usize, Specifier)> {
    let mut found = Vec::new();
    for word in ["import", "require"] {
        for (at, _) in text.match_indices(word) {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '@' | '-');
            if before.is_some_and(is_part) {
                continue;
            }
            let rest = text.get(at + word.len()..).unwrap_or_default();
            let after = code(rest);
            let written = || -> String { text.get(at..).unwrap_or_default().chars().take(60).collect() };
            if let Some(arguments) = after.strip_prefix('(') {
                found.push((at, literal(arguments).ok_or_else(written)));
            } else if let Some(member) = after.strip_prefix('.').map(code) {
                let names = ["source", "defer", "resolve", "call", "apply", "bind"];
                let of_meta = member.strip_prefix("meta").map(code).and_then(|rest| rest.strip_prefix('.'));
                let names_meta = ["glob", "resolve", "url", "require"];
                let is_load = names.iter().any(|name| member.starts_with(name))
                    || of_meta.map(code).is_some_and(|of| names_meta.iter().any(|name| of.starts_with(name)));
                found.extend(is_load.then(|| (at, Err(written()))));
            }
        }
    }
    found
}

/// A text from where its code goes on, behind blanks and comments.
fn code(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let behind = if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, behind)| behind)
        } else if let Some(comment) = rest.strip_prefix("//") {
            comment.split_once('\n').map_or("", |(_, behind)| behind)
        } else {
            return rest;
        };
        rest = behind.trim_start();
    }
}

/// The content of a string without escapes that is all of an argument.
fn literal(arguments: &str) -> Option<String> {
    let arguments = code(arguments);
    let quote = arguments.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    let (value, behind) = arguments.get(1..)?.split_once(quote)?;
    let has_more = value.contains(['\\', '\n']) || quote == '`' && value.contains("${");
    (!has_more && code(behind).starts_with([')', ','])).then(|| value.to_owned())
}

/// A text of markup without its entities, as far as code is written with them.
fn decoded(text: &str) -> String {
    const NAMES: [(&str, char); 17] = [
        ("quot", '"'),
        ("apos", '\''),
        ("grave", '`'),
        ("lpar", '('),
        ("rpar", ')'),
        ("period", '.'),
        ("sol", '/'),
        ("bsol", '\\'),
        ("lowbar", '_'),
        ("comma", ','),
        ("ast", '*'),
        ("num", '#'),
        ("commat", '@'),
        ("Tab", '\t'),
        ("NewLine", '\n'),
        ("nbsp", ' '),
        ("amp", '&'),
    ];
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        decoded.push_str(before);
        let letters = |hex: bool| {
            move |letter: char| if hex { letter.is_ascii_hexdigit() } else { letter.is_ascii_digit() }
        };
        let (letter, length) = if let Some(number) = after.strip_prefix('#') {
            let is_hex = number.starts_with(['x', 'X']);
            let skip = usize::from(is_hex);
            let digits = number.get(skip..).unwrap_or_default();
            let end = digits.find(|letter| !letters(is_hex)(letter)).unwrap_or(digits.len());
            let radix = if is_hex { 16 } else { 10 };
            let value = digits.get(..end).and_then(|digits| u32::from_str_radix(digits, radix).ok());
            (value.and_then(char::from_u32), 1 + skip + end)
        } else {
            let named = NAMES.iter().find(|(name, _)| after.starts_with(name));
            (named.map(|(_, letter)| *letter), named.map_or(0, |(name, _)| name.len()))
        };
        let Some(letter) = letter else {
            decoded.push('&');
            rest = after;
            continue;
        };
        decoded.push(letter);
        rest = after.get(length..).unwrap_or_default();
        rest = rest.strip_prefix(';').unwrap_or(rest);
    }
    decoded.push_str(rest);
    decoded
}
