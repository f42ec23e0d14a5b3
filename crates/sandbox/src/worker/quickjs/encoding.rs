//! Natives that turn bytes into text and text into bytes: the encodings of the WHATWG, and those of `Buffer`.
#![expect(clippy::needless_pass_by_value, reason = "the engine hands natives owned values")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use encoding_rs::{Decoder, DecoderResult, Encoding};
use rquickjs::class::{JsClass, Trace, Tracer, Writable};
use rquickjs::object::Object;
use rquickjs::{Class, Ctx, Function, JsLifetime, Result, TypedArray};

use super::natives::copy_of;

pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "utf8Encode",
        // A copy, so that the engine owns the bytes and its cap counts them.
        Function::new(ctx.clone(), |ctx: Ctx<'js>, text: String| {
            TypedArray::<u8>::new_copy(ctx, text.as_bytes())
        })?,
    )?;
    natives.set("utf8EncodeInto", Function::new(ctx.clone(), utf8_encode_into)?)?;
    natives.set("encodingName", Function::new(ctx.clone(), encoding_name)?)?;
    natives.set("decodeBytes", Function::new(ctx.clone(), decode_bytes)?)?;
    natives.set(
        "newDecoder",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, name: String, ignore_bom: bool| {
            StreamDecoder::new(&name, ignore_bom).map(|decoder| Class::instance(ctx, decoder)).transpose()
        })?,
    )?;
    natives.set("decodeChunk", Function::new(ctx.clone(), decode_chunk)?)?;
    natives.set(
        "base64Encode",
        Function::new(ctx.clone(), |bytes: TypedArray<'js, u8>| STANDARD.encode(copy_of(&bytes)))?,
    )?;
    natives.set(
        "base64Decode",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, text: String| {
            TypedArray::<u8>::new_copy(ctx, lenient_base64(&text))
        })?,
    )?;
    natives.set(
        "bufferBytes",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, text: String, encoding: String| {
            TypedArray::<u8>::new_copy(ctx, buffer_bytes(&text, &encoding))
        })?,
    )?;
    natives.set(
        "bufferText",
        Function::new(ctx.clone(), |bytes: TypedArray<'js, u8>, encoding: String| {
            buffer_text(&copy_of(&bytes), &encoding)
        })?,
    )
}

/// Fills `target` with whole characters: how many UTF-16 units were read, and how many bytes written.
fn utf8_encode_into(text: String, target: TypedArray<'_, u8>) -> Vec<usize> {
    let Some(raw) = target.as_raw() else { return vec![0, 0] };
    let (mut read, mut written) = (0, 0);
    for character in text.chars() {
        if written + character.len_utf8() > raw.len() {
            break;
        }
        read += character.len_utf16();
        written += character.len_utf8();
    }
    // SAFETY: the pointer describes the array's live bytes, no JavaScript runs while they are written, and `written`
    // is at most their number.
    let bytes = unsafe { &mut *raw.as_ptr() };
    if let (Some(into), Some(from)) = (bytes.get_mut(..written), text.as_bytes().get(..written)) {
        into.copy_from_slice(from);
    }
    vec![read, written]
}

/// The name of the encoding of a label, in lower case.
fn encoding_name(label: String) -> Option<String> {
    Encoding::for_label_no_replacement(label.as_bytes()).map(|encoding| encoding.name().to_ascii_lowercase())
}

fn decoder(name: &str, ignore_bom: bool) -> Option<Decoder> {
    let encoding = Encoding::for_label_no_replacement(name.as_bytes())?;
    Some(if ignore_bom {
        encoding.new_decoder_without_bom_handling()
    } else {
        encoding.new_decoder_with_bom_removal()
    })
}

/// `None` when the bytes are malformed and `fatal` is set.
fn decode_bytes(name: String, bytes: TypedArray<'_, u8>, fatal: bool, ignore_bom: bool) -> Option<String> {
    decode(&mut decoder(&name, ignore_bom)?, &copy_of(&bytes), fatal, true)
}

fn decode(decoder: &mut Decoder, bytes: &[u8], fatal: bool, last: bool) -> Option<String> {
    if fatal {
        let mut text =
            String::with_capacity(decoder.max_utf8_buffer_length_without_replacement(bytes.len())?);
        let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, last);
        return (result == DecoderResult::InputEmpty).then_some(text);
    }
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len())?);
    // The capacity is the most that can come out, so all input is taken in one step.
    let _ = decoder.decode_to_string(bytes, &mut text, last);
    Some(text)
}

/// A decoder between two chunks of a stream; none after the last, which the library must not be asked to go beyond.
struct StreamDecoder(Option<Decoder>);

impl StreamDecoder {
    fn new(name: &str, ignore_bom: bool) -> Option<Self> {
        decoder(name, ignore_bom).map(|decoder| Self(Some(decoder)))
    }
}

impl<'js> Trace<'js> for StreamDecoder {
    fn trace<'a>(&self, _tracer: Tracer<'a, 'js>) {}
}

// SAFETY: the type holds no `'js` lifetime.
unsafe impl JsLifetime<'_> for StreamDecoder {
    type Changed<'to> = StreamDecoder;
}

impl<'js> JsClass<'js> for StreamDecoder {
    const NAME: &'static str = "StreamDecoder";
    type Mutable = Writable;

    fn constructor(_ctx: &Ctx<'js>) -> Result<Option<rquickjs::function::Constructor<'js>>> {
        Ok(None)
    }
}

fn decode_chunk(
    stream: Class<'_, StreamDecoder>,
    bytes: TypedArray<'_, u8>,
    fatal: bool,
    last: bool,
) -> Option<String> {
    let mut stream = stream.try_borrow_mut().ok()?;
    let text = decode(stream.0.as_mut()?, &copy_of(&bytes), fatal, last);
    if last || text.is_none() {
        stream.0 = None;
    }
    text
}

/// The bytes of a text in one of Node's encodings. Hexadecimal ends at the first pair that is not one, as in Node.
fn buffer_bytes(text: &str, encoding: &str) -> Vec<u8> {
    match encoding {
        "latin1" => text.encode_utf16().map(|unit| unit as u8).collect(),
        "utf16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "hex" => text
            .as_bytes()
            .chunks_exact(2)
            .map_while(|pair| {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let (high, low) = (digit(pair.first()?)?, digit(pair.get(1)?)?);
                u8::try_from(high * 16 + low).ok()
            })
            .collect(),
        "base64" => lenient_base64(text),
        _ => text.as_bytes().to_vec(),
    }
}

fn buffer_text(bytes: &[u8], encoding: &str) -> String {
    match encoding {
        "latin1" => bytes.iter().map(|byte| char::from(*byte)).collect(),
        "ascii" => bytes.iter().map(|byte| char::from(byte & 0x7f)).collect(),
        "utf16le" => {
            let units =
                bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect::<Vec<_>>();
            String::from_utf16_lossy(&units)
        }
        "hex" => {
            const DIGITS: [char; 16] =
                ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
            let digit = |value: u8| DIGITS.get(usize::from(value & 15)).copied().unwrap_or('0');
            bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
        }
        "base64" => STANDARD.encode(bytes),
        "base64url" => URL_SAFE_NO_PAD.encode(bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Base64 of both alphabets; other characters are skipped, and `=` ends it, as in Node.
fn lenient_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => continue,
        };
        bits = (bits << 6 | u32::from(digit)) & 0x00ff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
