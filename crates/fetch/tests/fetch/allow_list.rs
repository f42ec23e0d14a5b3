//! Which URLs pass which entries: one row a case.

use crate::server::list;

const STRIPE: &str = "https://api.stripe.com";
const V1: &str = "https://api.x.com/v1";
const WILD: &str = "https://*.example.com";
const LOCAL: &str = "http://127.0.0.1:8080";

#[track_caller]
fn check(rows: &[(&str, &str)], expected: bool) {
    for (entry, url) in rows {
        assert_eq!(
            list(&[entry]).allows(url),
            expected,
            "entry `{entry}`, URL `{url}`: {:?}",
            list(&[entry]).check(url)
        );
    }
}

#[test]
fn what_is_meant_passes() {
    check(
        &[
            (STRIPE, "https://api.stripe.com"),
            (STRIPE, "https://api.stripe.com/"),
            (STRIPE, "https://api.stripe.com/v1/charges?limit=3#top"),
            (STRIPE, "https://api.stripe.com:443/v1"),
            (STRIPE, "https://api.stripe.com:/v1"),
            (STRIPE, "HTTPS://API.STRIPE.COM/v1"),
            (STRIPE, "https://api.stripe.com./v1"),
            (STRIPE, "https://api.stripe.com/a/..%2f..%2fb"),
            (STRIPE, "https://ａｐｉ.stripe.com/"),
            (STRIPE, "https://api。stripe。com/"),
            (STRIPE, "https://api.stripe.com\\v1"),
            (STRIPE, "https://api.stripe.com//evil.com/"),
            (STRIPE, "https://api.stripe.com/https://evil.com"),
            (STRIPE, "https://api.stripe.com/?u=https://evil.com"),
            (STRIPE, "https://api.stripe.com?@evil.com"),
            (STRIPE, "https://api.stripe.com#@evil.com"),
            ("https://api.stripe.com.", "https://api.stripe.com/"),
            ("https://API.stripe.com:443/", "https://api.stripe.com/v1"),
            (V1, "https://api.x.com/v1"),
            (V1, "https://api.x.com/v1/"),
            (V1, "https://api.x.com/v1?a=../b"),
            (V1, "https://api.x.com/v1/users"),
            (V1, "https://api.x.com/v1//users"),
            (V1, "https://api.x.com/%76%31/users"),
            (V1, "https://api.x.com/x/../v1/users"),
            (V1, "https://api.x.com/v1/./users"),
            (V1, "https://api.x.com/v1/group%2Fproject"),
            (V1, "https://api.x.com/v1/a..b"),
            (V1, "https://api.x.com/v1\\users"),
            ("https://api.x.com/v1/", "https://api.x.com/v1"),
            ("https://api.x.com/a/b", "https://api.x.com/a/b/c"),
            ("https://api.x.com/straße", "https://api.x.com/stra%c3%9fe/1"),
            (WILD, "https://a.example.com/x"),
            (WILD, "https://a.b.example.com/"),
            (WILD, "https://A.EXAMPLE.com./"),
            ("https://münchen.example", "https://xn--mnchen-3ya.example/"),
            ("https://xn--mnchen-3ya.example", "https://MÜNCHEN.example/"),
            (LOCAL, "http://127.0.0.1:8080/x"),
            (LOCAL, "http://127.1:8080/"),
            (LOCAL, "http://2130706433:8080/"),
            (LOCAL, "http://0x7f.0.0.1:8080/"),
            (LOCAL, "http://0177.0.0.01:8080/"),
            (LOCAL, "http://127.0.0.1.:8080/"),
            ("http://0x7f000001:8080", "http://127.0.0.1:8080/"),
            ("http://[::1]:8080", "http://[0:0:0:0:0:0:0:1]:8080/"),
            ("http://localhost:8080", "http://LocalHost.:8080/"),
        ],
        true,
    );
}

#[test]
fn another_origin_never_passes() {
    check(
        &[
            (STRIPE, "https://api.stripe.com.evil.com/"),
            (STRIPE, "https://api.stripe.com@evil.com/"),
            (STRIPE, "https://api.stripe.com%40evil.com/"),
            (STRIPE, "https://api.stripe.com:443@evil.com/"),
            (STRIPE, "https://evil.com@api.stripe.com/"),
            (STRIPE, "https://user:pass@api.stripe.com/"),
            (STRIPE, "https://:pass@api.stripe.com/"),
            (STRIPE, "https://evil.com\\@api.stripe.com/"),
            (STRIPE, "https://evil.com/@api.stripe.com/"),
            (STRIPE, "https://evil.com#@api.stripe.com/"),
            (STRIPE, "https://evil.com?@api.stripe.com/"),
            (STRIPE, "https://evil.com/https://api.stripe.com"),
            (STRIPE, "https://api.stripe.com:444/"),
            (STRIPE, "https://api.stripe.com:80/"),
            (STRIPE, "http://api.stripe.com/"),
            (STRIPE, "http://api.stripe.com:443/"),
            (STRIPE, "wss://api.stripe.com/"),
            (STRIPE, "ftp://api.stripe.com/"),
            (STRIPE, "file://api.stripe.com/etc/passwd"),
            (STRIPE, "data:text/plain,https://api.stripe.com"),
            (STRIPE, "blob:https://api.stripe.com/1"),
            (STRIPE, "stripe.com"),
            (STRIPE, "//api.stripe.com/"),
            (STRIPE, "/v1"),
            (STRIPE, ""),
            (STRIPE, "https://"),
            (STRIPE, "https://stripe.com/"),
            (STRIPE, "https://x.api.stripe.com/"),
            (STRIPE, "https://apixstripe.com/"),
            (STRIPE, "https://evilapi.stripe.com/"),
            (STRIPE, "https://api.stripe.co/"),
            (STRIPE, "https://api.stripe.com../"),
            (STRIPE, "https://api.stripe.com%00.evil.com/"),
            (STRIPE, "https://api.stripe.com%2eevil.com/"),
            (STRIPE, "https://api.stripe.com;.evil.com/"),
            (STRIPE, "https://api.str\u{0131}pe.com/"),
            (STRIPE, "https://аpi.stripe.com/"),
            (WILD, "https://example.com/"),
            (WILD, "https://.example.com/"),
            (WILD, "https://a..example.com/"),
            (WILD, "https://evilexample.com/"),
            (WILD, "https://a.example.com.evil.com/"),
            (WILD, "http://a.example.com/"),
            (WILD, "https://a.example.com:8443/"),
            (WILD, "https://a.example.com@evil.com/"),
            (LOCAL, "http://127.0.0.1..:8080/"),
            (LOCAL, "http://127.0.0.1/"),
            (LOCAL, "http://127.0.0.1:8081/"),
            (LOCAL, "http://127.0.0.2:8080/"),
            (LOCAL, "https://127.0.0.1:8080/"),
            (LOCAL, "http://localhost:8080/"),
            (LOCAL, "http://[::1]:8080/"),
            (LOCAL, "http://[::ffff:127.0.0.1]:8080/"),
            (LOCAL, "http://0.0.0.0:8080/"),
            (LOCAL, "http://0:8080/"),
            (LOCAL, "http://127.0.0.1.evil.com:8080/"),
            (LOCAL, "http://127.0.0.1:8080@evil.com/"),
            ("http://localhost:8080", "http://127.0.0.1:8080/"),
            ("http://localhost:8080", "http://localhost/"),
            ("http://localhost:8080", "http://a.localhost:8080/"),
        ],
        false,
    );
}

#[test]
fn another_path_never_passes() {
    check(
        &[
            (V1, "https://api.x.com/"),
            (V1, "https://api.x.com"),
            (V1, "https://api.x.com/v10"),
            (V1, "https://api.x.com/v1x/users"),
            (V1, "https://api.x.com/V1/users"),
            (V1, "https://api.x.com/v1.json"),
            (V1, "https://api.x.com/v1;x/users"),
            (V1, "https://api.x.com/v2?/v1/"),
            (V1, "https://api.x.com/v2#/v1/"),
            (V1, "https://api.x.com/v1/../admin"),
            (V1, "https://api.x.com/v1/x/../../admin"),
            (V1, "https://api.x.com/v1/%2e%2e/admin"),
            (V1, "https://api.x.com/v1/%2E./admin"),
            (V1, "https://api.x.com/v1/.%2e/admin"),
            (V1, "https://api.x.com/v1%2f.."),
            (V1, "https://api.x.com/v1%2fusers"),
            (V1, "https://api.x.com/v1/..%2fadmin"),
            (V1, "https://api.x.com/v1/%2e%2e%2fadmin"),
            (V1, "https://api.x.com/v1/%252e%252e%252fadmin"),
            (V1, "https://api.x.com/v1/%252e%252e/admin"),
            (V1, "https://api.x.com/v1/..\\admin"),
            (V1, "https://api.x.com/v1\\..\\admin"),
            (V1, "https://api.x.com/v1/..%5cadmin"),
            (V1, "https://api.x.com/v1/..;/admin"),
            (V1, "https://api.x.com/v1/%2e%2e;x=y/admin"),
            (V1, "https://api.x.com/v1/..%00/admin"),
            (V1, "https://api.x.com/v1/%c0%ae%c0%ae/admin"),
            (V1, "https://api.x.com/v1/%u002e%u002e/admin"),
            (V1, "https://api.x.com/v1/．．/admin"),
            (V1, "https://api.x.com//v1/users"),
            (V1, "https://api.x.com/%2fv1/users"),
            (V1, "https://api.x.com/./../v2"),
            (V1, "https://api.x.com/v1/.\t./admin"),
            (V1, "https://api.x.com/v1/.\n./admin"),
            ("https://api.x.com/a/b", "https://api.x.com/a"),
            ("https://api.x.com/a/b", "https://api.x.com/a/bc"),
            ("https://api.x.com/a/b", "https://api.x.com/a//b"),
            ("https://api.x.com/a/b", "https://api.x.com/a%2fb"),
        ],
        false,
    );
}

#[test]
fn several_entries_add_up() {
    let list = list(&["https://a.com/x", "https://a.com/y", "https://b.com", "http://c.com:81"]);
    for url in ["https://a.com/x/1", "https://a.com/y", "https://b.com/z", "http://c.com:81/"] {
        assert!(list.allows(url), "{url}");
    }
    for url in ["https://a.com/z", "https://b.com:81/", "http://c.com/", "https://a.com/", "http://b.com"] {
        assert!(!list.allows(url), "{url}");
    }
    assert!(!crate::server::list(&[]).allows("https://a.com"));
}

#[test]
fn what_comes_back_is_what_was_compared() {
    let list = list(&[STRIPE]);
    for (url, sent) in [
        ("HTTPS://API.stripe.com.:443\\v1\\..\\v2?q=1#frag", "https://api.stripe.com/v2?q=1"),
        (" https:api.stripe.com/\r\nX-Evil: 1 ", "https://api.stripe.com/X-Evil:%201"),
        ("https:///////api.stripe.com/a", "https://api.stripe.com/a"),
    ] {
        assert_eq!(list.check(url).unwrap().as_str(), sent);
    }
}
