//! What a value is, asked of the engine and not of properties that a tool can change.

use std::fmt::Write as _;

use rquickjs::{Result, String as JsString, Value, qjs};

/// Longer keys are cut in the path of a message.
const LONGEST_KEY: usize = 60;

/// Binary data.
pub(super) enum Bytes {
    Octets {
        name: &'static str,
        content: Vec<u8>,
    },
    /// A typed array whose elements are not bytes.
    Numbers(&'static str),
}

/// Built-in objects whose state is not in their properties.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Map,
    Set,
    Promise,
    Error,
    RegExp,
    Date,
    Boxed,
}

/// The names of typed arrays, in the order of the engine's numbers.
const TYPED_ARRAYS: [&str; 12] = [
    "a Uint8ClampedArray",
    "an Int8Array",
    "a Uint8Array",
    "an Int16Array",
    "a Uint16Array",
    "an Int32Array",
    "a Uint32Array",
    "a BigInt64Array",
    "a BigUint64Array",
    "a Float16Array",
    "a Float32Array",
    "a Float64Array",
];

/// The engine's numbers of the classes Number, String, Boolean and Symbol.
const BOXED: std::ops::RangeInclusive<qjs::JSClassID> = 4..=7;

/// The bytes of a buffer or a byte array.
pub(super) fn bytes_of(value: &Value<'_>) -> Option<Bytes> {
    if !value.is_object() {
        return None;
    }
    // SAFETY: the functions only read the class of a live value.
    let (kind, is_buffer) = unsafe {
        let raw = value.as_raw();
        (qjs::JS_GetTypedArrayType(raw), qjs::JS_IsArrayBuffer(raw))
    };
    if is_buffer {
        let content = value.as_object().and_then(|object| object.as_array_buffer()).and_then(|buffer| {
            let raw = buffer.as_raw()?;
            // SAFETY: the pointer describes the live bytes of the buffer, and no JavaScript runs while they are copied.
            Some(unsafe { raw.as_ref().to_vec() })
        });
        return Some(Bytes::Octets { name: "an ArrayBuffer", content: content.unwrap_or_default() });
    }
    let kind = usize::try_from(kind).ok()?;
    let name = TYPED_ARRAYS.get(kind).copied().unwrap_or("a typed array");
    match value.as_object().and_then(|object| object.as_typed_array::<u8>()) {
        Some(octets) => Some(Bytes::Octets { name, content: super::natives::copy_of(octets) }),
        None => Some(Bytes::Numbers(name)),
    }
}

/// What kind of built-in object a value is.
pub(super) fn special(value: &Value<'_>) -> Option<Special> {
    if !value.is_object() {
        return None;
    }
    // SAFETY: the functions only read the class of a live value.
    unsafe {
        let raw = value.as_raw();
        match () {
            () if qjs::JS_IsMap(raw) => Some(Special::Map),
            () if qjs::JS_IsSet(raw) => Some(Special::Set),
            () if qjs::JS_IsPromise(raw) => Some(Special::Promise),
            () if qjs::JS_IsError(raw) => Some(Special::Error),
            () if qjs::JS_IsRegExp(raw) => Some(Special::RegExp),
            () if qjs::JS_IsDate(raw) => Some(Special::Date),
            () if BOXED.contains(&qjs::JS_GetClassID(raw)) => Some(Special::Boxed),
            () => None,
        }
    }
}

/// Proxies around each other that are looked through for a list.
const MAX_PROXIES: usize = 8;

/// Whether a value is a list, or a proxy of one. Nothing when too many proxies are around it to say.
pub(super) fn is_list(value: &Value<'_>) -> Option<bool> {
    let mut value = value.clone();
    for _ in 0..=MAX_PROXIES {
        if !value.is_proxy() {
            return Some(value.is_array());
        }
        let ctx = value.ctx().clone();
        // SAFETY: the value is a live proxy, and what the engine gives belongs to the new handle.
        value = unsafe {
            let target = qjs::JS_GetProxyTarget(ctx.as_raw().as_ptr(), value.as_raw());
            Value::from_raw(ctx, target)
        };
    }
    None
}

/// Appends a text as JSON, unless it has more than `room` bytes: then it gives false. Half a surrogate pair, which no UTF-8
/// text can hold, becomes U+FFFD as everywhere on the web.
pub(super) fn json_text(json: &mut String, text: &JsString<'_>, room: usize) -> Result<bool> {
    let owned = text.clone().to_cstring()?;
    if owned.len() > room {
        return Ok(false);
    }
    // SAFETY: the pointer describes the bytes of the text that `owned` keeps alive.
    let bytes = unsafe { std::slice::from_raw_parts(owned.as_ptr().cast::<u8>(), owned.len()) };
    json.push('"');
    match std::str::from_utf8(bytes) {
        Ok(text) => escape(json, text),
        Err(_) => escape(json, &without_lone_surrogates(bytes)),
    }
    json.push('"');
    Ok(true)
}

fn escape(json: &mut String, text: &str) {
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        // The byte is ASCII, so both cuts are between characters.
        json.push_str(text.get(written..at).unwrap_or_default());
        let _ = match byte {
            b'"' => json.write_str("\\\""),
            b'\\' => json.write_str("\\\\"),
            b'\n' => json.write_str("\\n"),
            _ => write!(json, "\\u{byte:04x}"),
        };
        written = at + 1;
    }
    json.push_str(text.get(written..).unwrap_or_default());
}

/// The engine writes half a surrogate pair as three bytes that begin with ED A0 to ED BF.
fn without_lone_surrogates(bytes: &[u8]) -> String {
    let mut repaired = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        match rest.get(..3) {
            Some([0xED, 0xA0..=0xBF, _]) => {
                repaired.extend_from_slice("\u{fffd}".as_bytes());
                rest = rest.get(3..).unwrap_or_default();
            }
            _ => {
                repaired.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&repaired).into_owned()
}

/// A key as a step of a path.
pub(super) fn shown_key(key: &JsString<'_>) -> String {
    let mut json = String::new();
    // A longer key would not have been written.
    if !json_text(&mut json, key, usize::MAX).unwrap_or_default() {
        return "[?]".to_owned();
    }
    let name = json.trim_matches('"');
    let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$');
    match (is_name, name.len() > LONGEST_KEY) {
        (true, false) => format!(".{name}"),
        (false, false) => format!("[{json}]"),
        (_, true) => format!("[\"{}…\"]", tgp_text::head(name, LONGEST_KEY)),
    }
}
