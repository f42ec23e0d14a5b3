//! How large a JSON document is, known before it is parsed: a parsed value takes up to thirty times the memory of its
//! text, so a bound on bytes alone is none.

/// What a document may have at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLimits {
    /// Values and names of fields, everywhere in the document.
    pub values: usize,
    /// Lists and objects inside of one another.
    pub depth: usize,
}

impl JsonLimits {
    /// What is taken from a client, a command line or a file: more than any tool's arguments need. A value takes 72
    /// bytes, and a call holds several copies of its arguments.
    pub const ARGUMENTS: Self = Self { values: 100_000, depth: 100 };
}

/// What a document has. Counted without regard to its order, so a document that is not valid has a size too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonSize {
    /// Values and names of fields: as many as a parser makes.
    pub values: usize,
    /// The deepest nesting.
    pub depth: usize,
}

/// Which limit a document exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonTooLarge {
    /// It has more values than allowed.
    #[error("the JSON has more than {0} values")]
    Values(usize),
    /// It is nested deeper than allowed.
    #[error("the JSON is nested more than {0} levels deep")]
    Depth(usize),
}

/// Measures a document without building anything. Ends at the first limit that is exceeded.
///
/// # Errors
/// When the document is larger than `limits`.
pub fn measure(text: &[u8], limits: JsonLimits) -> Result<JsonSize, JsonTooLarge> {
    let mut size = JsonSize::default();
    let mut depth = 0_usize;
    // Whether the byte before belongs to a number or a word, which is one value however long.
    let mut within = false;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let mut is_word = false;
        match byte {
            b'"' => {
                size.values += 1;
                skip_string(&mut bytes);
            }
            b'[' | b'{' => {
                size.values += 1;
                depth += 1;
                size.depth = size.depth.max(depth);
                if depth > limits.depth {
                    return Err(JsonTooLarge::Depth(limits.depth));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                size.values += usize::from(!within);
                is_word = true;
            }
        }
        within = is_word;
        if size.values > limits.values {
            return Err(JsonTooLarge::Values(limits.values));
        }
    }
    Ok(size)
}

/// Goes to the end of a string whose first quote was read.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}
