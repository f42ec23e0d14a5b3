//! The secrets of a configuration, in every form in which a text may show them.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::boot::Environment;
use crate::config::Config;

/// The variables in which providers' keys usually are.
const MODEL_KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

/// What programs encode in a part of an address. They do not agree: RFC 3986 keeps four signs, JavaScript and Python keep more,
/// and a browser encodes in a password only what would end it.
const ENCODED: [&AsciiSet; 3] = [UNRESERVED, COMPONENT, USER_INFO];
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
const USER_INFO: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b':')
    .add(b';')
    .add(b'<')
    .add(b'=')
    .add(b'>')
    .add(b'?')
    .add(b'@')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Secrets that the configuration itself holds or names: tokens, keys, and what addresses carry.
pub(super) fn secrets(config: &Config, environment: &Environment) -> Vec<String> {
    let git = config.git.as_ref();
    let token = git.and_then(|git| git.auth.token.clone());
    let embeddings = config.registry.embeddings.as_ref();
    let key = embeddings.and_then(|embeddings| embeddings.api_key.clone());
    // Beside a configured token the user of an address is a name; without one it is taken for a pasted token.
    let user = if token.is_some() { User::Name } else { User::Token };
    let addresses = [
        (git.and_then(|git| git.url.as_deref()), user),
        (git.and_then(|git| git.api_base_url.as_deref()), User::Token),
        (embeddings.map(|embeddings| embeddings.base_url.as_str()), User::Token),
        (config.db.url.as_deref(), User::Name),
        (config.graph.url.as_deref(), User::Name),
        (config.llm.base_url.as_deref(), User::Token),
        (config.llm.provider.as_deref(), User::Token),
    ];
    let carried = addresses.into_iter().filter_map(|(address, user)| secret_of_address(address?, user));
    let variables = MODEL_KEYS.iter().copied().chain(config.llm.key_variable.as_deref());
    let plain = token.into_iter().chain(key).chain(variables.filter_map(|name| environment(name)));
    let mut all: Vec<String> = plain.flat_map(|secret| encodings(&secret)).collect();
    all.extend(carried.flat_map(|secret| forms(&secret)));
    all.sort();
    all.dedup();
    all
}

/// What a user name without a password is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    Name,
    Token,
}

/// The password of an address, or the token that an http address has instead of a user name. A user name is no secret: if it
/// were one, every `deploy` in a path would be redacted.
fn secret_of_address(address: &str, user: User) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // The client of PostgreSQL reads up to the `@`, so that a password may hold any other sign.
    let authority = if scheme.starts_with("postgres") && !authority.contains('@') { rest } else { authority };
    let (credentials, _) = authority.rsplit_once('@')?;
    let secret = match credentials.split_once(':') {
        Some((_, password)) => password,
        None if user == User::Token && matches!(scheme, "http" | "https") => credentials,
        None => return None,
    };
    (!secret.is_empty()).then(|| secret.to_owned())
}

/// A secret of an address as it is written there, as it is meant, and as other programs may write it.
fn forms(written: &str) -> Vec<String> {
    let mut forms = encodings(written);
    // What is no text once it is decoded is in no text either.
    if let Ok(meant) = percent_decode_str(written).decode_utf8() {
        forms.extend(encodings(&meant));
    }
    forms
}

/// A secret, and how it looks in an address.
fn encodings(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    for set in ENCODED {
        let encoded = utf8_percent_encode(secret, set).to_string();
        forms.extend([lower_case_digits(&encoded), encoded]);
    }
    forms.sort();
    forms.dedup();
    forms
}

/// The same with `%2f` for `%2F`.
fn lower_case_digits(encoded: &str) -> String {
    let mut digits = 0;
    let lower = |letter: char| {
        if letter == '%' {
            digits = 2;
        } else if digits > 0 {
            digits -= 1;
            return letter.to_ascii_lowercase();
        }
        letter
    };
    encoded.chars().map(lower).collect()
}

#[cfg(test)]
mod tests {
    use super::{User, forms, secret_of_address};

    #[test]
    fn passwords_and_pasted_tokens_are_secrets_and_user_names_are_not() {
        for (address, user, secret) in [
            ("https://ann:pw12345678@host/x", User::Name, Some("pw12345678")),
            ("postgres://app:p@ss@host/db?x=1", User::Name, Some("p@ss")),
            ("postgres://app:pa/ss#w?rd@host/db", User::Name, Some("pa/ss#w?rd")),
            ("https://ghpabcdefgh@host/x", User::Token, Some("ghpabcdefgh")),
            ("https://deploy@host/x", User::Name, None),
            ("ssh://deploy@host/x", User::Token, None),
            ("postgres://deploy@host/db", User::Name, None),
            ("https://host/a@b", User::Token, None),
            ("git@host:x.git", User::Token, None),
            ("../tools.git", User::Token, None),
        ] {
            assert_eq!(secret_of_address(address, user).as_deref(), secret, "{address}");
        }
    }

    #[test]
    fn bug_a_password_of_an_address_was_known_only_as_it_was_written() {
        for (written, known) in [
            // Decoded, whoever has encoded it how.
            ("s3cr%40t%2Fw0rd", &["s3cr%40t%2Fw0rd", "s3cr@t/w0rd", "s3cr%40t%2fw0rd"][..]),
            ("s3cr%40t%2fw0rd", &["s3cr%40t%2fw0rd", "s3cr@t/w0rd", "s3cr%40t%2Fw0rd"]),
            ("%70%61ssw%6Frd!", &["%70%61ssw%6Frd!", "password!", "password%21"]),
            ("gr%C3%BC%C3%9Fe-an-alle", &["grüße-an-alle", "gr%c3%bc%c3%9fe-an-alle"]),
            // And encoded.
            ("p@ss w:rd!(1)", &["p@ss w:rd!(1)", "p%40ss%20w%3Ard!(1)", "p%40ss%20w%3Ard%21%281%29"]),
            ("a$b&c+d,e'f", &["a%24b%26c%2Bd%2Ce%27f", "a%24b%26c%2Bd%2Ce'f", "a$b&c+d,e'f"]),
            // A sign that is no encoding is a letter.
            ("100%sure%zz", &["100%sure%zz", "100%25sure%25zz"]),
            // What is no text is known as it is written.
            ("%ff%fe12345678", &["%ff%fe12345678"]),
            ("plain-password_1", &["plain-password_1"]),
        ] {
            let forms = forms(written);
            for form in known {
                assert!(forms.iter().any(|known| known == form), "{form} of {written}: {forms:?}");
            }
        }
        assert_eq!(forms("plain-password_1"), ["plain-password_1"; 2], "most secrets have one form");
    }
}
