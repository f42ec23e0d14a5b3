//! `METADATA` and `WHEEL`: headers as in mails.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

use crate::{Name, WheelError};

/// Bytes of METADATA.
pub(crate) const MAX_BYTES: u64 = 4 << 20;
/// Dependencies of one package.
const MAX_REQUIRES: usize = 5000;

/// What a package says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    pub(crate) name: Name,
    pub(crate) version: Version,
    pub(crate) requires_python: Option<String>,
    /// As they are written. pip reads them; here only addresses are looked for.
    pub(crate) requires: Vec<String>,
}

impl Metadata {
    /// Reads METADATA.
    pub(crate) fn parse(content: &[u8]) -> Result<Self, WheelError> {
        let refused = |why: String| WheelError::Metadata(why);
        let headers = headers(content)?;
        let name = single(&headers, "name")?.ok_or_else(|| refused("it has no name".to_owned()))?;
        let name = Name::new(name).map_err(|error| refused(error.to_string()))?;
        let version = single(&headers, "version")?.ok_or_else(|| refused("it has no version".to_owned()))?;
        let version = Version::from_str(version).map_err(|error| refused(error.to_string()))?;
        let requires_python = single(&headers, "requires-python")?.map(str::to_owned);
        let requires: Vec<String> = of(&headers, "requires-dist").map(str::to_owned).collect();
        if requires.len() > MAX_REQUIRES {
            return Err(WheelError::Limit { what: "the number of dependencies", limit: MAX_REQUIRES as u64 });
        }
        Ok(Self { name, version, requires_python, requires })
    }

    /// Refuses dependencies that are addresses: what is there was published under no name, and may be an archive of sources,
    /// which has to be run to be built.
    pub(crate) fn refuse_addresses(&self) -> Result<(), WheelError> {
        let is_address = |text: &&String| text.contains('@') || text.contains("://");
        match self.requires.iter().find(is_address) {
            Some(text) => Err(WheelError::Address(text.chars().take(200).collect())),
            None => Ok(()),
        }
    }

    /// The versions of Python that it runs on; none where it does not say so.
    pub(crate) fn python(&self) -> Option<VersionSpecifiers> {
        VersionSpecifiers::from_str(self.requires_python.as_deref()?).ok()
    }
}

/// Checks WHEEL: another major version has another meaning.
pub(crate) fn check_wheel(content: &[u8]) -> Result<(), WheelError> {
    let headers = headers(content)?;
    let version = single(&headers, "wheel-version")?.unwrap_or_default();
    if version.split('.').next() == Some("1") {
        return Ok(());
    }
    Err(WheelError::Metadata(format!("version `{}` of the format is unknown", version.escape_default())))
}

type Headers = Vec<(String, String)>;

/// Names in lower case with their values, up to the first empty line. What another reader may take for something else is
/// refused: pip's ends a line at a carriage return too, and takes a line without a colon for the end.
fn headers(content: &[u8]) -> Result<Headers, WheelError> {
    let refused = |why: &str| WheelError::Metadata(why.to_owned());
    let mut headers: Headers = Vec::new();
    for line in content.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        let text = String::from_utf8_lossy(line);
        if text.chars().any(|letter| letter != '\t' && letter.is_control()) {
            return Err(refused("it has a control character in a line"));
        }
        if text.starts_with([' ', '\t']) {
            // A value that goes on.
            let (_, value) =
                headers.last_mut().ok_or_else(|| refused("it begins with a line that goes on"))?;
            value.push('\n');
            value.push_str(text.trim());
        } else {
            let (name, value) =
                text.split_once(':').ok_or_else(|| refused("it has a line without a colon"))?;
            if name.is_empty() || name.contains(char::is_whitespace) {
                return Err(refused("it has a line without a name"));
            }
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    Ok(headers)
}

fn of<'a>(headers: &'a Headers, name: &str) -> impl Iterator<Item = &'a str> {
    headers.iter().filter(move |(header, _)| header == name).map(|(_, value)| value.as_str())
}

fn single<'a>(headers: &'a Headers, name: &str) -> Result<Option<&'a str>, WheelError> {
    let mut values = of(headers, name);
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(WheelError::Metadata(format!("it has `{name}` twice"))),
    }
}
