//! Addresses without the secrets in them, so that they can be shown and hashed.

use tgp_contract::{Code, ToolError};

use crate::config::Config;

/// Refuses addresses with characters that readers and parsers of addresses understand differently: a backslash is a part
/// of the user's name to the eye, and a `/` to a browser's parser.
///
/// # Errors
/// `ECONFIG`, with the field.
pub(super) fn check_all(config: &Config) -> Result<(), ToolError> {
    let git = config.git.as_ref();
    let addresses = [
        ("llm.provider", config.llm.provider.as_deref().filter(|provider| provider.contains(':'))),
        ("llm.baseUrl", config.llm.base_url.as_deref()),
        ("registry.embeddings.baseUrl", config.registry.embeddings.as_ref().map(|to| to.base_url.as_str())),
        ("git.url", git.and_then(|git| git.url.as_deref())),
        ("git.apiBaseUrl", git.and_then(|git| git.api_base_url.as_deref())),
        ("graph.url", config.graph.url.as_deref()),
        ("db.url", config.db.url.as_deref().filter(|url| url.contains("://"))),
    ];
    for (field, address) in addresses {
        let Some(address) = address else { continue };
        if let Some((message, help)) = is_misread(address) {
            let message = format!("`{field}` {message}");
            return Err(ToolError::new(Code::Config, message).detail("field", field).help(help));
        }
    }
    let is_ambiguous = |letter: char| letter == '\\' || letter.is_whitespace() || letter.is_control();
    let is_address = |text: &str| !text.starts_with("script:") && !text.starts_with("sqlite:");
    for (field, address) in addresses {
        if address.is_some_and(|address| is_address(address) && address.contains(is_ambiguous)) {
            let message = format!("`{field}` has a blank, a control character or a backslash in it");
            return Err(ToolError::new(Code::Config, message)
                .detail("field", field)
                .help("remove it, or write it percent-encoded (`%5C`, `%20`)"));
        }
    }
    Ok(())
}

/// What of an address a person could read as another one than it is, with what to do about it.
fn is_misread(address: &str) -> Option<(&'static str, &'static str)> {
    let (scheme, rest) = address.split_once("://")?;
    let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if !host.is_ascii() {
        return Some((
            "has a host name with letters that look like others",
            "write the host name in ASCII (`xn--…`)",
        ));
    }
    let is_database = ["postgres", "mysql", "mariadb"].iter().any(|name| scheme.starts_with(name));
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    let has_odd_port = port.is_some_and(|port| !port.ends_with(']') && port.parse::<u16>().is_err());
    (!authority.contains('@') && path.contains('@') && (is_database || has_odd_port)).then_some((
        "has a `/`, `?` or `#` before the `@`, so that a part of the password would be taken for something else",
        "write those characters of the password percent-encoded (`%2F`, `%3F`, `%23`)",
    ))
}

/// What a secret is replaced by.
const MASK: &str = "…";
/// What the names of settings have in them that hold secrets.
const SECRET_WORDS: [&str; 8] = ["pass", "pwd", "token", "key", "secret", "auth", "cred", "sig"];

/// The address without its password, and without the values of settings that hold secrets.
pub(super) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (before, fragment) =
        rest.split_once('#').map_or((rest, None), |(before, after)| (before, Some(after)));
    let (place, query) = before.split_once('?').map_or((before, None), |(place, query)| (place, Some(query)));
    let (authority, path) = place.find('/').map_or((place, ""), |at| place.split_at(at));
    let authority = match authority.rsplit_once('@') {
        None => authority.to_owned(),
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:{MASK}@{host}"),
            // A hosting service takes a token as the name.
            None if scheme.starts_with("http") => format!("{MASK}@{host}"),
            None => format!("{user}@{host}"),
        },
    };
    let mut shown = format!("{scheme}://{authority}{path}");
    if let Some(query) = query {
        let settings: Vec<String> = query.split('&').map(setting).collect();
        shown.push('?');
        shown.push_str(&settings.join("&"));
    }
    if let Some(fragment) = fragment {
        shown.push('#');
        shown.push_str(fragment);
    }
    shown
}

fn setting(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) if is_secret_setting(name) => format!("{name}={MASK}"),
        _ => text.to_owned(),
    }
}

/// Whether a setting of an address holds a secret, by its name.
pub(crate) fn is_secret_setting(name: &str) -> bool {
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy().to_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{is_misread, masked};

    #[test]
    fn no_secret_of_an_address_is_shown() {
        for (url, shown) in [
            (
                "postgres://ann:s3cret@db.example/app?sslmode=require",
                "postgres://ann:…@db.example/app?sslmode=require",
            ),
            (
                "postgres://db.example/app?password=s3cret&user=ann",
                "postgres://db.example/app?password=…&user=ann",
            ),
            ("https://s3cret@git.example/tools.git", "https://…@git.example/tools.git"),
            ("https://x:s3:cr@et@git.example/a@b", "https://x:…@git.example/a@b"),
            ("ssh://git@git.example/tools.git", "ssh://git@git.example/tools.git"),
            ("git@git.example:tools.git", "git@git.example:tools.git"),
            ("https://llm.example/v1?KEY=s3cret#x", "https://llm.example/v1?KEY=…#x"),
            ("https://llm.example/v1?client%5fp%61ss=s3cret", "https://llm.example/v1?client%5fp%61ss=…"),
            (
                "mysql://db.example/app?x-auth-data=s3cret&charset=utf8",
                "mysql://db.example/app?x-auth-data=…&charset=utf8",
            ),
            ("../tools.git", "../tools.git"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }

    #[test]
    fn an_address_that_people_and_programs_read_differently_is_refused() {
        for (url, refused) in [
            ("postgres://ann:a/b@db.example/app", true),
            ("postgres://ann:1/b@db.example/app", true),
            ("https://x:a#b@git.example/tools.git", true),
            ("https://git.ex\u{430}mple/tools.git", true),
            ("https://xn--git-exmple-7ve/tools.git", false),
            ("https://git.example:8443/a@b", false),
            ("postgres://ann:a%2Fb@db.example/app", false),
            ("https://[::1]/a@b", false),
            ("git@git.example:tools.git", false),
        ] {
            assert_eq!(is_misread(url).is_some(), refused, "{url}");
        }
    }
}
