//! PackStream: the values of Bolt as bytes, and back. What comes from the wire is not trusted.

use super::failure::Failure;

/// How deep values may be nested. Answers are lists of rows of values; real ones are only a few levels deep.
const MAX_DEPTH: usize = 64;

/// A value on the wire.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Packed {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Bytes(Vec<u8>),
    Text(String),
    List(Vec<Packed>),
    Map(Vec<(String, Packed)>),
    /// A message, a node, a relationship or a path, distinguished by the tag.
    Structure(u8, Vec<Packed>),
}

impl Packed {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The entry of a map.
    pub(super) fn get(&self, name: &str) -> Option<&Packed> {
        match self {
            Self::Map(entries) => entries.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

/// The bytes of a value.
pub(super) fn pack(value: &Packed, bytes: &mut Vec<u8>) {
    match value {
        Packed::Null => bytes.push(0xc0),
        Packed::Boolean(false) => bytes.push(0xc2),
        Packed::Boolean(true) => bytes.push(0xc3),
        Packed::Integer(number) => pack_integer(*number, bytes),
        Packed::Float(number) => {
            bytes.push(0xc1);
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        Packed::Bytes(content) => {
            // No short form: the smallest count of bytes has its own marker.
            pack_size(content.len(), None, [0xcc, 0xcd, 0xce], bytes);
            bytes.extend_from_slice(content);
        }
        Packed::Text(text) => pack_text(text, bytes),
        Packed::List(items) => {
            pack_size(items.len(), Some(0x90), [0xd4, 0xd5, 0xd6], bytes);
            items.iter().for_each(|item| pack(item, bytes));
        }
        Packed::Map(entries) => {
            pack_size(entries.len(), Some(0xa0), [0xd8, 0xd9, 0xda], bytes);
            for (key, value) in entries {
                pack_text(key, bytes);
                pack(value, bytes);
            }
        }
        Packed::Structure(tag, fields) => {
            // Our messages have at most three fields, and only messages are packed as structures.
            bytes.push(0xb0 | u8::try_from(fields.len()).unwrap_or(0x0f) & 0x0f);
            bytes.push(*tag);
            fields.iter().for_each(|field| pack(field, bytes));
        }
    }
}

fn pack_text(text: &str, bytes: &mut Vec<u8>) {
    pack_size(text.len(), Some(0x80), [0xd0, 0xd1, 0xd2], bytes);
    bytes.extend_from_slice(text.as_bytes());
}

fn pack_integer(number: i64, bytes: &mut Vec<u8>) {
    if (-16..128).contains(&number) {
        bytes.extend(i8::try_from(number).map(i8::to_be_bytes).unwrap_or_default());
    } else if let Ok(number) = i8::try_from(number) {
        bytes.push(0xc8);
        bytes.extend(number.to_be_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        bytes.push(0xc9);
        bytes.extend(number.to_be_bytes());
    } else if let Ok(number) = i32::try_from(number) {
        bytes.push(0xca);
        bytes.extend(number.to_be_bytes());
    } else {
        bytes.push(0xcb);
        bytes.extend(number.to_be_bytes());
    }
}

/// The marker of a size: within the marker itself, or in one, two or four bytes after it.
fn pack_size(size: usize, tiny: Option<u8>, markers: [u8; 3], bytes: &mut Vec<u8>) {
    let [one, two, four] = markers;
    match (tiny, u8::try_from(size), u16::try_from(size)) {
        (Some(tiny), Ok(size), _) if size < 16 => bytes.push(tiny | size),
        (_, Ok(size), _) => bytes.extend([one, size]),
        (_, _, Ok(size)) => {
            bytes.push(two);
            bytes.extend(size.to_be_bytes());
        }
        _ => {
            bytes.push(four);
            bytes.extend(u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}

/// The one value that `bytes` hold.
pub(super) fn unpack(bytes: &[u8]) -> Result<Packed, Failure> {
    let mut reader = Reader { bytes };
    let value = reader.value(MAX_DEPTH)?;
    if reader.bytes.is_empty() { Ok(value) } else { Err(broken("a message is longer than its value")) }
}

fn broken(what: &'static str) -> Failure {
    Failure::Protocol(what.to_owned())
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Failure> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or_else(|| broken("a message ends in the middle of a value"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        self.take(N)?.try_into().map_err(|_| broken("a message ends in the middle of a value"))
    }

    fn byte(&mut self) -> Result<u8, Failure> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A size of one, two or four bytes. Each thing it counts takes at least one byte, so that a lie is found before
    /// anything is set aside for it.
    fn size(&mut self, width: u8) -> Result<usize, Failure> {
        let size = match width {
            0 => usize::from(self.byte()?),
            1 => usize::from(u16::from_be_bytes(self.array()?)),
            _ => usize::try_from(u32::from_be_bytes(self.array()?)).unwrap_or(usize::MAX),
        };
        if size > self.bytes.len() {
            Err(broken("a message ends in the middle of a value"))
        } else {
            Ok(size)
        }
    }

    fn value(&mut self, depth: usize) -> Result<Packed, Failure> {
        let depth = depth.checked_sub(1).ok_or_else(|| broken("a value is nested too deeply"))?;
        let marker = self.byte()?;
        let low = usize::from(marker & 0x0f);
        match marker {
            0x00..=0x7f | 0xf0..=0xff => Ok(Packed::Integer(i64::from(i8::from_be_bytes([marker])))),
            0x80..=0x8f => self.string(low),
            0x90..=0x9f => self.list(low, depth),
            0xa0..=0xaf => self.map(low, depth),
            0xb0..=0xbf => self.structure(low, depth),
            0xc0 => Ok(Packed::Null),
            0xc1 => Ok(Packed::Float(f64::from_be_bytes(self.array()?))),
            0xc2 => Ok(Packed::Boolean(false)),
            0xc3 => Ok(Packed::Boolean(true)),
            0xc8 => Ok(Packed::Integer(i64::from(i8::from_be_bytes(self.array()?)))),
            0xc9 => Ok(Packed::Integer(i64::from(i16::from_be_bytes(self.array()?)))),
            0xca => Ok(Packed::Integer(i64::from(i32::from_be_bytes(self.array()?)))),
            0xcb => Ok(Packed::Integer(i64::from_be_bytes(self.array()?))),
            0xcc..=0xce => {
                let size = self.size(marker - 0xcc)?;
                Ok(Packed::Bytes(self.take(size)?.to_vec()))
            }
            0xd0..=0xd2 => {
                let size = self.size(marker - 0xd0)?;
                self.string(size)
            }
            0xd4..=0xd6 => {
                let size = self.size(marker - 0xd4)?;
                self.list(size, depth)
            }
            0xd8..=0xda => {
                let size = self.size(marker - 0xd8)?;
                self.map(size, depth)
            }
            _ => Err(broken("a value has an unknown marker")),
        }
    }

    fn string(&mut self, size: usize) -> Result<Packed, Failure> {
        let text = str::from_utf8(self.take(size)?).map_err(|_| broken("a text is not UTF-8"))?;
        Ok(Packed::text(text))
    }

    fn list(&mut self, size: usize, depth: usize) -> Result<Packed, Failure> {
        Ok(Packed::List((0..size).map(|_| self.value(depth)).collect::<Result<_, _>>()?))
    }

    fn map(&mut self, size: usize, depth: usize) -> Result<Packed, Failure> {
        let mut entries = Vec::new();
        for _ in 0..size {
            let Packed::Text(key) = self.value(depth)? else {
                return Err(broken("the key of a map is not text"));
            };
            entries.push((key, self.value(depth)?));
        }
        Ok(Packed::Map(entries))
    }

    fn structure(&mut self, size: usize, depth: usize) -> Result<Packed, Failure> {
        let tag = self.byte()?;
        Ok(Packed::Structure(tag, (0..size).map(|_| self.value(depth)).collect::<Result<_, _>>()?))
    }
}
