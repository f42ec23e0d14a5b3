//! The index as cargo keeps it on the disk: for each package a file with a line for each version.

use std::path::PathBuf;

use serde_json::Value;

use super::lock::Published;

/// Largest file of one package.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Where the file of a package is below the directory of its index.
pub(super) fn place(name: &str) -> PathBuf {
    let name = name.to_ascii_lowercase();
    let part = |from: usize, to: usize| name.get(from..to).unwrap_or_default().to_owned();
    let folder = match name.len() {
        0..=2 => PathBuf::from(name.len().to_string()),
        3 => PathBuf::from("3").join(part(0, 1)),
        _ => PathBuf::from(part(0, 2)).join(part(2, 4)),
    };
    PathBuf::from(".cache").join(folder).join(name)
}

/// Whether a file of the index has all these versions of one package, each with its checksum.
pub(super) fn lists(text: &[u8], packages: &[Published<'_>]) -> bool {
    // A short head, and then the version and the line of each version, with a zero after each part.
    let lines = || text.split(|byte| *byte == 0).filter(|part| part.first() == Some(&b'{'));
    packages.iter().all(|package| {
        let version = package.version.as_bytes();
        let mentions = |line: &&[u8]| line.windows(version.len()).any(|part| part == version);
        lines().filter(mentions).any(|line| is_line_of(line, *package))
    })
}

fn is_line_of(line: &[u8], package: Published<'_>) -> bool {
    let Ok(line) = serde_json::from_slice::<Value>(line) else { return false };
    let field = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
    field("name") == package.name && field("vers") == package.version && field("cksum") == package.checksum
}

/// Whether a text is the settings of an index: addresses, all of them secure ones.
pub(super) fn is_settings(text: &[u8]) -> bool {
    let Ok(Value::Object(settings)) = serde_json::from_slice::<Value>(text) else { return false };
    let is_secure = |value: &Value| value.as_str().is_none_or(|text| text.starts_with("https://"));
    settings.get("dl").is_some_and(Value::is_string) && settings.values().all(is_secure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_where_cargo_keeps_it() {
        for (name, expected) in [
            ("a", ".cache/1/a"),
            ("ab", ".cache/2/ab"),
            ("abc", ".cache/3/a/abc"),
            ("Serde", ".cache/se/rd/serde"),
        ] {
            assert_eq!(place(name), PathBuf::from(expected));
        }
    }

    #[test]
    fn a_version_counts_with_its_checksum_only() {
        let text = b"\x03\x02\0\0\0etag\x001.0.0\0{\"name\":\"a\",\"vers\":\"1.0.0\",\"cksum\":\"11\"}\x001.0.1\0{\"name\":\"a\",\"vers\":\"1.0.1\",\"cksum\":\"22\"}\0";
        let package = |version, checksum| Published { name: "a", version, checksum };
        assert!(lists(text, &[package("1.0.0", "11"), package("1.0.1", "22")]));
        assert!(!lists(text, &[package("1.0.0", "22")]) && !lists(text, &[package("1.0.2", "11")]));
        assert!(!lists(text, &[Published { name: "b", version: "1.0.0", checksum: "11" }]));
        assert!(!lists(b"", &[package("1.0.0", "11")]));
        assert!(is_settings(b"{\"dl\": \"https://example.org\", \"api\": null}"));
        assert!(
            !is_settings(b"{\"dl\": \"http://example.org\"}") && !is_settings(b"{}") && !is_settings(b"[")
        );
    }
}
