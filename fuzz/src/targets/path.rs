//! Relative paths: the input is a directory and, after a line end, what is resolved against it.

use tgp_contract::RelativePath;

use super::{ensure, same, text};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "path",
    about: "a relative path never leaves its root, its text round-trips, and joins stay inside",
    oracle: check,
    dictionary: &[
        "..", ".", "/", "//", "../", "/..", "./", "\\", "..\\", "a", "b/c", ".tgp", ".git", "~", "...",
        "..a", "a..", " ", "\u{202e}", "\u{2025}", "\u{ff0f}", "\0", "\n", "C:", "é", "e\u{301}",
    ],
    generate: None,
    iterations: 60_000,
};

fn check(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let (base, other) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(base) = RelativePath::new(base) else { return Ok(()) };
    normal(&base)?;
    ensure!(base.is_inside(&RelativePath::root()), "`{base}` is not inside the root");
    ensure!(base.is_inside(&base.parent()), "`{base}` is not inside its parent");
    ensure!(base.is_root() || base.parent() != base, "`{base}` is its own parent");
    let Ok(joined) = base.join(other) else { return Ok(()) };
    normal(&joined)?;
    // The join is what the file system would make of it, part by part.
    let mut parts: Vec<&str> = base.parts().collect();
    for part in other.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            ensure!(parts.pop().is_some(), "`{base}` joined with {other:?} leaves the root");
        } else {
            parts.push(part);
        }
    }
    same("the join has other parts", &joined.as_str(), &parts.join("/").as_str())?;
    if !other.split('/').any(|part| part == "..") {
        ensure!(joined.is_inside(&base), "`{joined}` without `..` is outside of `{base}`");
    }
    Ok(())
}

/// What holds for every path.
fn normal(path: &RelativePath) -> Result<(), String> {
    let text = path.as_str();
    let is_name = |part: &str| !part.is_empty() && part != "." && part != "..";
    ensure!(path.is_root() || text.split('/').all(is_name), "`{text}` is not normal");
    ensure!(!text.starts_with('/') && !text.ends_with('/'), "`{text}` has a slash at an end");
    ensure!(
        !text.chars().any(|letter| letter.is_control() || letter == '\\'),
        "`{text:?}` has a control character"
    );
    same("the text does not round-trip", &RelativePath::new(text).ok().as_ref(), &Some(path))?;
    same(
        "the shown form does not round-trip",
        &RelativePath::new(&path.to_string()).ok().as_ref(),
        &Some(path),
    )?;
    let json = serde_json::to_string(path).map_err(|error| format!("`{text}` is not JSON: {error}"))?;
    same(
        "the JSON does not round-trip",
        &serde_json::from_str::<RelativePath>(&json).ok().as_ref(),
        &Some(path),
    )?;
    // The operating system reads it as names below a directory and nothing else.
    let is_normal = |part| matches!(part, std::path::Component::Normal(_));
    ensure!(std::path::Path::new(text).components().all(is_normal), "`{text}` leaves its directory");
    same("the parts are not the text", &path.parts().collect::<Vec<_>>().join("/").as_str(), &text)
}
