//! Which files a source imports by a relative path and what it exports, found line by line.

use std::collections::BTreeSet;

use tgp_contract::RelativePath;

/// What may be left out at the end of an import.
const ENDINGS: [&str; 5] = ["", ".ts", ".tsx", ".js", "/index.ts"];

/// Whether imports are looked for in such a file.
pub(crate) fn is_source(path: &str) -> bool {
    [".ts", ".tsx", ".js"].iter().any(|ending| path.ends_with(ending))
}

/// The relative paths in a line such as `import { b } from './b';`.
pub(crate) fn named(line: &str) -> Vec<&str> {
    let line = line.trim_start();
    if !["import", "export", "const"].iter().any(|word| line.starts_with(word)) {
        return Vec::new();
    }
    line.split(['\'', '"']).skip(1).step_by(2).filter(|text| text.starts_with('.')).collect()
}

/// The function or constant of a line such as `export const b = 1;`.
pub(crate) fn defined(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("export ")?;
    let rest = rest.strip_prefix("function ").or_else(|| rest.strip_prefix("const "))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    rest.get(..end).filter(|name| !name.is_empty())
}

/// The file that `text` means in a source, of those that there are.
pub(crate) fn resolve(source: &str, text: &str, files: &BTreeSet<String>) -> Option<String> {
    let folder = RelativePath::new(source).ok()?.parent();
    let mut parts: Vec<&str> = folder.parts().collect();
    for part in text.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    ENDINGS.iter().map(|ending| format!("{path}{ending}")).find(|candidate| files.contains(candidate))
}
