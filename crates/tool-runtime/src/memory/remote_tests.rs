//! Hosts of remotes, in every form that git takes them.

use super::RemoteName;

#[test]
fn a_remote_is_named_by_its_host_unless_it_is_a_path() {
    for (url, host) in [
        ("https://Git.Example.org/team/tools.git", Some("git.example.org")),
        ("https://git.example.org:8443/team/tools.git", Some("git.example.org")),
        ("ssh://git@example.org:22/tools.git", Some("example.org")),
        ("git://example.org/tools.git", Some("example.org")),
        ("http://[::1]:3000/tools.git", Some("[::1]")),
        ("git@Example.org:team/tools.git", Some("example.org")),
        ("example.org:tools.git", Some("example.org")),
        ("git@[2001:db8::1]:tools.git", Some("[2001:db8::1]")),
        ("/srv/git/tools.git", None),
        ("/srv/git/a:b.git", None),
    ] {
        let name = RemoteName::new(url.to_owned());
        assert_eq!((name.url.as_str(), name.host.as_deref()), (url, host));
    }
}
