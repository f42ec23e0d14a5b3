//! A server of Bolt as small as can be: it speaks the bytes of the published protocol, and sends what a test gives
//! it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

/// What it says to one message: the bytes of messages, or an end.
pub enum Say {
    Message(Vec<u8>),
    /// Bytes as they are, frames included.
    Raw(Vec<u8>),
    /// Nothing more, and the connection stays open.
    Silence,
    Close,
}

/// A message that was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    pub tag: u8,
    pub fields: Vec<Value>,
    /// The sizes of the chunks it came in.
    pub chunks: Vec<usize>,
}

pub struct Peer {
    pub address: String,
    pub heard: Arc<Mutex<Vec<Heard>>>,
    pub connections: Arc<Mutex<usize>>,
}

pub const HANDSHAKE: [u8; 20] = [0x60, 0x60, 0xb0, 0x17, 0, 4, 4, 5, 0, 2, 4, 4, 0, 0, 1, 4, 0, 0, 0, 0];

impl Peer {
    /// `answer` is what it says to the handshake, `script` what to each message.
    pub fn start(answer: Vec<u8>, script: impl Fn(&Heard) -> Vec<Say> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("bolt://ada:secret@{}/shop", listener.local_addr().unwrap());
        let (heard, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let peer = Self { address, heard: Arc::clone(&heard), connections: Arc::clone(&connections) };
        let script = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { break };
                stream.set_nodelay(true).unwrap();
                *connections.lock().unwrap() += 1;
                let (answer, script, heard) = (answer.clone(), Arc::clone(&script), Arc::clone(&heard));
                std::thread::spawn(move || serve(stream, &answer, &*script, &heard));
            }
        });
        peer
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &[u8],
    script: &dyn Fn(&Heard) -> Vec<Say>,
    heard: &Mutex<Vec<Heard>>,
) -> Option<()> {
    let mut hello = [0; 20];
    stream.read_exact(&mut hello).ok()?;
    assert_eq!(hello, HANDSHAKE);
    stream.write_all(answer).ok()?;
    loop {
        let message = listen(&mut stream)?;
        heard.lock().unwrap().push(message.clone());
        for say in script(&message) {
            match say {
                Say::Message(bytes) => {
                    for chunk in bytes.chunks(0xffff) {
                        stream.write_all(&u16::try_from(chunk.len()).unwrap().to_be_bytes()).ok()?;
                        stream.write_all(chunk).ok()?;
                    }
                    stream.write_all(&[0, 0]).ok()?;
                }
                Say::Raw(bytes) => stream.write_all(&bytes).ok()?,
                Say::Silence => {
                    let _ = stream.read(&mut [0]);
                    return None;
                }
                Say::Close => return None,
            }
        }
    }
}

fn listen(stream: &mut TcpStream) -> Option<Heard> {
    let (mut bytes, mut chunks) = (Vec::new(), Vec::new());
    loop {
        let mut size = [0; 2];
        stream.read_exact(&mut size).ok()?;
        let size = usize::from(u16::from_be_bytes(size));
        if size == 0 {
            break;
        }
        chunks.push(size);
        let start = bytes.len();
        bytes.resize(start + size, 0);
        stream.read_exact(&mut bytes[start..]).ok()?;
    }
    let mut rest = bytes.as_slice();
    let (count, tag) = (usize::from(rest[0] & 0x0f), rest[1]);
    assert_eq!(rest[0] & 0xf0, 0xb0, "a message is a structure");
    rest = &rest[2..];
    let fields = (0..count).map(|_| value(&mut rest)).collect();
    assert!(rest.is_empty(), "a message ends with its fields");
    Some(Heard { tag, fields, chunks })
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn size(bytes: &mut &[u8], width: usize) -> usize {
    take(bytes, width).iter().fold(0, |size, byte| size << 8 | usize::from(*byte))
}

/// A value as the protocol writes it. Only what a client sends: no structures.
fn value(bytes: &mut &[u8]) -> Value {
    let marker = take(bytes, 1)[0];
    let small = usize::from(marker & 0x0f);
    match marker {
        0x00..=0x7f | 0xf0..=0xff => json!(i8::from_be_bytes([marker])),
        0xc0 => Value::Null,
        0xc1 => json!(f64::from_be_bytes(take(bytes, 8).try_into().unwrap())),
        0xc2 | 0xc3 => json!(marker == 0xc3),
        0xc8 => json!(i8::from_be_bytes(take(bytes, 1).try_into().unwrap())),
        0xc9 => json!(i16::from_be_bytes(take(bytes, 2).try_into().unwrap())),
        0xca => json!(i32::from_be_bytes(take(bytes, 4).try_into().unwrap())),
        0xcb => json!(i64::from_be_bytes(take(bytes, 8).try_into().unwrap())),
        0x80..=0x8f => text(bytes, small),
        0xd0..=0xd2 => {
            let size = size(bytes, 1 << (marker - 0xd0));
            text(bytes, size)
        }
        0x90..=0x9f => (0..small).map(|_| value(bytes)).collect(),
        0xd4..=0xd6 => (0..size(bytes, 1 << (marker - 0xd4))).map(|_| value(bytes)).collect(),
        0xa0..=0xaf => map(bytes, small),
        0xd8..=0xda => {
            let size = size(bytes, 1 << (marker - 0xd8));
            map(bytes, size)
        }
        _ => panic!("a client sends no {marker:#04x}"),
    }
}

fn text(bytes: &mut &[u8], size: usize) -> Value {
    Value::from(std::str::from_utf8(take(bytes, size)).unwrap())
}

fn map(bytes: &mut &[u8], size: usize) -> Value {
    let pairs = (0..size).map(|_| (value(bytes).as_str().unwrap().to_owned(), value(bytes)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// The bytes of a JSON value in the longest form that it may have, so that all of them are read once.
pub fn packed(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => vec![0xc0],
        Value::Bool(value) => vec![if *value { 0xc3 } else { 0xc2 }],
        Value::Number(number) if number.is_f64() => {
            [&[0xc1], number.as_f64().unwrap().to_be_bytes().as_slice()].concat()
        }
        Value::Number(number) => [&[0xcb], number.as_i64().unwrap().to_be_bytes().as_slice()].concat(),
        Value::String(text) => [&long(0xd2, text.len()), text.as_bytes()].concat(),
        Value::Array(items) => {
            let items = items.iter().flat_map(packed);
            long(0xd6, value.as_array().unwrap().len()).into_iter().chain(items).collect()
        }
        Value::Object(fields) => {
            let pairs = fields.iter().flat_map(|(key, value)| [packed(&json!(key)), packed(value)].concat());
            long(0xda, fields.len()).into_iter().chain(pairs).collect()
        }
    }
}

fn long(marker: u8, size: usize) -> Vec<u8> {
    [&[marker], u32::try_from(size).unwrap().to_be_bytes().as_slice()].concat()
}

pub fn structure(tag: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    [&[0xb0 | u8::try_from(fields.len()).unwrap(), tag], fields.concat().as_slice()].concat()
}

pub fn success(summary: &Value) -> Say {
    Say::Message(structure(0x70, &[packed(summary)]))
}

pub fn record(fields: &[Vec<u8>]) -> Say {
    let list = [&long(0xd6, fields.len()), fields.concat().as_slice()].concat();
    Say::Message(structure(0x71, &[list]))
}

pub fn failure(code: &str, message: &str) -> Say {
    Say::Message(structure(0x7f, &[packed(&json!({ "code": code, "message": message }))]))
}

pub fn ignored() -> Say {
    Say::Message(structure(0x7e, &[]))
}
