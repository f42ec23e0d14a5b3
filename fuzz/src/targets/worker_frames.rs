//! Frames of a worker, which runs hostile code.

use rand::RngExt;
use rand::rngs::SmallRng;

use super::streams::{Pieces, ready};
use super::{ensure, same};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "worker-frames",
    about: "frames are the same however they are cut, messages round-trip, and a length over the limit is refused at once",
    oracle: check,
    dictionary: &["\u{1}\0\0\0\u{1}", "\0\0\0\u{2}", "{\"a\":1}", "TypeError", "fs_read", "\0\0", "\u{7f}"],
    generate: Some(frames),
    iterations: 15_000,
};

/// The limit of the crate, which it does not export.
const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;

/// What came of the frames of a stream: each message encoded again, and the error that ended it.
type Read = (Vec<Vec<u8>>, String, usize);

fn check(input: &[u8]) -> Result<(), String> {
    let whole = read(input, input.len())?;
    same("the frames depend on how they are cut", &read(input, 1)?, &whole)?;
    same("the frames depend on how they are cut", &read(input, 3)?, &whole)?;
    let (messages, _, taken) = &whole;
    // What was read once is read again, and is the same.
    let (again, _, _) = read(&messages.concat(), 7)?;
    same("a message does not round-trip", &again, messages)?;
    let length = input.first_chunk::<4>().map(|prefix| u32::from_le_bytes(*prefix) as usize);
    if length.is_some_and(|length| length > MAX_FRAME_BYTES) {
        ensure!(*taken == 4, "a frame over the limit was read: {taken} bytes");
    }
    Ok(())
}

fn read(bytes: &[u8], step: usize) -> Result<Read, String> {
    let mut stream = Pieces::new(bytes, step);
    let mut messages = Vec::new();
    loop {
        let read = ready(tgp_sandbox::reencode_frame(&mut stream))?.map_err(|error| error.to_string());
        match read {
            Ok(message) => messages.push(message),
            Err(error) => return Ok((messages, error, stream.taken())),
        }
    }
}

/// Frames whose lengths are mostly right, of messages that are nearly right.
fn frames(random: &mut SmallRng) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..random.random_range(1..5_u32) {
        let body = message(random);
        let mut length = u32::try_from(body.len()).unwrap_or_default();
        if random.random_bool(0.1) {
            length = random.random();
        }
        stream.extend(length.to_le_bytes());
        stream.extend(body);
    }
    stream
}

/// The variants of a worker's message in postcard: a number, then the fields.
fn message(random: &mut SmallRng) -> Vec<u8> {
    let mut body = vec![random.random_range(0..7_u8)];
    for _ in 0..random.random_range(0..6_u32) {
        match random.random_range(0..4_u32) {
            0 => body.push(random.random_range(0..3)),
            1 => body.extend([0xff, 0xff, 0x03]),
            2 => body.push(random.random()),
            _ => {
                let text = "é{}\"a".as_bytes();
                body.push(u8::try_from(text.len()).unwrap_or_default());
                body.extend(text);
            }
        }
    }
    body
}
