//! `upstream.d.ts` and `host.d.ts` of the tool repository: what tools can import from `mcp:SERVER` and `host:MODULE`, for the
//! type checker, for editors and for agents. The servers are those of this user and the functions those of the program that the
//! kernel runs in, so git never sees the files.

use std::fs;
use std::io::Read;
use std::path::Path;

use tgp_contract::ToolError;
use tgp_upstream::{HostModules, Upstreams};

use super::generated::DECLARATIONS;

/// A file that the kernel writes again when what it was made from has changed.
struct Declarations {
    name: &'static str,
    /// How the file begins, and what it was made from follows.
    made_from: &'static str,
}

const UPSTREAM: Declarations = Declarations {
    name: "upstream.d.ts",
    made_from: "// Made by tgp from the upstream servers of this user, ",
};
const HOST: Declarations = Declarations {
    name: "host.d.ts",
    made_from: "// Made by tgp from the functions of the program that it runs in, ",
};
/// The first line is all that is read of a file that may be large.
const FIRST_LINE_BYTES: usize = 256;
/// Servers whose types are longer are found with `tgp upstream show`.
const MAX_BYTES: usize = 2 << 20;

/// Writes the files again when what they are made from has changed. Where that fails the old ones stay: they help, and no call
/// depends on them. A kernel without host functions leaves those of the last program that had some.
pub(crate) fn refresh(root: &Path, upstreams: &Upstreams, host: Option<&HostModules>) {
    if let Err(error) = refresh_upstream(root, upstreams) {
        warn(&UPSTREAM, &error);
    }
    if let Some(host) = host
        && let Err(error) = HOST.refresh(root, &host.stamp(), || Ok(host.types()))
    {
        warn(&HOST, &error);
    }
}

/// What an agent reads of its tools' surroundings, for files that are not on a disk.
pub(crate) fn declarations(host: Option<&HostModules>) -> Vec<(&'static str, String)> {
    let mut files = vec![("tgp.d.ts", DECLARATIONS.to_owned())];
    files.extend(host.map(|host| (HOST.name, host.types())));
    files
}

fn warn(file: &Declarations, error: &ToolError) {
    tracing::warn!(target: "kernel", file = file.name, error = error.message, "the types of other programs are not current");
}

fn refresh_upstream(root: &Path, upstreams: &Upstreams) -> Result<(), ToolError> {
    let Some(stamp) = upstreams.store().stamp()? else {
        let path = root.join(UPSTREAM.name);
        if first_line(&path).is_some_and(|line| line.starts_with(UPSTREAM.made_from)) {
            let _ = fs::remove_file(&path);
        }
        return Ok(());
    };
    UPSTREAM.refresh(root, &stamp, || {
        let mut text = String::new();
        for name in upstreams.store().names()? {
            let Ok(module) = upstreams.module(&name) else { continue };
            let types = module.types();
            if text.len() + types.len() > MAX_BYTES {
                text.push_str(&format!("// `mcp:{name}` is too large to be shown here.\n"));
            } else {
                text.push_str(&types);
            }
        }
        Ok(text)
    })
}

impl Declarations {
    fn refresh(
        &self,
        root: &Path,
        stamp: &str,
        text: impl FnOnce() -> Result<String, ToolError>,
    ) -> Result<(), ToolError> {
        let path = root.join(self.name);
        let head = format!("{}{stamp}", self.made_from);
        // Another first line is of a person who keeps the file.
        match first_line(&path) {
            Some(line) if line == head || !line.starts_with(self.made_from) => return Ok(()),
            Some(_) | None => {}
        }
        let text = format!("{head}\n{}", text()?);
        tgp_fs::replace_plain(&path, text.as_bytes()).map_err(tgp_fs::append_log::at(&path))
    }
}

/// `None` for a file that does not exist; nothing for what is not a plain file.
fn first_line(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return Some(String::new());
    }
    let mut start = vec![0; FIRST_LINE_BYTES];
    let read = fs::File::open(path).ok()?.read(&mut start).ok()?;
    let text = String::from_utf8_lossy(start.get(..read)?).into_owned();
    text.lines().next().map(str::to_owned).or(Some(String::new()))
}
