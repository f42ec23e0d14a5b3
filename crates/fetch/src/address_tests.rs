//! Borders of every range: the first and the last address inside, and the neighbours outside.

use super::off_limits;

fn check(address: &str, expected: Option<&str>) {
    assert_eq!(off_limits(address.parse().expect(address)), expected, "{address}");
}

#[test]
fn public_addresses_pass() {
    for address in [
        "1.0.0.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "168.63.129.15",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "203.0.114.0",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2a00:1450::1",
        "3ffe::1",
    ] {
        check(address, None);
    }
}

#[test]
fn special_ipv4_is_named() {
    for (address, kind) in [
        ("0.0.0.0", "unspecified"),
        ("0.255.255.255", "unspecified"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.0", "carrier-grade NAT"),
        ("100.100.100.200", "carrier-grade NAT"),
        ("100.127.255.255", "carrier-grade NAT"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("168.63.129.16", "cloud metadata"),
        ("169.254.0.0", "link-local"),
        ("169.254.169.254", "cloud metadata"),
        ("169.254.255.255", "link-local"),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.192", "protocol assignment"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "6to4 relay"),
        ("192.168.0.0", "private"),
        ("192.168.255.255", "private"),
        ("198.18.0.0", "benchmarking"),
        ("198.19.255.255", "benchmarking"),
        ("198.51.100.7", "documentation"),
        ("203.0.113.255", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.0", "reserved"),
        ("255.255.255.255", "reserved"),
    ] {
        check(address, Some(kind));
    }
}

#[test]
fn special_ipv6_is_named() {
    for (address, kind) in [
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::8.8.8.8", "IPv4-compatible"),
        ("::127.0.0.1", "IPv4-compatible"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:0:127.0.0.1", "IPv4-translated"),
        ("64:ff9b::a9fe:a9fe", "NAT64"),
        ("64:ff9b:1::a00:1", "NAT64"),
        ("100::1", "unassigned"),
        ("1fff:ffff::1", "unassigned"),
        ("2001::1", "Teredo"),
        ("2001:2::1", "protocol assignment"),
        ("2001:10::1", "protocol assignment"),
        ("2001:1ff:ffff::1", "protocol assignment"),
        ("2001:db8::1", "documentation"),
        ("2002:7f00:1::1", "6to4"),
        ("3fff:fff::1", "documentation"),
        ("4000::1", "unassigned"),
        ("5f00::1", "unassigned"),
        ("fbff::1", "unassigned"),
        ("fc00::1", "unique-local"),
        ("fd00:ec2::254", "unique-local"),
        ("fe80::1", "link-local"),
        ("febf::1", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
    ] {
        check(address, Some(kind));
    }
}
