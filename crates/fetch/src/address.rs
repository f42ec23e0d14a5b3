//! Which addresses are on the public internet, and which are not.
//!
//! The tables follow IANA's special-purpose registries. IPv6 is judged the other way round from IPv4: only global
//! unicast (`2000::/3`) is public at all, so a range that is assigned tomorrow is refused until it is reviewed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const IPV4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "unspecified"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier-grade NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    // Azure answers its instances here although the number itself is a public one.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "cloud metadata"),
    (Ipv4Addr::new(169, 254, 169, 254), 32, "cloud metadata"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignment"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

const IPV6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::UNSPECIFIED, 96, "IPv4-compatible"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, "IPv4-mapped"),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, "IPv4-translated"),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 32, "NAT64"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "Teredo"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "protocol assignment"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "6to4"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "unique-local"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

const IPV6_GLOBAL_UNICAST: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The name of the range that keeps `address` off the public internet, or `None` for a public address.
pub(super) fn off_limits(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => IPV4
            .iter()
            .find(|(network, length, _)| {
                same_prefix(u128::from(address.to_bits()), u128::from(network.to_bits()), 32, *length)
            })
            .map(|(_, _, kind)| *kind),
        IpAddr::V6(address) => IPV6
            .iter()
            .find(|(network, length, _)| same_prefix(address.to_bits(), network.to_bits(), 128, *length))
            .map(|(_, _, kind)| *kind)
            .or_else(|| {
                let (network, length) = IPV6_GLOBAL_UNICAST;
                let global = same_prefix(address.to_bits(), network.to_bits(), 128, length);
                (!global).then_some("unassigned")
            }),
    }
}

fn same_prefix(left: u128, right: u128, width: u32, length: u32) -> bool {
    // A shift by the whole width would be an overflow; no table row has length 0.
    (left ^ right) >> (width - length) == 0
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
