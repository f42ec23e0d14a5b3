//! The caps of a proxy.

use std::time::Duration;

/// Longest request head. A head that programs send has some hundred bytes.
const HEAD_BYTES: usize = 8 * 1024;

/// From the connection to the last byte of its head.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// For resolving the host and connecting to it, together.
const CONNECT_TIME: Duration = Duration::from_secs(15);

/// A tunnel through which nothing flows in either direction for this long is closed.
const IDLE_TIME: Duration = Duration::from_secs(5 * 60);

/// Open tunnels. A browser has six for each host; an installer of packages has some dozens.
const TUNNELS: usize = 64;

/// Connections that are not tunnels yet or will never be. More wait in the queue of the listener.
pub(super) const PENDING_CONNECTIONS: usize = 64;

/// The buffer of each direction of a tunnel.
pub(super) const RELAY_BUFFER_BYTES: usize = 16 * 1024;

/// Addresses of one host that are tried.
pub(super) const ADDRESSES: usize = 8;

/// How long one address is waited for before the next one is tried beside it (RFC 8305).
pub(super) const ADDRESS_PAUSE: Duration = Duration::from_millis(250);

/// For sending a refusal and for the client to read it. Without this time the answer would be lost when the client is still
/// sending: the system resets a connection that is closed with unread bytes.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Bytes of a refused client that are read and thrown away in that time.
pub(super) const DRAINED_BYTES: usize = 64 * 1024;

/// Pause after an error of `accept`, such as too many open files, so that the proxy does not spin.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The caps of a proxy. They are always on, and none of them can be switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Longest request head.
    pub head_bytes: usize,
    /// From the connection to the last byte of its head.
    pub head_time: Duration,
    /// For resolving the host and connecting to it, together.
    pub connect_time: Duration,
    /// How long a tunnel may be silent in both directions.
    pub idle_time: Duration,
    /// Open tunnels; more are refused.
    pub tunnels: usize,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            head_bytes: HEAD_BYTES,
            head_time: HEAD_TIME,
            connect_time: CONNECT_TIME,
            idle_time: IDLE_TIME,
            tunnels: TUNNELS,
        }
    }
}
