//! Names of environment variables that hold keys. What was written in the place of a name may be a key, so it is never
//! repeated.

/// No variable that a person names is longer, and many keys are.
const MAX_NAME_BYTES: usize = 64;
/// A word this long with digits and small letters in it is a key rather than a name.
const MIN_KEY_BYTES: usize = 20;
/// How keys of model providers and common services begin, where all their characters could be those of a name.
const KEY_PREFIXES: [&str; 9] = ["sk_", "gsk_", "hf_", "ghp_", "gho_", "github_pat_", "r8_", "AIza", "AKIA"];

/// Why `text` cannot be the name of a variable that holds a key, without repeating it.
///
/// # Errors
/// The reason, as the end of a sentence about the field.
pub(crate) fn check_key_variable(text: &str) -> Result<(), &'static str> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if text.is_empty() {
        return Err("is empty");
    }
    if !text.bytes().all(is_part) || text.starts_with(|first: char| first.is_ascii_digit()) {
        return Err("is not the name of an environment variable; it has the characters of something else");
    }
    let has = |wanted: fn(&u8) -> bool| text.as_bytes().iter().any(wanted);
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    let is_key = text.len() > MAX_NAME_BYTES
        || (text.len() >= MIN_KEY_BYTES && is_mixed)
        || KEY_PREFIXES.iter().any(|prefix| text.starts_with(prefix));
    if is_key { Err("looks like a key, and the name of a variable is wanted") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::check_key_variable;

    #[test]
    fn a_key_in_the_place_of_a_name_is_refused_and_not_repeated() {
        for name in
            ["OPENAI_API_KEY", "key", "_K2", "LLM_GATEWAY_KEY_OF_THE_TEAM_2", "llm_gateway_key_of_the_team"]
        {
            assert_eq!(check_key_variable(name), Ok(()), "{name}");
        }
        for key in [
            "",
            "sk-proj-0123456789",
            "sk_live_abc",
            "gsk_abcdefghijk",
            "2KEYS",
            "A KEY",
            "OPENAI_API_KEY=x",
            "$OPENAI_API_KEY",
            "abcdef0123456789abcdef",
            "ÄPFEL",
            "A\nB",
        ] {
            let why = check_key_variable(key).unwrap_err();
            assert!(key.is_empty() || !why.contains(key), "{key}: {why}");
        }
        assert!(check_key_variable(&"A".repeat(65)).is_err());
    }
}
