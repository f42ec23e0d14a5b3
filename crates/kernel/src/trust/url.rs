//! Addresses without the secrets in them, so that they can be shown and hashed.

use tgp_contract::{Code, ToolError};

use crate::config::Config;

/// Refuses addresses with characters that readers and parsers of addresses understand differently: a backslash is a part
/// of the user's name to the eye, and a `/` to a browser's parser.
///
/// # Errors
/// `ECONFIG`, with the field.
pub(crate) fn check_addresses(config: &Config) -> Result<(), ToolError> {
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
    let fetched =
        config.allowed_fetch_urls.iter().map(|address| ("allowedFetchUrls", Some(address.as_str())));
    for (field, address) in addresses.into_iter().chain(fetched) {
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
    let Some((scheme, rest)) = address.split_once("://") else {
        // `user@host:path`: the host ends at the first colon.
        let is_scp =
            address.split_once(':').is_some_and(|(host, path)| !host.contains('@') && path.contains('@'));
        return is_scp.then_some((
            "has an `@` behind the `:` that ends the host, so that it looks like another host",
            "write it as `ssh://user@host/path`",
        ));
    };
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
    if !authority.is_ascii() {
        return Some((
            "has letters in its host or user name that look like others",
            "write the host name in ASCII (`xn--…`), and the rest percent-encoded",
        ));
    }
    let is_database = ["postgres", "mysql", "mariadb"].iter().any(|name| scheme.starts_with(name));
    let has_user = authority.contains('@');
    let has_port = !has_user && authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let place = path.split(['?', '#']).next().unwrap_or_default();
    (path.contains('@') && (is_database || has_port || (has_user && place.contains('@')))).then_some((
        "has an `@` behind the `/`, `?` or `#` that ends the host, so that a part of the password would be taken for \
         something else",
        "write those characters percent-encoded (`%2F`, `%3F`, `%23`, `%40`)",
    ))
}

/// What a secret is replaced by.
const MASK: &str = "…";
/// What the names of settings have in them that hold secrets.
const SECRET_WORDS: [&str; 8] = ["pass", "pwd", "token", "key", "secret", "auth", "cred", "sig"];

/// The address without its password, and without the values of settings that hold secrets.
pub(super) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return without_settings(url) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, place) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        None => authority.to_owned(),
        Some((user, host)) => match user.split_once(':') {
            // A name that looks like a host would be read as one.
            Some((name, _)) if name.contains('.') => format!("{MASK}:{MASK}@{host}"),
            Some((name, _)) => format!("{name}:{MASK}@{host}"),
            // A hosting service takes a token as the name.
            None if scheme.to_ascii_lowercase().starts_with("http") => format!("{MASK}@{host}"),
            None => format!("{user}@{host}"),
        },
    };
    format!("{scheme}://{authority}{}", without_settings(place))
}

/// The address of a remote: what it means by a setting only its server knows, so no value of one is shown.
pub(super) fn masked_remote(url: &str) -> String {
    let shown = masked(url);
    let Some(at) = shown.find(['?', '#']) else { return shown };
    // A path of this machine has no settings.
    if !shown.contains("://") {
        return shown;
    }
    let (place, settings) = shown.split_at(at);
    let mut clean = place.to_owned();
    for setting in settings.split_inclusive(['?', '#', '&', ';']) {
        let (setting, sign) = match setting.char_indices().next_back() {
            Some((at, '?' | '#' | '&' | ';')) => setting.split_at(at),
            _ => (setting, ""),
        };
        match setting.split_once('=') {
            Some((name, _)) => clean.push_str(&format!("{name}={MASK}")),
            None if setting.is_empty() => {}
            None => clean.push_str(MASK),
        }
        clean.push_str(sign);
    }
    clean
}

/// The settings are behind a `?` or a `#`, and between `&` or `;`.
fn without_settings(text: &str) -> String {
    let Some(at) = text.find(['?', '#']) else { return text.to_owned() };
    let (place, settings) = text.split_at(at);
    let mut shown = place.to_owned();
    for setting in settings.split_inclusive(['?', '#', '&', ';']) {
        let (setting, sign) = match setting.char_indices().next_back() {
            Some((at, '?' | '#' | '&' | ';')) => setting.split_at(at),
            _ => (setting, ""),
        };
        match setting.split_once('=') {
            Some((name, _)) if is_secret_setting(name) => shown.push_str(&format!("{name}={MASK}")),
            _ => shown.push_str(setting),
        }
        shown.push_str(sign);
    }
    shown
}

/// Whether a setting of an address holds a secret, by its name.
pub(crate) fn is_secret_setting(name: &str) -> bool {
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy().to_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{is_misread, masked, masked_remote};

    #[test]
    fn bug_the_query_of_a_remote_was_shown() {
        for (url, shown) in [
            ("https://git.example/tools.git?t=s3cret&ref=x", "https://git.example/tools.git?t=…&ref=…"),
            ("https://git.example/tools.git?s3cret", "https://git.example/tools.git?…"),
            ("https://git.example/tools.git#s3cret", "https://git.example/tools.git#…"),
            ("https://git.example/tools.git", "https://git.example/tools.git"),
            ("../a?b#c.git", "../a?b#c.git"),
        ] {
            assert_eq!(masked_remote(url), shown);
        }
    }

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
            ("https://x:s3:cr@et@git.example/a%40b", "https://x:…@git.example/a%40b"),
            ("HTTPS://s3cret@git.example/tools.git", "HTTPS://…@git.example/tools.git"),
            ("https://github.example:s3cret@evil.example/t", "https://…:…@evil.example/t"),
            ("https://llm.example/v1#access_token=s3cret", "https://llm.example/v1#access_token=…"),
            (
                "postgres://db.example/app?user=a;password=s3cret",
                "postgres://db.example/app?user=a;password=…",
            ),
            ("sqlite:../x.db?key=s3cret", "sqlite:../x.db?key=…"),
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
            ("https://git.example/a@b", false),
            ("https://git.example:8443/a%40b", false),
            ("https://git.example:1/s3cret@git.example/a", true),
            ("POSTGRES://ann:1/b@db.example/app", true),
            ("postgres://ann:p@s/b@db.example/app", true),
            ("https://git.example\u{2044}a:x@evil.example/t", true),
            ("127.0.0.1:x@git.example:acme/tools.git", true),
            ("../a:b@c", true),
            ("postgres://ann:a%2Fb@db.example/app", false),
            ("https://[::1]/a@b", false),
            ("git@git.example:tools.git", false),
        ] {
            assert_eq!(is_misread(url).is_some(), refused, "{url}");
        }
    }
}
