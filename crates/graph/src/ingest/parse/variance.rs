//! TypeScript: the variance of type parameters, `<in T>` and `<out T>`, which changes nothing that the graph knows.

use std::sync::LazyLock;

use regex::bytes::Regex;

static MODIFIERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[<,]\s*(?:const\s+)?((?:in\s+out|in|out)\s+)[A-Za-z_$][A-Za-z0-9_$]*\s*(?:[,>=]|extends\b)")
        .ok()
});

/// The code with blanks for the modifiers; none where there are none.
pub(super) fn blanked(code: &[u8]) -> Option<Vec<u8>> {
    let modifiers = MODIFIERS.as_ref()?;
    let mut plain = code.to_vec();
    let mut found = false;
    // The end of one parameter is the beginning of the next: the search goes on at the name.
    let mut at = 0;
    while let Some(modifier) = modifiers.captures_at(code, at).and_then(|found| found.get(1)) {
        for byte in plain.get_mut(modifier.range())? {
            if !byte.is_ascii_whitespace() {
                *byte = b' ';
            }
        }
        found = true;
        at = modifier.end();
    }
    found.then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::blanked;

    #[test]
    fn modifiers_become_blanks() {
        let plain = |code: &str| blanked(code.as_bytes()).map(|plain| String::from_utf8(plain).unwrap());
        assert_eq!(
            plain("interface C<in T, out U, in out V> {}"),
            Some("interface C<   T,     U,        V> {}".into())
        );
        assert_eq!(plain("type F<out T extends X = Y> = T"), Some("type F<    T extends X = Y> = T".into()));
        assert_eq!(plain("for (const x in y) f(a, b in c)"), None);
    }
}
