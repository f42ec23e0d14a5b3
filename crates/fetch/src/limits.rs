//! The caps of one fetch.

use std::time::Duration;

/// The caps of one fetch. They are always on; there is no value that means "without limit".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Largest response body, counted as it arrives, whatever `Content-Length` says.
    pub max_response_bytes: usize,
    /// Largest request body.
    pub max_request_bytes: usize,
    /// Longest URL, of the request and of every redirect.
    pub max_url_bytes: usize,
    /// Most headers, of the request and of the response.
    pub max_headers: usize,
    /// Largest sum of header names and values, of the request and of the response.
    pub max_header_bytes: usize,
    /// How many redirects are followed.
    pub max_redirects: usize,
    /// Deadline of the whole call: resolving, connecting, every redirect and the last byte of the body.
    pub timeout: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            max_response_bytes: 5 * 1024 * 1024,
            max_request_bytes: 1024 * 1024,
            max_url_bytes: 8 * 1024,
            max_headers: 100,
            max_header_bytes: 64 * 1024,
            max_redirects: 5,
            timeout: Duration::from_secs(10),
        }
    }
}
