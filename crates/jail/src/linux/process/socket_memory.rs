//! What the sockets of a network hold, as the system reports it of each: also those that no process has open any more, or that
//! are on their way in another one. Their sizes are the only thing that is read of them.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{MsgFlags, recv, send};

use crate::NetworkAccess;

/// What has no sender any more and waits to be read: as much as a sender can have at most, with Linux's default settings.
const ORPHAN_BYTES: u64 = 2 * 212_992;

/// The largest answer of a dump.
const ANSWER_BYTES: usize = 64 * 1024;

// From `linux/netlink.h`, `linux/sock_diag.h`, `linux/unix_diag.h` and `linux/inet_diag.h`.
const HEADER_BYTES: usize = 16;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SHOW_PEER_QUEUE_AND_MEMORY: u32 = 0x04 | 0x10 | 0x20;
const UNIX_PEER: u16 = 2;
const UNIX_QUEUE: u16 = 4;
const UNIX_MEMORY: u16 = 5;
const INET_MEMORY: u16 = 7;

/// A kind of socket and how it is reported.
struct Kind {
    request: Vec<u8>,
    /// Bytes before the attributes, and where the inode is in them.
    fixed_bytes: usize,
    inode_at: usize,
    memory: u16,
}

impl Kind {
    fn local() -> Self {
        let mut request = vec![libc::AF_UNIX as u8, 0, 0, 0];
        for word in [u32::MAX, 0, SHOW_PEER_QUEUE_AND_MEMORY, 0, 0] {
            request.extend(word.to_ne_bytes());
        }
        Self { request, fixed_bytes: 16, inode_at: 4, memory: UNIX_MEMORY }
    }

    fn internet(family: i32, protocol: i32) -> Self {
        let mut request = vec![family as u8, protocol as u8, 1 << (INET_MEMORY - 1), 0];
        request.extend(u32::MAX.to_ne_bytes());
        request.extend([0; 48]);
        Self { request, fixed_bytes: 72, inode_at: 68, memory: INET_MEMORY }
    }

    fn all(network: NetworkAccess) -> impl Iterator<Item = Self> {
        let families = [libc::AF_INET, libc::AF_INET6];
        let internet = families
            .into_iter()
            .filter(move |_| network != NetworkAccess::None)
            .flat_map(|family| [libc::IPPROTO_TCP, libc::IPPROTO_UDP].map(|protocol| (family, protocol)));
        std::iter::once(Self::local())
            .chain(internet.map(|(family, protocol)| Self::internet(family, protocol)))
    }
}

/// Returns the bytes that the sockets of the network of `line` hold: of all of them where the network is the jail's own, else
/// of `inodes`. Nothing when the system does not report it.
pub(crate) fn socket_bytes(line: &OwnedFd, network: NetworkAccess, inodes: &BTreeSet<u64>) -> Option<u64> {
    let wanted = (network == NetworkAccess::Unrestricted).then_some(inodes);
    let mut answer = vec![0; ANSWER_BYTES];
    let mut dump = |kind: &Kind| dump(line, kind, wanted, &mut answer);
    Kind::all(network).try_fold(0_u64, |sum, kind| Some(sum.saturating_add(dump(&kind)?)))
}

fn dump(line: &OwnedFd, kind: &Kind, inodes: Option<&BTreeSet<u64>>, answer: &mut [u8]) -> Option<u64> {
    let length = u32::try_from(HEADER_BYTES + kind.request.len()).ok()?;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(&kind.request);
    // What is left of an answer that was given up would be taken for a part of this one.
    while recv(line.as_raw_fd(), answer, MsgFlags::MSG_DONTWAIT).is_ok_and(|length| length > 0) {}
    send(line.as_raw_fd(), &message, MsgFlags::MSG_DONTWAIT).ok()?;
    let mut sum = 0_u64;
    loop {
        // The system has the answer ready when the request was taken.
        let length = recv(line.as_raw_fd(), answer, MsgFlags::MSG_DONTWAIT).ok()?;
        let mut rest = answer.get(..length)?;
        while let Some((kind_of_message, body, after)) = next_message(rest) {
            match i32::from(kind_of_message) {
                libc::NLMSG_DONE => return Some(sum),
                libc::NLMSG_ERROR => return None,
                _ => sum = sum.saturating_add(bytes_of(body, kind, inodes)),
            }
            rest = after;
        }
    }
}

/// What one socket holds.
fn bytes_of(body: &[u8], kind: &Kind, inodes: Option<&BTreeSet<u64>>) -> u64 {
    let inode = u64::from(word(body, kind.inode_at));
    if inodes.is_some_and(|inodes| !inodes.contains(&inode)) {
        return 0;
    }
    let (mut bytes, mut waiting, mut peer) = (0, 0, 0);
    let mut rest = body.get(kind.fixed_bytes..).unwrap_or_default();
    while let Some((attribute, value, after)) = next_attribute(rest) {
        if attribute == kind.memory {
            bytes = memory(value);
        } else if attribute == UNIX_QUEUE {
            waiting = word(value, 0);
        } else if attribute == UNIX_PEER {
            peer = word(value, 0);
        }
        rest = after;
    }
    // Who has sent it pays for it, and is in no list when it was closed.
    let is_orphan = kind.memory == UNIX_MEMORY && waiting > 0 && peer == 0;
    bytes + if is_orphan { ORPHAN_BYTES } else { 0 }
}

/// `SK_MEMINFO_*`: received, to be sent, allocated ahead, sent and not acknowledged, options and backlog. What is to be sent
/// can be counted in two of them.
fn memory(value: &[u8]) -> u64 {
    let number = |place: usize| u64::from(word(value, place * 4));
    let [received, to_send, ahead, queued, options, backlog] = [0, 2, 4, 5, 6, 7].map(number);
    received + to_send.max(queued) + ahead + options + backlog
}

/// The kind of a message, its body, and what follows it.
fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(word(bytes, 0)).ok()?;
    let body = bytes.get(HEADER_BYTES..length)?;
    let kind = half_word(bytes, 4)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The kind of an attribute, its value, and what follows it.
fn next_attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(half_word(bytes, 0)?);
    let value = bytes.get(4..length)?;
    let kind = half_word(bytes, 2)?;
    Some((kind, value, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn half_word(bytes: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(place..)?.first_chunk()?))
}

/// The number at a place, zero where there is none.
fn word(bytes: &[u8], place: usize) -> u32 {
    let found = bytes.get(place..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

    use super::*;

    #[test]
    fn what_lies_in_a_socket_is_reported() {
        let flags = SockFlag::SOCK_CLOEXEC;
        let line =
            socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkSockDiag).unwrap();
        let (sender, receiver) = UnixStream::pair().unwrap();
        let inodes: BTreeSet<u64> =
            [&sender, &receiver].map(|end| nix::sys::stat::fstat(end).unwrap().st_ino).into();
        let of = |network, inodes: &BTreeSet<u64>| socket_bytes(&line, network, inodes);
        let own = || of(NetworkAccess::Unrestricted, &inodes);
        let Some(before) = own() else {
            println!("skipped: this system does not report the memory of sockets");
            return;
        };
        (&sender).write_all(&[7; 50_000]).unwrap();
        let full = own().unwrap();
        assert!(before == 0 && full >= 50_000, "{before} {full}");
        drop(OwnedFd::from(sender));
        let orphan = own().unwrap();
        assert!(orphan >= ORPHAN_BYTES, "{orphan}");
        assert_eq!(of(NetworkAccess::Unrestricted, &BTreeSet::new()), Some(0));
        for network in [NetworkAccess::None, NetworkAccess::Loopback] {
            assert!(of(network, &BTreeSet::new()).unwrap() >= orphan, "{network:?}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_ends() {
        assert!(next_message(&[]).is_none() && next_message(&[200, 0, 0, 0, 1, 0]).is_none());
        assert!(next_attribute(&[0; 3]).is_none() && next_attribute(&[0; 4]).is_none());
        let (kind, value, rest) = next_attribute(&[6, 0, 9, 0, 1, 2, 0, 0, 5]).unwrap();
        assert_eq!((kind, value, rest), (9, &[1, 2][..], &[5][..]));
    }
}
