//! `RECORD`: the files of a distribution with their checksums.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Bytes of a RECORD. Each row takes several times its length in memory.
pub(crate) const MAX_BYTES: u64 = 4 << 20;
/// Rows of a RECORD.
const MAX_ROWS: usize = 40_000;

/// The SHA-256 of a file.
pub(crate) type Checksum = [u8; 32];

/// Paths with their checksums, where they have one.
pub(crate) type Record = BTreeMap<String, Option<Checksum>>;

/// Reads a RECORD row by row.
pub(crate) fn parse(content: &[u8]) -> Result<Record, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(content);
    let mut record = Record::new();
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| error.to_string())? {
        let path = row.get(0).unwrap_or_default();
        if path.is_empty() {
            return Err("a row has no path".to_owned());
        }
        if path.ends_with('/') {
            continue;
        }
        let checksum = match row.get(1).unwrap_or_default() {
            "" => None,
            text => Some(
                checksum(text)
                    .ok_or_else(|| format!("`{}` has no checksum of SHA-256", path.escape_default()))?,
            ),
        };
        if record.insert(path.to_owned(), checksum).is_some() {
            return Err(format!("`{}` is there twice", path.escape_default()));
        }
        if record.len() > MAX_ROWS {
            return Err(format!("it has more than {MAX_ROWS} rows"));
        }
    }
    Ok(record)
}

fn checksum(text: &str) -> Option<Checksum> {
    let encoded = text.strip_prefix("sha256=")?;
    URL_SAFE_NO_PAD.decode(encoded.trim_end_matches('=')).ok()?.try_into().ok()
}

pub(crate) fn checksum_of(content: &[u8]) -> Checksum {
    Sha256::digest(content).into()
}

/// A row as it is written. Quotes are doubled, as in every table of this format.
pub(crate) fn row(path: &str, content: Option<(&Checksum, u64)>) -> String {
    let path = if path.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", path.replace('"', "\"\""))
    } else {
        path.to_owned()
    };
    match content {
        Some((checksum, bytes)) => format!("{path},sha256={},{bytes}\n", URL_SAFE_NO_PAD.encode(checksum)),
        None => format!("{path},,\n"),
    }
}
