//! Whether a glob can match anything below a directory. In doubt it can: callers rely on the answer that it cannot.

use globset::GlobBuilder;
use tgp_text::composed;

/// Alternatives that one pattern is taken apart into; a pattern with more is in doubt.
const MAX_ALTERNATIVES: usize = 64;

/// Whether `pattern`, a glob for paths, may match a path below `directory` without regard to case and to how accents are
/// written.
pub(crate) fn may_match_below(pattern: &str, directory: &str) -> bool {
    let (pattern, directory) = (composed(pattern).to_lowercase(), composed(directory).to_lowercase());
    match alternatives(&pattern) {
        Some(list) => list.iter().any(|alternative| alternative_may_match(alternative, &directory)),
        None => true,
    }
}

fn alternative_may_match(pattern: &str, directory: &str) -> bool {
    // A class and an escaped character can match the `/` itself, so such a pattern has no parts to compare.
    if pattern.contains(['[', '\\']) {
        let plain = pattern.split(['*', '?', '[', '\\']).next().unwrap_or_default();
        let inside = format!("{directory}/");
        return plain.starts_with(&inside) || inside.starts_with(plain);
    }
    let parts: Vec<&str> = pattern.split('/').collect();
    // The places in the pattern that can be reached after each name of the directory.
    let mut places = vec![0];
    for name in directory.split('/') {
        let mut next = Vec::new();
        for place in with_skipped(&parts, &places) {
            match parts.get(place) {
                Some(&"**") => next.push(place),
                Some(part) if part_matches(part, name) => next.push(place + 1),
                Some(_) | None => {}
            }
        }
        places = next;
    }
    with_skipped(&parts, &places).into_iter().any(|place| place < parts.len())
}

/// The same places, and those behind a `**`, which may match no name at all.
fn with_skipped(parts: &[&str], places: &[usize]) -> Vec<usize> {
    let mut all = Vec::new();
    for &place in places {
        let mut place = place;
        all.push(place);
        while parts.get(place) == Some(&"**") {
            place += 1;
            all.push(place);
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn part_matches(part: &str, name: &str) -> bool {
    let glob = GlobBuilder::new(part).literal_separator(true).case_insensitive(true).build();
    glob.map_or(true, |glob| glob.compile_matcher().is_match(name))
}

/// The patterns that one with braces expands to; `None` when there are too many, or when the expansion is
/// unclear.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut waiting = vec![pattern.to_owned()];
    while let Some(pattern) = waiting.pop() {
        if done.len() + waiting.len() > MAX_ALTERNATIVES {
            return None;
        }
        let Some(open) = pattern.find('{') else {
            done.push(pattern);
            continue;
        };
        // In a class, or behind a backslash, a brace is a letter.
        if pattern.contains(['[', '\\']) {
            return None;
        }
        let (before, rest) = pattern.split_at(open);
        let (words, after) = brace(rest)?;
        waiting.extend(words.iter().map(|word| format!("{before}{word}{after}")));
    }
    Some(done)
}

/// The alternatives of a text that begins with a brace, and what follows the one that closes it.
fn brace(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut depth, mut words, mut from) = (0_usize, Vec::new(), 1);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => {
                words.push(text.get(from..at)?);
                return Some((words, text.get(at + 1..)?));
            }
            '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 1 => {
                words.push(text.get(from..at)?);
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::may_match_below;

    #[test]
    fn a_pattern_that_can_match_inside_is_found() {
        for pattern in [
            "target/release/**",
            "**/*.exe",
            "**",
            "target/*",
            "TARGET/x",
            "*/release/app",
            "t?rget/a",
            "{src,target}/**",
            "{a,{b,tar{get,}}}/x",
            "**/target/**/x",
            "target[/]x",
            "target[!a]x",
            "tar[g]et/x",
            "target\\/x",
            "targ*/**/deep/er",
            "{a,b}[c]/x",
        ] {
            assert!(may_match_below(pattern, "target"), "{pattern}");
        }
        assert!(
            may_match_below("a/b/c", "a/b")
                && may_match_below("a/**", "a/b")
                && may_match_below("**/c", "a/b")
        );
    }

    #[test]
    fn a_pattern_that_cannot_is_not() {
        for pattern in
            ["target", "src/**", "*.exe", "targets/**", "{src,lib}/**", "src/**/target/x", "sr[c]/x"]
        {
            assert!(!may_match_below(pattern, "target"), "{pattern}");
        }
        assert!(!may_match_below("a/*", "a/b/c") && !may_match_below("b/**", "a/b"));
    }

    #[test]
    fn what_is_too_much_to_look_at_is_in_doubt() {
        let many = "{a,b}".repeat(8);
        assert!(may_match_below(&format!("{many}/x"), "target"));
        assert!(may_match_below("{src/x", "target"));
    }
}
