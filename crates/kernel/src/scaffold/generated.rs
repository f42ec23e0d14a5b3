//! The files of the tool repository that describe the kernel: to the type checker, to editors, and to agents, who read
//! them with `read_file`. They follow the version of the kernel; what a person changed in them stays.

use std::fs;
use std::io;
use std::path::Path;

use tgp_contract::canonical::sha256_hex;

pub(super) const DECLARATIONS: &str =
    concat!(include_str!("templates/tgp.d.ts"), include_str!("templates/platform.d.ts"));
const TSCONFIG: &str = include_str!("templates/tsconfig.json");

/// Digits of the hash in the first line: enough to notice a change.
const HASH_DIGITS: usize = 16;
/// A file that is longer was not made here.
const MAX_BYTES: u64 = 1 << 20;
/// How the first line of a generated file begins and goes on.
const MADE_BY: &str = "// Made by tgp ";
const HASH_MARK: &str = ", content ";

/// One generated file.
pub(super) struct Generated {
    pub(super) name: &'static str,
    content: &'static str,
    /// How the file began, and what it was, in versions that did not write their name into it.
    earlier: Earlier,
}

enum Earlier {
    Start(&'static str),
    Hash(&'static str),
}

pub(super) const FILES: [Generated; 2] = [
    Generated {
        name: "tgp.d.ts",
        content: DECLARATIONS,
        earlier: Earlier::Start("// What a tool finds in the sandbox. Written by `tgp init`"),
    },
    Generated {
        name: "tsconfig.json",
        content: TSCONFIG,
        earlier: Earlier::Hash("1b22f5c7c1f2d5af4b9eee59087386e6afdf6686c270acb3cf0db3940f4165fe"),
    },
];

impl Generated {
    /// The file as this version writes it. Its first line tells a later version that nobody changed it.
    pub(super) fn text(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let hash = short_hash(self.content);
        format!(
            "{MADE_BY}{version}{HASH_MARK}{hash}. A newer version replaces this file unless you change it.\n{}",
            self.content
        )
    }

    /// Whether the text is of another version and nobody has changed it since.
    fn is_outdated(&self, text: &str) -> bool {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        match first.strip_prefix(MADE_BY).and_then(|first| first.split_once(HASH_MARK)) {
            Some((_, hash)) => rest != self.content && hash.starts_with(&short_hash(rest)),
            None => match self.earlier {
                Earlier::Start(start) => text.starts_with(start),
                Earlier::Hash(hash) => sha256_hex(text.as_bytes()) == hash,
            },
        }
    }
}

fn short_hash(content: &str) -> String {
    let mut hash = sha256_hex(content.as_bytes());
    hash.truncate(HASH_DIGITS);
    hash
}

/// Replaces the generated files of an earlier version. A tool repository that cannot be written keeps the old ones: they
/// help, and nothing depends on them.
pub(crate) fn refresh(root: &Path) {
    for file in &FILES {
        let path = root.join(file.name);
        match read(&path) {
            Ok(Some(text)) if file.is_outdated(&text) => {}
            _ => continue,
        }
        // Under another name first, so that no type checker reads half of it.
        let draft = root.join(format!(".tgp-tmp-{}-{}", std::process::id(), file.name));
        let written = fs::write(&draft, file.text()).and_then(|()| fs::rename(&draft, &path));
        if let Err(error) = written {
            drop(fs::remove_file(&draft));
            tracing::warn!(target: "kernel", file = file.name, %error, "a generated file stays as an earlier version wrote it");
        }
    }
}

/// The text of a plain file; links and folders are somebody else's.
fn read(path: &Path) -> io::Result<Option<String>> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Ok(None);
    }
    fs::read_to_string(path).map(Some)
}
