//! Random URLs against the list: whatever passes has the origin, and the path, of an entry.

use proptest::prelude::*;
use url::Url;

use crate::server::list;

const ENTRIES: [&str; 5] = [
    "https://api.stripe.com",
    "https://api.x.com/v1",
    "http://127.0.0.1:8080",
    "https://*.example.com/a",
    "http://localhost:3000/deep/er",
];

/// Pieces that URL parsers are known to quarrel about, between pieces that make a URL likely to pass.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
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
        ":3000",
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
        "deep/er",
        "api.stripe.com",
        "api.x.com",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "[::1]",
        "[::ffff:7f00:1]",
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
    ]);
    prop_oneof![8 => known.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

fn url() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec![
        "",
        "https://api.stripe.com",
        "https://api.x.com/v1",
        "http://127.0.0.1:8080",
        "https://x.example.com/a/",
        "https://evilexample.com/a",
        "http://localhost:3000/deep/er",
        "https://",
        "http://",
    ]);
    (start, prop::collection::vec(piece(), 0..8))
        .prop_map(|(start, pieces)| format!("{start}{}", pieces.concat()))
}

/// Written apart from the code under test: the origin as text, and the path decoded to the last escape.
fn expected_origin_and_path(url: &Url) -> bool {
    let origin = format!(
        "{}://{}:{}",
        url.scheme(),
        url.host_str().unwrap().trim_end_matches('.'),
        url.port_or_known_default().unwrap()
    );
    let mut path = url.path().to_ascii_lowercase().replace("%25", "%");
    while path.contains("%25") {
        path = path.replace("%25", "%");
    }
    let path = path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    let climbs = path.split('/').any(|segment| segment.split(';').next() == Some(".."));
    let below = |prefix: &str| !climbs && (path == prefix || path.starts_with(&format!("{prefix}/")));
    match origin.as_str() {
        "https://api.stripe.com:443" | "http://127.0.0.1:8080" => true,
        "https://api.x.com:443" => below("/v1"),
        "http://localhost:3000" => below("/deep/er"),
        origin => origin.starts_with("https://") && origin.ends_with(".example.com:443") && below("/a"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_passes_has_the_origin_of_an_entry(text in url()) {
        if let Ok(sent) = list(&ENTRIES).check(&text) {
            let parsed = Url::parse(&text).unwrap();
            prop_assert!(expected_origin_and_path(&parsed), "{text} -> {parsed}");
            prop_assert!(expected_origin_and_path(&sent), "{text} -> {sent}");
            prop_assert!(sent.username().is_empty() && sent.password().is_none() && sent.fragment().is_none());
            // What was compared is a fixed point: reading it again changes nothing.
            prop_assert_eq!(list(&ENTRIES).check(sent.as_str()).unwrap(), sent);
        }
    }

    #[test]
    fn no_entry_text_makes_the_parser_panic(text in any::<String>(), url in any::<String>()) {
        if let Ok(list) = tgp_fetch::AllowList::parse(&[text]) {
            let _ = list.allows(&url);
        }
        let _ = list(&ENTRIES).allows(&url);
    }
}
