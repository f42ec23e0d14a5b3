//! The command lines that the fake tools understand: enough to read, make, change and remove a file.

use tgp_contract::{Change, FileSystem, FsError, RelativePath, ToolError};

/// What a shell answers for a command that there is not.
const UNKNOWN_COMMAND: i32 = 127;

/// What a command has said and would change.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) changes: Vec<Change>,
}

impl Ran {
    fn failed(exit_code: i32, stderr: String) -> Self {
        Self { exit_code, stderr, ..Self::default() }
    }

    fn changed(changes: Vec<Change>) -> Self {
        Self { changes, ..Self::default() }
    }
}

/// Knows `cat FILE`, `echo WORDS`, `echo WORDS > FILE`, `rm FILE`, `touch FILE` and `sed -i s/A/B/ FILE`, and answers
/// everything else as a shell answers a command that there is not.
pub(crate) fn run(command: &str, files: &dyn FileSystem) -> Result<Ran, ToolError> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let ran = match words.as_slice() {
        ["cat", file] => {
            read(files, file)?.map_or_else(|missing| missing, |stdout| Ran { stdout, ..Ran::default() })
        }
        ["echo", text @ .., ">", file] => {
            let content = format!("{}\n", text.join(" ")).into_bytes();
            Ran::changed(vec![Change::Write { path: RelativePath::new(file)?, content: content.into() }])
        }
        ["echo", text @ ..] => Ran { stdout: format!("{}\n", text.join(" ")), ..Ran::default() },
        ["rm", file] => match read(files, file)? {
            Ok(_) => Ran::changed(vec![Change::Remove { path: RelativePath::new(file)? }]),
            Err(missing) => missing,
        },
        ["touch", file] => {
            let content = read(files, file)?.unwrap_or_default().into_bytes();
            Ran::changed(vec![Change::Write { path: RelativePath::new(file)?, content: content.into() }])
        }
        ["sed", "-i", script, file] => match (substitution(script), read(files, file)?) {
            (None, _) => Ran::failed(1, format!("sed: `{script}` is not understood\n")),
            (_, Err(missing)) => missing,
            (Some((search, replace)), Ok(text)) => {
                let lines = text.split_inclusive('\n').map(|line| line.replacen(search, replace, 1));
                let content = lines.collect::<String>().into_bytes();
                Ran::changed(vec![Change::Write { path: RelativePath::new(file)?, content: content.into() }])
            }
        },
        _ => {
            let name = words.first().copied().unwrap_or_default();
            Ran::failed(UNKNOWN_COMMAND, format!("sh: {name}: not found\n"))
        }
    };
    Ok(ran)
}

/// `s/search/replace/`, without a slash or anything special in either.
fn substitution(script: &str) -> Option<(&str, &str)> {
    let mut parts = script.strip_prefix("s/")?.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(search), Some(replace), Some(""), None) if !search.is_empty() => Some((search, replace)),
        _ => None,
    }
}

/// The text of a file, or how a command fails that has none.
fn read(files: &dyn FileSystem, file: &str) -> Result<Result<String, Ran>, ToolError> {
    match files.read_text(&RelativePath::new(file)?) {
        Ok(text) => Ok(Ok(text)),
        Err(FsError::NotFound(path)) => Ok(Err(Ran::failed(1, format!("{path}: no such file\n")))),
        Err(error) => Err(error.into()),
    }
}
