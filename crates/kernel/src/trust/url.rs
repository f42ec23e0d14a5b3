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

/// What a secret is replaced by.
const MASK: &str = "…";
/// Settings of an address that hold secrets.
const SECRET_SETTINGS: [&str; 8] =
    ["password", "token", "access_token", "key", "apikey", "api_key", "api-key", "secret"];

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
        Some((name, _)) if SECRET_SETTINGS.contains(&name.to_lowercase().as_str()) => {
            format!("{name}={MASK}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::masked;

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
            ("../tools.git", "../tools.git"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
