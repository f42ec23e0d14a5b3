//! Line endings as git stores them, by the attributes of a file and the configuration, without any filter program.

use std::path::Path;

use git2::{AttrCheckFlags, AttrValue};
use tgp_contract::{Code, RelativePath, ToolError};

use super::delta::MAX_VERSION_BYTES;
use super::{ProjectRepo, Reading};

/// What happens to the line endings of a file on its way into the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEndings {
    /// They stay as they are.
    Kept,
    /// Of text CRLF becomes LF.
    Text,
    /// The same, when the content looks like text and the stored version has no CRLF.
    Auto { stored_has_crlf: bool },
}

impl LineEndings {
    /// The content as git stores it.
    pub(super) fn stored(self, content: Vec<u8>) -> Vec<u8> {
        let converts = match self {
            Self::Kept | Self::Auto { stored_has_crlf: true } => false,
            Self::Text => true,
            Self::Auto { stored_has_crlf: false } => looks_like_text(&content),
        };
        if !converts || !has_crlf(&content) {
            return content;
        }
        let mut converted = Vec::with_capacity(content.len());
        let mut bytes = content.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte != b'\r' || bytes.peek() != Some(&b'\n') {
                converted.push(byte);
            }
        }
        converted
    }
}

fn has_crlf(content: &[u8]) -> bool {
    content.windows(2).any(|pair| pair == b"\r\n")
}

/// As git decides it: no NUL, no carriage return of its own, and few other control characters.
fn looks_like_text(content: &[u8]) -> bool {
    let lone =
        content.iter().enumerate().any(|(at, byte)| *byte == b'\r' && content.get(at + 1) != Some(&b'\n'));
    if lone || content.contains(&0) {
        return false;
    }
    let is_control = |byte: &&u8| match **byte {
        b'\n' | b'\r' | b'\t' | 0x08 | 0x1b | 0x0c => false,
        byte => byte < 0x20 || byte == 0x7f,
    };
    let control = content.iter().filter(is_control).count();
    (content.len() - control) >> 7 >= control
}

impl ProjectRepo {
    /// What happens to the line endings of a file.
    pub(super) fn line_endings(&self, path: &RelativePath) -> LineEndings {
        let place = self.in_repository(path);
        let attribute = |name: &str| self.attribute(&place, name).unwrap_or(Attribute::Unspecified);
        let is_on = |value: &Attribute| *value == Attribute::On;
        let (mut text, mut eol) = (attribute("text"), attribute("eol"));
        if text == Attribute::Unspecified {
            text = match attribute("crlf") {
                Attribute::Text(word) if word == "input" => {
                    eol = Attribute::Text("lf".to_owned());
                    Attribute::On
                }
                other => other,
            };
        }
        match text {
            Attribute::Off => return LineEndings::Kept,
            Attribute::Text(word) if word == "auto" => return self.auto(&place),
            value if is_on(&value) => return LineEndings::Text,
            _ => {}
        }
        if matches!(eol, Attribute::Text(_)) {
            return LineEndings::Text;
        }
        let config = self.repo.config().ok();
        let converts = config.is_some_and(|config| {
            let word = config.get_string("core.autocrlf").unwrap_or_default();
            word.eq_ignore_ascii_case("input") || config.get_bool("core.autocrlf").unwrap_or(false)
        });
        if converts { self.auto(&place) } else { LineEndings::Kept }
    }

    fn auto(&self, place: &Path) -> LineEndings {
        let stored = self.index().ok().and_then(|index| index.get_path(place, 0));
        let odb = self.repo.odb().ok();
        let is_small = |id| {
            let header = odb.as_ref().and_then(|odb| odb.read_header(id).ok());
            header.is_some_and(|(size, _)| size as u64 <= MAX_VERSION_BYTES)
        };
        let stored = stored.filter(|entry| is_small(entry.id));
        let stored = stored.and_then(|entry| self.repo.find_blob(entry.id).ok());
        LineEndings::Auto { stored_has_crlf: stored.is_some_and(|blob| has_crlf(blob.content())) }
    }

    /// Refuses a file whose content only another program could convert as the attributes demand.
    pub(super) fn refuse_filters(&self, path: &RelativePath) -> Result<(), ToolError> {
        let place = self.in_repository(path);
        for name in ["filter", "working-tree-encoding", "ident"] {
            let value = match self.attribute(&place, name)? {
                Attribute::Unspecified | Attribute::Off => continue,
                Attribute::On => name.to_owned(),
                Attribute::Text(value) => format!("{name}={value}"),
            };
            let value: String = value.chars().filter(|character| !character.is_control()).take(80).collect();
            let message = format!(
                "`{path}` cannot be committed here: its attribute `{value}` needs a conversion that tgp does not run"
            );
            return Err(ToolError::new(Code::Git, message)
                .detail("path", path.as_str())
                .help("leave this file out and commit it with git itself"));
        }
        Ok(())
    }

    fn attribute(&self, place: &Path, name: &str) -> Result<Attribute, ToolError> {
        let found = self.repo.get_attr_bytes(place, name, AttrCheckFlags::FILE_THEN_INDEX);
        Ok(match AttrValue::from_bytes(found.reading("read the attributes of a file")?) {
            AttrValue::True => Attribute::On,
            AttrValue::False => Attribute::Off,
            AttrValue::Unspecified => Attribute::Unspecified,
            AttrValue::String(text) => Attribute::Text(text.to_owned()),
            AttrValue::Bytes(bytes) => Attribute::Text(String::from_utf8_lossy(bytes).into_owned()),
        })
    }
}

/// The value of an attribute.
#[derive(Debug, PartialEq, Eq)]
enum Attribute {
    On,
    Off,
    Unspecified,
    Text(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_converted_and_binaries_are_kept() {
        let auto = LineEndings::Auto { stored_has_crlf: false };
        assert_eq!(auto.stored(b"a\r\nb\r\n".to_vec()), b"a\nb\n");
        assert_eq!(auto.stored(b"a\0\r\n".to_vec()), b"a\0\r\n");
        assert_eq!(auto.stored(b"a\rb\r\n".to_vec()), b"a\rb\r\n");
        assert_eq!(LineEndings::Text.stored(b"a\rb\r\n".to_vec()), b"a\rb\n");
        assert_eq!(LineEndings::Auto { stored_has_crlf: true }.stored(b"a\r\n".to_vec()), b"a\r\n");
        assert_eq!(LineEndings::Kept.stored(b"a\r\n".to_vec()), b"a\r\n");
    }
}
