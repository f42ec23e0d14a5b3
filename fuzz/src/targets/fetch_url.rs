//! The list of URLs that tools may fetch. The first line of the input is an entry of it; the rest is the URL.

use tgp_fetch::AllowList;
use url::{Host, Url};

use super::{ensure, same, text};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "fetch-url",
    about: "a URL that passes has the origin and the path of an entry and no credentials, and no message has a password in it",
    oracle: check,
    dictionary: &[
        "https://",
        "http://",
        "https:",
        "//",
        "/",
        "\\",
        "@",
        ":",
        ":443",
        ":8080",
        ":444",
        ".",
        "..",
        "?",
        "#",
        "%2e",
        "%2E%2e",
        "%2f",
        "%5c",
        "%252e",
        "%00",
        ";",
        "v1",
        "v10",
        "a",
        "api.stripe.com",
        "api.x.com",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "*.example.com",
        "x.example.com",
        "example.com",
        "localhost",
        "evil.com",
        "user:pass@",
        "\t",
        "\n",
        " ",
        "。",
        "ａ",
        "ß",
        "\u{200d}",
        "*",
        "xn--",
        "\u{2025}",
        "\u{ff0f}",
    ],
    generate: None,
    iterations: 25_000,
};

const ENTRIES: [&str; 3] = ["https://api.x.com/v1", "http://127.0.0.1:8080", "https://*.example.com/a"];
/// Represents a password: no URL has it by chance.
const SECRET: &str = "sEcReT7q";

fn check(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let (entry, url) = text.split_once('\n').unwrap_or((&text, &text));
    entries(entry)?;
    let known = AllowList::parse(&ENTRIES.map(str::to_owned)).map_err(|error| error.to_string())?;
    passes(&known, url, &ENTRIES)?;
    if let Ok(own) = AllowList::parse(&[entry.to_owned()]) {
        passes(&own, url, &[entry])?;
        if !entry.contains('*') {
            ensure!(own.allows(entry), "the entry {entry:?} does not allow itself");
        }
    }
    Ok(())
}

/// What passes is what an entry means.
fn passes(list: &AllowList, url: &str, entries: &[&str]) -> Result<(), String> {
    let Ok(sent) = list.check(url) else { return Ok(()) };
    ensure!(sent.username().is_empty() && sent.password().is_none(), "{sent} has credentials");
    ensure!(sent.fragment().is_none(), "{sent} has a fragment");
    let again =
        list.check(sent.as_str()).map_err(|error| format!("{sent} passes once and not twice: {error}"))?;
    same("reading it again changes it", &again, &sent)?;
    ensure!(
        entries.iter().any(|entry| is_meant(entry, &sent)),
        "{sent} passes, and no entry means it: {entries:?}"
    );
    Ok(())
}

/// Written apart from the code under test: the origin by its parts, and the path decoded to the last escape.
fn is_meant(entry: &str, sent: &Url) -> bool {
    let Ok(entry) = Url::parse(entry) else { return false };
    let name = |url: &Url| url.host_str().unwrap_or_default().trim_end_matches('.').to_owned();
    let (own, other) = (name(&entry), name(sent));
    let host = match (own.strip_prefix("*."), sent.host()) {
        (Some(parent), Some(Host::Domain(_))) => other.ends_with(&format!(".{parent}")),
        (Some(_), _) => false,
        (None, _) => own == other,
    };
    let origin =
        entry.scheme() == sent.scheme() && entry.port_or_known_default() == sent.port_or_known_default();
    let prefix = decoded(entry.path());
    let prefix = prefix.trim_end_matches('/');
    let path = decoded(sent.path());
    let climbs = path.split('/').any(|part| part.split(';').next() == Some(".."));
    let below = prefix.is_empty() || (!climbs && (path == prefix || path.starts_with(&format!("{prefix}/"))));
    host && origin && below
}

/// A path in which every escape is resolved that a server could resolve.
fn decoded(path: &str) -> String {
    let mut bytes = path.as_bytes().to_vec();
    loop {
        let mut next = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
            let escape =
                digits.filter(|_| *byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
            next.push(escape.unwrap_or(*byte));
            at += if escape.is_some() { 3 } else { 1 };
        }
        if next == bytes {
            return String::from_utf8_lossy(&bytes).replace('\\', "/");
        }
        bytes = next;
    }
}

/// The message about a bad entry does not repeat its password.
fn entries(entry: &str) -> Result<(), String> {
    let Some((scheme, rest)) = entry.split_once("://") else { return Ok(()) };
    let Some((user, host)) = rest.split_once('@') else { return Ok(()) };
    let Some((name, _)) = user.split_once(':') else { return Ok(()) };
    let marked = format!("{scheme}://{name}:{SECRET}@{host}");
    match AllowList::parse(std::slice::from_ref(&marked)) {
        Ok(_) if name.contains(['/', '?', '#', '\\']) => Ok(()),
        Ok(_) => Err(format!("the entry {marked:?} with a password was taken")),
        Err(_) if name.contains(['/', '?', '#', '\\']) => Ok(()),
        Err(error) => {
            ensure!(!format!("{error} {error:?}").contains(SECRET), "the password is shown: {error}");
            Ok(())
        }
    }
}
