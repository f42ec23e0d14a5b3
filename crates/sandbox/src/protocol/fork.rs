//! The talk between the kernel and a template. It is not framed: one byte with a connection for the worker, and a number.

/// Asks a template for a worker. The worker's connection comes with this byte.
pub(crate) const FORK_REQUEST: u8 = b'F';

/// How long an answer is.
pub(crate) const FORK_ANSWER_BYTES: usize = 4;

/// The process number of the new worker, or an error number below zero.
pub(crate) fn fork_answer(number: i32) -> [u8; FORK_ANSWER_BYTES] {
    number.to_le_bytes()
}

/// Reads what [`fork_answer`] wrote.
pub(crate) fn forked(answer: [u8; FORK_ANSWER_BYTES]) -> Result<i32, std::io::Error> {
    match i32::from_le_bytes(answer) {
        number if number > 0 => Ok(number),
        errno => Err(std::io::Error::from_raw_os_error(errno.wrapping_neg())),
    }
}
