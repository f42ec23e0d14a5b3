//! Names: which paths a working tree may hold, and what branches and messages are called.

use std::path::Path;

use git2::{ObjectType, Oid};
use tgp_contract::{Code, RelativePath, ToolError};
pub(crate) use tgp_fs::STATE_DIRECTORY as STATE;
use tgp_fs::is_kernel_private;

use crate::{CommitKind, PersistFile};

/// References that say: this branch has no request yet.
pub(crate) const PENDING: &str = "refs/tgp/pending/";

/// A file in here is a tool, and is committed when the user or an agent asks for it.
const TOOLS_DIRECTORY: &str = "tools";
/// Keeps an empty directory in git.
const PLACEHOLDER: &str = ".gitkeep";
/// How the names of other crates' temporary files begin.
const TEMPORARY: &str = ".tgp-tmp-";
/// What every clone ignores, whether or not it has the `.gitignore` that says so.
pub(crate) const EXCLUDES: &str =
    "/.state/\n/data.sqlite\n/data.sqlite-*\n/upstream.d.ts\n/host.d.ts\n.tgp-tmp-*\n";
/// Longer branch names are cut: with the digest behind it the name still is the tool's alone.
const MAX_SLUG_BYTES: usize = 80;

/// Bytes of a branch's name.
const MAX_BRANCH_BYTES: usize = 200;
/// Names of git's own references beside the branches, which it finds first. Others of them end in `_HEAD`.
const ROOT_REFERENCES: [&str; 14] = [
    "HEAD",
    "FETCH_HEAD",
    "ORIG_HEAD",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_HEAD",
    "BISECT_EXPECTED_REV",
    "AUTO_MERGE",
    "MERGE_AUTOSTASH",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
    "stash",
];

/// Checks the name of a branch that a caller or a configuration gives.
///
/// # Errors
/// `EVALIDATION` for a name that git refuses, and for one that git or a person takes for something else.
pub(crate) fn check_branch(name: &str) -> Result<(), ToolError> {
    // On some file systems case does not count.
    let is_root = ROOT_REFERENCES.iter().any(|reference| name.eq_ignore_ascii_case(reference))
        || (name.ends_with("_HEAD") && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
    // The id of a commit, by SHA-1 or SHA-256.
    let is_id = matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_valid = name.len() <= MAX_BRANCH_BYTES
        && name != "@"
        && !is_root
        && !is_id
        && !name.starts_with("refs/")
        && !name.chars().any(tgp_text::is_unseen)
        && git2::Branch::name_is_valid(name).unwrap_or(false);
    if is_valid {
        return Ok(());
    }
    let shown: String = name.chars().filter(|character| !tgp_text::is_unseen(*character)).take(80).collect();
    Err(ToolError::new(Code::Validation, format!("invalid branch name `{shown}`"))
        .detail("field", "branch")
        .help("use letters, digits, `-`, `_`, `.` and `/`, such as `agent/fix-parser`"))
}

/// The path as a working tree may hold it. A tree from a remote can name anything; what this refuses is carried
/// along in the objects and never written to the disk.
pub(crate) fn writable(path: &Path) -> Option<RelativePath> {
    let text = path.to_str()?;
    let relative = RelativePath::new(text).ok()?;
    (relative.as_str() == text && is_plain(&relative)).then_some(relative)
}

fn is_plain(path: &RelativePath) -> bool {
    let is_private = path.parts().next().is_some_and(is_kernel_private);
    let is_reserved = |name: &str| {
        // The second is what a FAT file system would call the first.
        name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1") || name.starts_with(TEMPORARY)
    };
    !path.is_root() && !is_private && !path.parts().any(is_reserved)
}

/// Whether the file is one of the library's tools, or belongs to one.
pub(crate) fn is_tool(path: &RelativePath) -> bool {
    path.parts().next() == Some(TOOLS_DIRECTORY) && path.name() != Some(PLACEHOLDER)
}

/// Whether such a name is never committed: it is git's, ours, or a file that is being written.
pub(crate) fn is_private(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path == Path::new(".git") || path.to_str().is_some_and(is_kernel_private) || name.starts_with(TEMPORARY)
}

/// Refuses to persist what no working tree may hold.
pub(crate) fn admit(path: &RelativePath) -> Result<(), ToolError> {
    if is_plain(path) {
        return Ok(());
    }
    let message = format!("`{path}` is not a file of the tool repository");
    Err(ToolError::new(Code::Security, message).help("name a tool, such as `tools/math/fib.ts`"))
}

/// The tool's name within a branch name: the path without `tools/` and `.ts`, `-` between folders.
///
/// | path | slug |
/// | --- | --- |
/// | `tools/math/fib.ts` | `math-fib` |
/// | `tools/dim-weight.ts` | `dim--weight` (so that it is not the slug of `tools/dim/weight.ts`) |
/// | `tools/größe.ts` | `gr-e-` and eight digits of a digest, as for whatever else is not plain |
pub(crate) fn slug(path: &RelativePath) -> String {
    let text = path.as_str();
    let tool = text.strip_prefix("tools/").and_then(|rest| rest.strip_suffix(".ts"));
    let name = tool.unwrap_or(text);
    let mut is_exact = tool.is_some() && name.len() <= MAX_SLUG_BYTES;
    let mut slug = String::new();
    for part in name.split('/') {
        is_exact &= !part.starts_with('-') && !part.ends_with('-') && !part.is_empty();
        if !slug.is_empty() {
            slug.push('-');
        }
        for letter in part.chars() {
            match letter {
                '-' => slug.push_str("--"),
                letter if letter.is_ascii_alphanumeric() || letter == '_' => slug.push(letter),
                _ => {
                    is_exact = false;
                    slug.push('-');
                }
            }
        }
    }
    slug.truncate(MAX_SLUG_BYTES);
    if is_exact && !slug.is_empty() {
        return slug;
    }
    let digest = Oid::hash_object(ObjectType::Blob, text.as_bytes())
        .map_or_else(|_| String::new(), |id| id.to_string());
    let stem = slug.trim_matches('-');
    format!("{}-{}", if stem.is_empty() { "tool" } else { stem }, digest.get(..8).unwrap_or("0"))
}

/// The branch of the request for `path`.
pub(crate) fn request_branch(path: &RelativePath) -> String {
    format!("feat/{}", slug(path))
}

/// The branch that keeps our version of `path`, which lost to the remote's.
pub(crate) fn kept_branch(path: &RelativePath, ours: Oid) -> String {
    format!("{}{}", kept_prefix(path), crate::report::short(&ours.to_string()))
}

pub(crate) fn kept_prefix(path: &RelativePath) -> String {
    format!("{CONFLICT}{}-", slug(path))
}

/// Branches that keep what lost a conflict.
pub(crate) const CONFLICT: &str = "conflict/";
/// All prefixes of such branches; the second one is of versions before 0.2.
pub(crate) const CONFLICTS: [&str; 2] = [CONFLICT, "kept/"];

/// `Forge: tools/a.ts`; further files follow in the body.
pub(crate) fn message(verb: CommitKind, files: &[PersistFile]) -> String {
    if verb == CommitKind::Start {
        return "Start the tool repository\n".to_owned();
    }
    let mut paths = files.iter().map(|file| file.path.as_str());
    let mut message = format!("{verb}: {}\n", paths.next().unwrap_or_default());
    for (index, path) in paths.enumerate() {
        message.push_str(if index == 0 { "\nAlso:\n" } else { "" });
        message.push_str(&format!("- {path}\n"));
    }
    message
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn slugs_are_valid_branch_names_and_do_not_collide() {
        let expected = [("tools/math/fib.ts", "math-fib"), ("tools/dim-weight.ts", "dim--weight")];
        for (path, name) in expected {
            assert_eq!(slug(&RelativePath::new(path).unwrap()), name);
        }
        let odd = [
            "tools/dim/weight.ts",
            "tools/a-/b.ts",
            "tools/a/-b.ts",
            "tools/größe.ts",
            "tools/gr e.ts",
            "notes.md",
            "tools/.ts",
            "tools/x.lock.ts",
            "tools/@{.ts",
            "tools/x..y.ts",
            "-",
            "tools/a-b/c.ts",
            "tools/a/b-c.ts",
            "tools/日本.ts",
            "math-fib",
            "tools/math/fib.js",
        ];
        let mut seen: BTreeMap<String, &str> =
            expected.iter().map(|(path, name)| ((*name).to_owned(), *path)).collect();
        for path in odd {
            let name = slug(&RelativePath::new(path).unwrap());
            assert!(check_branch(&format!("feat/{name}")).is_ok(), "{name}");
            assert_eq!(seen.insert(name.clone(), path), None, "{name}");
        }
    }

    #[test]
    fn hostile_names_are_not_written() {
        for path in [
            "../x",
            "/etc/passwd",
            ".git/config",
            "a/.GIT/x",
            ".state/git.lock",
            ".State/x",
            "data.sqlite",
            "Data.SQLite-wal",
            "data.sqlite-journal/x",
            "a/../b",
            "a//b",
            "./a",
            "a\\b",
            "a\nb",
            "GIT~1/config",
            ".tgp-tmp-1",
            "",
            "a/.tgp-tmp-x/b",
        ] {
            assert_eq!(writable(Path::new(path)), None, "{path:?}");
        }
        for path in [
            "tools/a b.ts",
            "-x",
            "tools/größe.ts",
            ".gitignore",
            "tools/.state/x",
            "data.sqlite3",
            "tools/data.sqlite",
        ] {
            assert_eq!(writable(Path::new(path)).unwrap().as_str(), path);
        }
    }
}
