//! Frames of the local socket, and the requests in them.

use rand::RngExt;
use rand::rngs::SmallRng;
use serde_json::Value;
use tgp_contract::{JsonLimits, JsonSize, measure};
use tgp_ipc::{FrameError, Hello, MAX_FRAME_BYTES, SocketAnswer, SocketRequest, read_frame, write_frame};

use super::streams::{Pieces, ready};
use super::{ensure, same};
use crate::Target;
use crate::mutate::soup;

pub(super) const TARGET: Target = Target {
    name: "socket-frames",
    about: "frames are the same however they are cut and round-trip, requests too, and JSON is never larger than measured",
    oracle: check,
    dictionary: WORDS,
    generate: Some(frames),
    iterations: 12_000,
};

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"method\":",
    "\"call\"",
    "\"tools\"",
    "\"id\":",
    "\"1\"",
    "\"tool\":",
    "\"fs_read\"",
    "\"arguments\":",
    "\"dry_run\":",
    "true",
    "null",
    "1e9",
    "-0",
    "\"token\":",
    "\"actor\":",
    "\"session\":",
    "\"\\u0000\"",
    "\"\\ud83d\"",
    "{\"path\":\"a\"}",
    "{\"method\":\"tools\",\"id\":\"1\"}",
    "{\"method\":\"call\",\"id\":\"1\",\"tool\":\"fs_read\",\"arguments\":{\"path\":\"a\"},\"dry_run\":true}",
    "{\"token\":\"x\",\"actor\":null}",
    "{\"ok\":true,\"data\":1}",
    "{\"session\":\"s\"}",
];

/// The frames of a stream, how it ended, and how many bytes were read.
type Read = (Vec<Vec<u8>>, String, usize);

fn check(input: &[u8]) -> Result<(), String> {
    let whole = read(input, input.len())?;
    same("the frames depend on how they are cut", &read(input, 1)?, &whole)?;
    same("the frames depend on how they are cut", &read(input, 3)?, &whole)?;
    let (frames, _, taken) = &whole;
    let mut written = Vec::new();
    for frame in frames {
        ready(write_frame(&mut written, frame))?
            .map_err(|error| format!("a frame cannot be written: {error}"))?;
        request(frame)?;
    }
    same("the frames do not round-trip", &Some(written.as_slice()), &input.get(..written.len()))?;
    let rest = input.get(written.len()..).unwrap_or_default();
    let length = rest.first_chunk::<4>().map(|prefix| u32::from_be_bytes(*prefix) as usize);
    if length.is_some_and(|length| length > MAX_FRAME_BYTES) {
        ensure!(*taken == written.len() + 4, "a frame over the limit was read: {taken} bytes");
    }
    // A reader of JSON gets the input as it is, too: most inputs are not frames.
    request(input)
}

fn read(bytes: &[u8], step: usize) -> Result<Read, String> {
    let mut stream = Pieces::new(bytes, step);
    let mut frames = Vec::new();
    let end = loop {
        match ready(read_frame(&mut stream))? {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => break "the end".to_owned(),
            Err(error) => {
                ensure!(!matches!(error, FrameError::Io(_)), "reading failed by itself: {error}");
                break error.to_string();
            }
        }
    };
    Ok((frames, end, stream.taken()))
}

/// What a client may have sent.
fn request(frame: &[u8]) -> Result<(), String> {
    let limits = JsonLimits { values: usize::MAX, depth: usize::MAX };
    let size = measure(frame, limits).map_err(|error| format!("without limits it is too large: {error}"))?;
    if let Ok(value) = serde_json::from_slice::<Value>(frame) {
        let real = size_of(&value);
        ensure!(
            real.values <= size.values && real.depth <= size.depth,
            "the JSON has {real:?}, and {size:?} were measured"
        );
    }
    for values in [size.values, size.values.saturating_sub(1)] {
        let fits = measure(frame, JsonLimits { values, depth: usize::MAX }).is_ok();
        same("the limit of values", &fits, &(size.values <= values))?;
    }
    if let Ok(request) = serde_json::from_slice::<SocketRequest>(frame) {
        round_trip(&request)?;
    }
    if let Ok(hello) = serde_json::from_slice::<Hello>(frame) {
        round_trip(&hello)?;
        // The token is a secret, and `Debug` goes to logs.
        let marked = Hello { token: "sEcReTtOkEn".to_owned(), ..hello };
        ensure!(!format!("{marked:?}").contains("sEcReTtOkEn"), "the token is shown");
    }
    if let Ok(answer) = serde_json::from_slice::<SocketAnswer>(frame) {
        round_trip(&answer)?;
    }
    Ok(())
}

/// What was read is written so that it is read as the same.
fn round_trip<T: serde::Serialize + serde::de::DeserializeOwned>(message: &T) -> Result<(), String> {
    let value = serde_json::to_value(message).map_err(|error| format!("a message is not JSON: {error}"))?;
    let text = value.to_string();
    let again: T =
        serde_json::from_str(&text).map_err(|error| format!("its own JSON is refused: {error}: {text}"))?;
    let again = serde_json::to_value(again).map_err(|error| format!("a message is not JSON: {error}"))?;
    same("a message does not round-trip", &again, &value)
}

/// What a parser has made of a document.
fn size_of(value: &Value) -> JsonSize {
    let children: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => return JsonSize { values: 1, depth: 0 },
    };
    let names = value.as_object().map_or(0, serde_json::Map::len);
    children.into_iter().map(size_of).fold(JsonSize { values: 1 + names, depth: 1 }, |sum, size| JsonSize {
        values: sum.values + size.values,
        depth: sum.depth.max(size.depth + 1),
    })
}

/// Frames whose lengths are mostly right.
fn frames(random: &mut SmallRng) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..random.random_range(1..4_u32) {
        let body = soup(random, WORDS);
        let mut length = u32::try_from(body.len()).unwrap_or_default();
        if random.random_bool(0.1) {
            length = random.random();
        }
        stream.extend(length.to_be_bytes());
        stream.extend(body);
    }
    stream
}
