//! A secret in every form in which a text may show it.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

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

/// The forms in which a text may show a secret: as it is written, as it is meant if it is percent-encoded, and as other
/// programs may write it in an address, in JSON or in a log.
#[must_use]
pub fn secret_forms(written: &str) -> Vec<String> {
    let mut forms = encodings(written);
    // What is not text once it is decoded is in no text either.
    if let Ok(meant) = percent_decode_str(written).decode_utf8() {
        forms.extend(encodings(&meant));
    }
    forms.sort();
    forms.dedup();
    forms
}

/// A secret, and how it looks in an address or in quotes.
fn encodings(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    for set in ENCODED {
        let encoded = utf8_percent_encode(secret, set).to_string();
        forms.extend([lower_case_digits(&encoded), encoded]);
    }
    let quoted = [serde_json::Value::from(secret).to_string(), format!("{secret:?}")];
    forms
        .extend(quoted.iter().filter_map(|text| Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned())));
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
    use super::secret_forms;

    #[test]
    fn bug_a_password_of_an_address_was_known_only_as_it_was_written() {
        for (written, known) in [
            // Decoded, however it was encoded.
            ("s3cr%40t%2Fw0rd", &["s3cr%40t%2Fw0rd", "s3cr@t/w0rd", "s3cr%40t%2fw0rd"][..]),
            ("s3cr%40t%2fw0rd", &["s3cr%40t%2fw0rd", "s3cr@t/w0rd", "s3cr%40t%2Fw0rd"]),
            ("%70%61ssw%6Frd!", &["%70%61ssw%6Frd!", "password!", "password%21"]),
            ("gr%C3%BC%C3%9Fe-an-alle", &["grüße-an-alle", "gr%c3%bc%c3%9fe-an-alle"]),
            // And encoded.
            ("p@ss w:rd!(1)", &["p@ss w:rd!(1)", "p%40ss%20w%3Ard!(1)", "p%40ss%20w%3Ard%21%281%29"]),
            ("a$b&c+d,e'f", &["a%24b%26c%2Bd%2Ce%27f", "a%24b%26c%2Bd%2Ce'f", "a$b&c+d,e'f"]),
            // A `%` that does not begin an escape is a letter.
            ("100%sure%zz", &["100%sure%zz", "100%25sure%25zz"]),
            // What is not text is known as it is written.
            ("%ff%fe12345678", &["%ff%fe12345678"]),
            ("plain-password_1", &["plain-password_1"]),
            // In quotes.
            ("a\"b\\cdef", &["a\"b\\cdef", "a\\\"b\\\\cdef"]),
        ] {
            let forms = secret_forms(written);
            for form in known {
                assert!(forms.iter().any(|known| known == form), "{form} of {written}: {forms:?}");
            }
        }
        assert_eq!(secret_forms("plain-password_1"), ["plain-password_1"], "most secrets have one form");
    }
}
