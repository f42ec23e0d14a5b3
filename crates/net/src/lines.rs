//! Lines of a stream, each with a bounded length.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// What is kept of the buffer of a long line.
const KEPT_BUFFER: usize = 64 << 10;

/// A line of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CappedLine {
    /// Without its end, and without blanks around it.
    Text(Vec<u8>),
    /// It had more bytes than allowed; it was read to its end and dropped.
    TooLong,
}

/// Reads lines of at most so many bytes.
#[derive(Debug)]
pub struct CappedLines<R> {
    reader: BufReader<R>,
    most: usize,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncRead + Unpin> CappedLines<R> {
    pub fn new(reader: R, most: usize) -> Self {
        Self { reader: BufReader::new(reader), most, line: Vec::new(), is_too_long: false }
    }

    /// The next line that is not blank; `None` at the end of the stream, where a line without an end is dropped. What was
    /// read before a cancellation is kept.
    pub async fn next(&mut self) -> Option<CappedLine> {
        loop {
            self.read_line().await?;
            if std::mem::take(&mut self.is_too_long) {
                return Some(CappedLine::TooLong);
            }
            let text = self.line.trim_ascii().to_vec();
            self.line.clear();
            self.line.shrink_to(KEPT_BUFFER);
            if !text.is_empty() {
                return Some(CappedLine::Text(text));
            }
        }
    }

    async fn read_line(&mut self) -> Option<()> {
        loop {
            let available = self.reader.fill_buf().await.ok()?;
            if available.is_empty() {
                return None;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if !self.is_too_long && self.line.len() + taken > self.most {
                self.is_too_long = true;
                self.line = Vec::new();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(available.get(..taken).unwrap_or_default());
            }
            self.reader.consume(taken);
            if end.is_some() {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], most: usize) -> Vec<CappedLine> {
        let mut reader = CappedLines::new(text, most);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_capped_trimmed_and_end_with_the_stream() {
        let text = |line: &str| CappedLine::Text(line.as_bytes().to_vec());
        let cases: [(&str, Vec<CappedLine>); 6] = [
            ("", vec![]),
            ("\n \r\n", vec![]),
            ("a\r\n  b \n", vec![text("a"), text("b")]),
            ("1234567\n", vec![text("1234567")]),
            ("12345678\nb\n", vec![CappedLine::TooLong, text("b")]),
            ("a\ntorn", vec![text("a")]),
        ];
        for (given, expected) in cases {
            assert_eq!(lines(given.as_bytes(), 8).await, expected, "{given:?}");
        }
    }
}
