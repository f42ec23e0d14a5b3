//! The file from which a client takes its token: only its owner can read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use tgp::Kernel;
use tgp::gates::Caveats;
use tgp_contract::{CapabilityToken, Code, ToolError};

/// Bytes of a token file.
const MAX_BYTES: u64 = 16 << 10;
/// What others may do with the file: nothing.
const OTHERS: u32 = 0o077;

/// Keeps the token of the file where it is still valid and allows the same. Otherwise it ends the old one with its family, and
/// writes a new one.
///
/// # Errors
/// `ECONFIG` when the file cannot be written, `ESECURITY` when others can read it.
pub(super) async fn ensure(kernel: &Kernel, path: &Path, caveats: &Caveats) -> Result<(), ToolError> {
    if let Some(token) = read(path)? {
        // What a token allows is signed into it: one that was minted for other options is replaced.
        let wanted = serde_json::to_string(caveats).unwrap_or_default();
        let kept = fs::read_to_string(options_file(path)).unwrap_or_default();
        let token = CapabilityToken::new(token);
        let is_valid = kernel.check_token(&token).is_ok();
        if kept.trim() == wanted && is_valid {
            return Ok(());
        }
        // Clients that still have it lose it with what was derived from it.
        if is_valid && let Some(warning) = kernel.revoke_token(&token).await? {
            return Err(ToolError::new(Code::Integrity, warning).help("`tgp audit verify` says more"));
        }
    }
    let token = kernel.mint_token(caveats).await?;
    let wanted = serde_json::to_string(caveats).unwrap_or_default();
    let unusable = |error: io::Error| {
        ToolError::new(
            Code::Config,
            format!("the token file `{}` cannot be written: {error}", path.display()),
        )
        .help("name another file with `--token-file`")
    };
    write(path, token.reveal()).map_err(unusable)?;
    write(&options_file(path), &wanted).map_err(unusable)
}

/// What the token of a file was minted for.
fn options_file(path: &Path) -> std::path::PathBuf {
    path.with_extension("json")
}

fn read(path: &Path) -> Result<Option<String>, ToolError> {
    let Ok(file) = File::open(path) else { return Ok(None) };
    let is_open = file.metadata().map(|metadata| metadata.mode() & OTHERS != 0).unwrap_or(true);
    if is_open {
        let message = format!("other users can read the token file `{}`", path.display());
        return Err(ToolError::new(Code::Security, message)
            .help("remove it; the next start makes a new one with a new token"));
    }
    let mut text = String::new();
    // What is not text is not a token.
    let _ = file.take(MAX_BYTES).read_to_string(&mut text);
    Ok(Some(text.trim().to_owned()).filter(|token| !token.is_empty()))
}

/// Writes a file that was never open to others, not even for a moment.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    fs::rename(&beside, path)
}
