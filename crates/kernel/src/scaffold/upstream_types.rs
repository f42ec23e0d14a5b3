//! `upstream.d.ts` of the tool repository: what tools can import from `mcp:SERVER`, for the type checker, for editors and for
//! agents. The servers are those of this user, so git never sees the file.

use std::fs;
use std::io::Read;
use std::path::Path;

use tgp_contract::ToolError;
use tgp_upstream::Upstreams;

const NAME: &str = "upstream.d.ts";
/// How the file begins, and what it was made from follows.
const MADE_FROM: &str = "// Made by tgp from the upstream servers of this user, ";
/// The first line is all that is read of a file that may be large.
const FIRST_LINE_BYTES: usize = 256;
/// Servers whose types are longer are found with `tgp upstream show`.
const MAX_BYTES: usize = 2 << 20;

/// Writes the file again when the servers have changed. Where that fails the old one stays: it helps, and no call depends on it.
pub(crate) fn refresh(root: &Path, upstreams: &Upstreams) {
    if let Err(error) = try_refresh(root, upstreams) {
        tracing::warn!(target: "kernel", file = NAME, error = error.message, "the types of upstream servers are not current");
    }
}

fn try_refresh(root: &Path, upstreams: &Upstreams) -> Result<(), ToolError> {
    let path = root.join(NAME);
    let stamp = upstreams.store().stamp()?;
    let first = first_line(&path);
    let Some(stamp) = stamp else {
        if first.is_some_and(|line| line.starts_with(MADE_FROM)) {
            let _ = fs::remove_file(&path);
        }
        return Ok(());
    };
    let head = format!("{MADE_FROM}{stamp}");
    // Another first line is of a person who keeps the file.
    match first {
        Some(line) if line == head || !line.starts_with(MADE_FROM) => return Ok(()),
        Some(_) | None => {}
    }
    let mut text = format!("{head}\n");
    for name in upstreams.store().names()? {
        let Ok(module) = upstreams.module(&name) else { continue };
        let types = module.types();
        if text.len() + types.len() > MAX_BYTES {
            text.push_str(&format!("// `mcp:{name}` is too large to be shown here.\n"));
        } else {
            text.push_str(&types);
        }
    }
    tgp_fs::replace_plain(&path, text.as_bytes()).map_err(tgp_fs::append_log::at(&path))
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
