//! A second reading of SQL, written apart from the lexer under test: where strings, quoted names and comments are.

use std::ops::Range;

/// The strings, quoted names and comments of a text. What does not end goes to the end of the text.
pub(super) fn quoted(sql: &str, dialect: &str) -> Vec<Range<usize>> {
    let mut reader = Reader { bytes: sql.as_bytes(), at: 0, dialect };
    let mut found = Vec::new();
    while reader.at < reader.bytes.len() {
        let start = reader.at;
        if reader.quoted() {
            found.push(start..reader.at);
        }
    }
    found
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    dialect: &'a str,
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

impl Reader<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or_default()
    }

    fn begins(&self, text: &[u8]) -> bool {
        self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(text))
    }

    fn skip_while(&mut self, test: impl Fn(u8) -> bool) {
        while self.at < self.bytes.len() && test(self.byte(0)) {
            self.at += 1;
        }
    }

    /// Goes over one thing, and says whether it is quoted or a comment.
    fn quoted(&mut self) -> bool {
        let (mysql, sqlite) = (self.dialect == "mysql", self.dialect == "sqlite");
        let postgres = !mysql && !sqlite;
        let first = self.byte(0);
        match first {
            b'\'' | b'"' => self.string(first, mysql),
            b'`' if !postgres => self.string(first, false),
            b'[' if sqlite => {
                self.skip_while(|byte| byte != b']');
                self.at += 1;
            }
            b'#' if mysql => self.skip_while(|byte| byte != b'\n'),
            b'-' if self.begins(b"--")
                && (!mysql
                    || self.at + 2 >= self.bytes.len()
                    || self.byte(2) <= b' '
                    || self.byte(2) == 0x7f) =>
            {
                self.skip_while(|byte| byte != b'\n' && !(postgres && byte == b'\r'));
            }
            b'/' if self.begins(b"/*") => self.comment(postgres),
            b'$' if postgres && !self.byte(1).is_ascii_digit() => return self.dollars(),
            b'e' | b'E' if postgres && self.byte(1) == b'\'' => {
                self.at += 1;
                self.string(b'\'', true);
            }
            _ => {
                self.plain(first, postgres);
                return false;
            }
        }
        self.at = self.at.min(self.bytes.len());
        true
    }

    /// A word, a number, a parameter or a sign.
    fn plain(&mut self, first: u8, postgres: bool) {
        let part = |byte: u8| is_letter(byte) || byte.is_ascii_digit() || byte == b'$';
        self.at += 1;
        if is_letter(first) || (first == b'$' && self.dialect == "sqlite") {
            self.skip_while(part);
        } else if first.is_ascii_digit() && !postgres {
            self.skip_while(|byte| part(byte) || byte == b'.');
        } else if first.is_ascii_digit() {
            self.skip_while(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.'));
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if matches!(self.byte(0), b'e' | b'E') && self.byte(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.skip_while(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.'));
            }
        } else if first == b'@' && !postgres {
            self.skip_while(|byte| byte == b'@' || part(byte) || byte == b'.');
        } else if first == b':' && matches!(self.byte(0), b':' | b'=') {
            self.at += 1;
        } else if first == b':' && is_letter(self.byte(0)) {
            self.skip_while(|byte| part(byte) && byte != b'$');
        }
    }

    /// A quote that is doubled, or escaped where a backslash does that, is inside.
    fn string(&mut self, quote: u8, escapes: bool) {
        self.at += 1;
        while self.at < self.bytes.len() {
            let byte = self.byte(0);
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                if self.byte(0) != quote {
                    return;
                }
                self.at += 1;
            }
        }
    }

    fn comment(&mut self, nests: bool) {
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            if self.begins(b"/*") && (nests || depth == 0) {
                depth += 1;
                self.at += 2;
            } else if self.begins(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
    }

    /// `$tag$ … $tag$`, or a dollar alone.
    fn dollars(&mut self) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let label = rest.iter().skip(1).take_while(|byte| is_letter(**byte) || byte.is_ascii_digit()).count();
        if rest.get(label + 1) != Some(&b'$') {
            self.at += 1;
            return false;
        }
        let tag = rest.get(..label + 2).unwrap_or_default();
        let body = rest.get(tag.len()..).unwrap_or_default();
        let end = body.windows(tag.len()).position(|window| window == tag);
        self.at += end.map_or(rest.len(), |end| tag.len() * 2 + end);
        true
    }
}
