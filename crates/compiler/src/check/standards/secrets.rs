//! Texts that belong to one person, one account or one secret, recognised by their shape.

/// What a text contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secret {
    PrivateKey,
    Token,
    Credentials,
    Email,
    Uuid,
    Identifier,
    /// An address on the network: it may be meant, so it is only worth a warning.
    Url,
}

/// Prefixes that services put before their tokens, and how much must follow.
const TOKEN_PREFIXES: [(&str, usize); 24] = [
    ("sk-", 16),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("rk_test_", 8),
    ("pk_live_", 8),
    ("pk_test_", 8),
    ("whsec_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxs-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("hf_", 24),
];

/// The worst thing a text contains.
pub(super) fn find(text: &str) -> Option<Secret> {
    if text.len() < 6 {
        return None;
    }
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY") {
        return Some(Secret::PrivateKey);
    }
    if words(text, is_token_byte).any(is_token) || has_jwt(text) || has_authorization(text) {
        return Some(Secret::Token);
    }
    if has_url_credentials(text) || has_secret_in_query(text) {
        return Some(Secret::Credentials);
    }
    if has_email(text) {
        return Some(Secret::Email);
    }
    if words(text, |byte| byte.is_ascii_hexdigit() || byte == b'-').any(is_uuid) {
        return Some(Secret::Uuid);
    }
    if words(text, |byte| byte.is_ascii_alphanumeric() || byte == b'_').any(is_identifier) {
        return Some(Secret::Identifier);
    }
    has_web_address(text).then_some(Secret::Url)
}

/// True for a value that looks chosen by nobody: what a name like `password` should never be given.
pub(super) fn looks_secret(value: &str) -> bool {
    value.len() >= 8
        && value.bytes().all(|byte| byte.is_ascii_graphic())
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// True for a name under which people keep secrets.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    ["password", "passwd", "secret", "apikey", "accesskey", "accesstoken", "authtoken", "privatekey"]
        .iter()
        .any(|word| name.contains(word))
}

/// The longest runs of accepted bytes.
fn words(text: &str, accepts: impl Fn(u8) -> bool) -> impl Iterator<Item = &str> {
    text.split(move |character: char| {
        !u8::try_from(character).is_ok_and(|byte| byte.is_ascii() && accepts(byte))
    })
    .filter(|word| !word.is_empty())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_token(word: &str) -> bool {
    let by_prefix = TOKEN_PREFIXES.iter().any(|&(prefix, length)| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            rest.len() >= length
                && rest.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        })
    });
    by_prefix || is_random(word)
}

/// Long, with all three kinds of characters, and no alphabet written out.
fn is_random(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let upper = word.bytes().filter(u8::is_ascii_uppercase).count();
    let lower = word.bytes().filter(u8::is_ascii_lowercase).count();
    word.len() >= 32 && digits >= 4 && upper >= 4 && lower >= 4 && !has_sequence(word)
}

/// `abcdef`, `012345`: part of an alphabet, not of a secret.
fn has_sequence(word: &str) -> bool {
    const LENGTH: usize = 6;
    word.as_bytes().windows(LENGTH).any(|window| {
        window.iter().zip(window.iter().skip(1)).all(|(left, right)| right.wrapping_sub(*left) == 1)
    })
}

fn has_jwt(text: &str) -> bool {
    words(text, |byte| is_token_byte(byte) || byte == b'.').any(|word| {
        let mut parts = word.split('.');
        let (header, payload) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        header.starts_with("eyJ") && header.len() >= 12 && payload.len() >= 12 && parts.next().is_some()
    })
}

/// `Bearer abc…`, `Basic abc…` with the secret written out.
fn has_authorization(text: &str) -> bool {
    ["Bearer ", "Basic "].iter().any(|scheme| {
        text.split_once(scheme).is_some_and(|(_, rest)| {
            let value = rest.split_whitespace().next().unwrap_or("");
            value.len() >= 12
                && value.bytes().all(|byte| byte.is_ascii_graphic())
                && value.bytes().any(|byte| byte.is_ascii_digit())
        })
    })
}

/// `scheme://user:password@host`.
fn has_url_credentials(text: &str) -> bool {
    text.match_indices("://").any(|(start, separator)| {
        let rest = text.get(start + separator.len()..).unwrap_or("");
        let authority = rest.split(['/', '?', '#', ' ', '"', '\'']).next().unwrap_or("");
        authority.rsplit_once('@').is_some_and(|(user, host)| {
            !host.is_empty()
                && user
                    .split_once(':')
                    .is_some_and(|(name, password)| !name.is_empty() && !password.is_empty())
        })
    })
}

/// `?api_key=…` with the value written out.
fn has_secret_in_query(text: &str) -> bool {
    text.split(['?', '&']).skip(1).any(|pair| {
        pair.split_once('=').is_some_and(|(name, value)| {
            let value = value.split(['&', ' ', '#']).next().unwrap_or("");
            (is_secret_name(name) || matches!(name, "token" | "key" | "sig" | "signature"))
                && looks_secret(value)
        })
    })
}

/// Domains that RFC 2606 keeps for examples.
fn is_reserved(domain: &str) -> bool {
    ["example.com", "example.org", "example.net"].iter().any(|name| domain.ends_with(name))
        || [".example", ".test", ".invalid"].iter().any(|ending| domain.ends_with(ending))
}

/// `Acme GmbH`: a name that ends with a legal form.
pub(super) fn is_company(text: &str) -> bool {
    const FORMS: [&str; 12] =
        ["GmbH", "AG", "SE", "KG", "Inc", "Inc.", "Ltd", "Ltd.", "LLC", "Corp", "Corp.", "B.V."];
    text.rsplit_once(' ').is_some_and(|(name, form)| {
        FORMS.contains(&form) && name.starts_with(|character: char| character.is_uppercase())
    })
}

fn has_email(text: &str) -> bool {
    // An example in a message, such as "expected an address like jane@example.com", belongs to no one.
    let is_sentence = text.contains(char::is_whitespace);
    text.match_indices('@').any(|(at, _)| {
        let (before, after) = (text.get(..at).unwrap_or(""), text.get(at + 1..).unwrap_or(""));
        let is_local = |character: char| character.is_ascii_alphanumeric() || "._%+-".contains(character);
        let is_domain = |character: char| character.is_ascii_alphanumeric() || ".-".contains(character);
        let local_length = before.chars().rev().take_while(|&character| is_local(character)).count();
        let local = before.get(before.len() - local_length..).unwrap_or("");
        let domain_length = after.chars().take_while(|&character| is_domain(character)).count();
        let domain = after.get(..domain_length).unwrap_or("").trim_end_matches(['.', '-']);
        let top = domain.rsplit('.').next().unwrap_or("");
        local.starts_with(|character: char| character.is_ascii_alphanumeric())
            && domain.contains('.')
            && domain.split('.').all(|label| !label.is_empty())
            && top.len() >= 2
            && top.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !(is_sentence && is_reserved(domain))
    })
}

fn is_uuid(word: &str) -> bool {
    let groups: Vec<&str> = word.split('-').collect();
    let shape = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    // The nil and the max UUID and the namespaces of RFC 4122 are the same for everyone.
    let is_filled_with =
        |digit: u8| word.bytes().all(|byte| byte.to_ascii_lowercase() == digit || byte == b'-');
    shape && !is_filled_with(b'0') && !is_filled_with(b'f') && !is_name_namespace(word)
}

/// The namespaces of RFC 4122 for names, with or without their dashes.
fn is_name_namespace(word: &str) -> bool {
    let word: String = word.chars().filter(|character| *character != '-').collect();
    let word = word.to_ascii_lowercase();
    word.strip_prefix("6ba7b81").is_some_and(|rest| rest.get(1..) == Some("9dad11d180b400c04fd430c8"))
}

fn is_identifier(word: &str) -> bool {
    const LONG_HEX: usize = 24;
    const LONG_NUMBER: usize = 12;
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if has_sequence(word) || is_name_namespace(word) {
        return false;
    }
    if word.len() >= LONG_HEX
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits > 0
        && digits < word.len()
    {
        return true;
    }
    if digits == word.len() {
        let first = word.bytes().next();
        return digits >= LONG_NUMBER && word.bytes().any(|byte| Some(byte) != first);
    }
    is_prefixed_identifier(word)
}

/// `cus_NffrFeUfNV2Hib`: a kind, and something random.
fn is_prefixed_identifier(word: &str) -> bool {
    word.split_once('_').is_some_and(|(kind, rest)| {
        (2..=12).contains(&kind.len())
            && kind.bytes().all(|byte| byte.is_ascii_lowercase())
            && rest.len() >= 12
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && rest.bytes().any(|byte| byte.is_ascii_digit())
            && rest.bytes().any(|byte| byte.is_ascii_uppercase())
            && rest.bytes().any(|byte| byte.is_ascii_lowercase())
    })
}

fn has_web_address(text: &str) -> bool {
    /// Names of formats that only look like addresses.
    const NAMESPACES: [&str; 5] =
        ["www.w3.org", "www.sitemaps.org", "json-schema.org", "schema.org", "schemas."];
    ["http://", "https://"].iter().any(|scheme| {
        text.match_indices(scheme).any(|(start, _)| {
            let host = text.get(start + scheme.len()..).unwrap_or("");
            host.starts_with(|character: char| character.is_ascii_alphanumeric())
                && !NAMESPACES.iter().any(|name| host.starts_with(name))
        })
    })
}
