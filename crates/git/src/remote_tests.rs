//! What is understood, what is refused, and that no credential stays in a URL.

use std::path::Path;

use super::{Endpoint, Provider, Remote, Transport};
use crate::Secret;
use crate::secret::{Sieve, basic};

fn endpoint(remote: &Remote, token: Option<&str>) -> Result<Endpoint, String> {
    let token = token.map(Secret::new);
    Endpoint::new(remote, token.as_ref(), Path::new("/project"), &mut Sieve::default())
        .map_err(|error| error.message)
}

#[test]
fn addresses_are_understood() {
    for (text, url, transport) in [
        ("https://host/a.git", "https://host/a.git", Transport::Https),
        ("https://me:pw@host:8443/a.git", "https://host:8443/a.git", Transport::Https),
        ("ssh://git:pw@host:22/a", "ssh://git@host:22/a", Transport::Ssh),
        ("git@host:a/b.git", "git@host:a/b.git", Transport::Ssh),
        ("git://host/a", "git://host/a", Transport::Git),
        ("file:///srv/a%20b.git", "/srv/a b.git", Transport::File),
        ("/srv/a.git", "/srv/a.git", Transport::File),
        ("../a.git", "/project/../a.git", Transport::File),
        ("./x:y", "/project/x:y", Transport::File),
    ] {
        let endpoint = endpoint(&Remote::Url(text.to_owned()), None).unwrap();
        assert_eq!((endpoint.url.as_str(), endpoint.transport), (url, transport), "{text}");
    }
}

#[test]
fn bug_the_query_of_a_remote_was_shown() {
    let mut sieve = Sieve::default();
    let remote = Remote::Url("https://host/a.git?token=s3cret%2Bs3cret&x=0ther#fr4gment".to_owned());
    let endpoint = Endpoint::new(&remote, None, Path::new("/project"), &mut sieve).unwrap();
    let shown = sieve.clean(&endpoint.url);
    for secret in ["s3cret", "0ther", "fr4gment"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.starts_with("https://host/a.git?token="), "{shown}");
    assert!(!sieve.clean("fatal: s3cret+s3cret is wrong").contains("s3cret"));
}

#[test]
fn hostile_addresses_are_refused() {
    for text in [
        "",
        "--upload-pack=touch x",
        "-x",
        "ext::sh -c 'touch x'",
        "fd::17",
        "ext://x",
        "ssh://-oProxyCommand=x/a",
        "-oProxyCommand=x:a",
        "host:-x",
        "https://",
        "a\nb",
        "javascript://x",
        "git@:x",
        "file://host/x",
    ] {
        assert!(endpoint(&Remote::Url(text.to_owned()), None).is_err(), "{text}");
    }
}

#[test]
fn credentials_become_a_header_for_one_host() {
    for (text, token, scope, header) in [
        ("https://me:p%40w+@host:8443/a.git", None, "https://host:8443/", basic("me", "p@w+")),
        ("https://host/a.git", Some("t0ken"), "https://host/", basic("git", "t0ken")),
        ("http://127.0.0.1:99/a.git", Some("t0ken"), "http://127.0.0.1:99/", basic("git", "t0ken")),
    ] {
        let endpoint = endpoint(&Remote::Url(text.to_owned()), token).unwrap();
        let (own_scope, own_header) = endpoint.authorization.unwrap();
        assert_eq!(
            (own_scope.as_str(), own_header.expose()),
            (scope, format!("Authorization: Basic {header}").as_str())
        );
    }
    assert!(endpoint(&Remote::Url("http://host/a".to_owned()), Some("t0ken")).is_err(), "not in the clear");
    assert!(endpoint(&Remote::Url("git@host:a".to_owned()), Some("t0ken")).unwrap().authorization.is_none());
}

#[test]
fn bug_the_user_of_a_url_lost_the_configured_token() {
    let authorization = |text: &str, token: Option<&str>| {
        let endpoint = endpoint(&Remote::Url(text.to_owned()), token).unwrap();
        assert_eq!(endpoint.url, "https://host/a.git");
        endpoint.authorization.unwrap().1.expose().to_owned()
    };
    for (text, token, user, password) in [
        ("https://name@host/a.git", Some("t0ken"), "name", "t0ken"),
        ("https://na%40me@host/a.git", Some("t0ken"), "na@me", "t0ken"),
        ("https://name:own@host/a.git", Some("t0ken"), "name", "own"),
        ("https://:own@host/a.git", Some("t0ken"), "", "own"),
        ("https://pasted@host/a.git", None, "pasted", ""),
    ] {
        assert_eq!(
            authorization(text, token),
            format!("Authorization: Basic {}", basic(user, password)),
            "{text}"
        );
    }
    let hosted = Remote::Hosted {
        provider: Provider::GitHub,
        repo: "o/r".to_owned(),
        api_base_url: None,
        clone_url: Some("https://name@host/a.git".to_owned()),
    };
    let header = endpoint(&hosted, Some("t0ken")).unwrap().authorization.unwrap().1;
    assert_eq!(header.expose(), format!("Authorization: Basic {}", basic("name", "t0ken")));
}

#[test]
fn hosted_repositories_have_their_own_addresses() {
    let hosted = |provider, repo: &str, api: Option<&str>| Remote::Hosted {
        provider,
        repo: repo.to_owned(),
        api_base_url: api.map(str::to_owned),
        clone_url: None,
    };
    for (remote, url) in [
        (hosted(Provider::GitHub, "o/r", None), "https://github.com/o/r.git"),
        (hosted(Provider::GitLab, "g/sub/r", None), "https://gitlab.com/g/sub/r.git"),
        (
            hosted(Provider::Bitbucket, "w/r", Some("https://api.bitbucket.org/2.0")),
            "https://bitbucket.org/w/r.git",
        ),
        (hosted(Provider::GitHub, "o/r", Some("https://git.own:444/api/v3")), "https://git.own:444/o/r.git"),
    ] {
        assert_eq!(endpoint(&remote, None).unwrap().url, url);
    }
    for repo in ["noslash", "o/", "o/../r", "o/r?x", "-o/r"] {
        assert!(endpoint(&hosted(Provider::GitHub, repo, None), None).is_err(), "{repo}");
    }
}
