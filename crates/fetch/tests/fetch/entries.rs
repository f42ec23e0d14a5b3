//! Which entries of `allowedFetchUrls` are understood.

use tgp_fetch::AllowList;

#[track_caller]
fn bad(entry: &str, part_of_message: &str) {
    let entries = ["https://fine.example.com".to_owned(), entry.to_owned()];
    let error = AllowList::parse(&entries).expect_err(entry);
    assert_eq!(error.index(), 1);
    let message = error.to_string();
    assert!(message.starts_with("allowedFetchUrls[1]: `"), "{message}");
    assert!(message.contains(part_of_message), "`{message}` lacks `{part_of_message}`");
}

#[test]
fn bad_entries_are_named() {
    for (entry, problem) in [
        ("", "begin with"),
        ("api.stripe.com", "begin with"),
        ("localhost:8080", "begin with"),
        ("ftp://x.com", "begin with"),
        ("file:///etc/passwd", "begin with"),
        ("javascript:alert(1)", "begin with"),
        ("https:x.com", "begin with"),
        ("//x.com", "begin with"),
        ("*", "begin with"),
        ("https://", "not a URL"),
        ("https://x.com:99999", "not a URL"),
        ("https://[::1", "not a URL"),
        ("https://1.2.3.4.5", "not a URL"),
        ("https://*.0.0.1", "not a URL"),
        ("https://user@x.com", "credentials"),
        ("https://user:secret@x.com", "credentials"),
        ("https://x.com?", "query"),
        ("https://x.com/?a=b", "query"),
        ("https://x.com#", "fragment"),
        ("https://x.com/#a", "fragment"),
        (" https://x.com", "blank"),
        ("https://x.com/a b", "blank"),
        ("https://x.com\n", "blank"),
        ("https:\\\\x.com", "backslash"),
        ("https://x.com\\@evil.com", "backslash"),
        ("https://*", "`*`"),
        ("https://*.*.com", "`*`"),
        ("https://a.*.com", "`*`"),
        ("https://api*.x.com", "`*`"),
        ("https://*x.com", "`*`"),
        ("https://*.com", "top-level"),
        ("https://*.com.", "top-level"),
        ("https://*.localhost", "top-level"),
        ("https://.x.com", "empty label"),
        ("https://*..x.com", "empty label"),
        ("https://x.com/*", "path is a prefix"),
        ("https://x.com/v1/../v2", "dot segments"),
        ("https://x.com/v1/%2e%2e/v2", "dot segments"),
        ("https://x.com/v1/..%2fv2", "dot segments"),
        ("https://x.com/%zz", "broken escapes"),
        ("https://x.com/a//b", "empty segment"),
        ("https://x.com//", "empty segment"),
    ] {
        bad(entry, problem);
    }
}

#[test]
fn a_password_is_not_repeated() {
    let error = AllowList::parse(&["https://user:secret@x.com/v1".to_owned()]).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    assert_eq!(error.entry(), "https://***@x.com/v1");
    assert!(error.problem().contains("Authorization"));
}

#[test]
fn good_entries_are_understood() {
    let entries = [
        "https://api.stripe.com",
        "https://api.stripe.com/",
        "HTTPS://API.Stripe.com:443/v1",
        "https://api.x.com/v1/",
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "https://*.example.com",
        "https://*.example.com:8443/a/b",
        "https://münchen.example",
        "https://x.com./v1",
        "http://localhost:3000",
    ];
    let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
    assert!(!AllowList::parse(&entries).unwrap().is_empty());
    assert!(AllowList::parse(&[]).unwrap().is_empty());
}
