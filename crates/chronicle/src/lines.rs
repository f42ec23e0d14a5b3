//! The lines of a file of any size, in memory for one line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Take};
use std::os::unix::fs::FileExt;

use crate::line::MAX_LINE_BYTES;

/// How much of a file is read at once.
const BLOCK: usize = 64 << 10;

/// Lines one after the other, up to an end that lies after a whole line.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: BufReader<Take<R>>,
    /// Where the next line begins.
    position: u64,
    end: u64,
    buffer: Vec<u8>,
}

/// A line without its end. One that is too long has no bytes: nothing keeps it in memory.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) offset: u64,
    pub(crate) bytes: Option<&'a [u8]>,
}

impl<R: Read + Seek> Lines<R> {
    pub(crate) fn new(mut file: R, start: u64, end: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(start))?;
        let rest = end.saturating_sub(start);
        let reader = BufReader::with_capacity(BLOCK, file.take(rest));
        Ok(Self { reader, position: start, end, buffer: Vec::new() })
    }
}

impl<R: Read> Lines<R> {
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.position >= self.end {
            return Ok(None);
        }
        let offset = self.position;
        self.buffer.clear();
        let mut bounded = (&mut self.reader).take(MAX_LINE_BYTES as u64);
        self.position += bounded.read_until(b'\n', &mut self.buffer)? as u64;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            return Ok(Some(Line { offset, bytes: Some(&self.buffer) }));
        }
        self.finish_line()?;
        Ok(Some(Line { offset, bytes: None }))
    }

    /// Skips `count` lines without reading them.
    pub(crate) fn skip(&mut self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            if self.position >= self.end {
                break;
            }
            self.finish_line()?;
        }
        Ok(())
    }

    fn finish_line(&mut self) -> io::Result<()> {
        let passed = self.reader.skip_until(b'\n')? as u64;
        self.position += passed;
        // There is a line before the end, or the file was shortened since.
        if passed == 0 {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the file became shorter while it was read",
            ));
        }
        Ok(())
    }
}

/// The beginning of the last `count` lines before `end`; of all, when there are fewer. What follows the last line end
/// counts for nothing. Reads no more than `most` bytes, and returns nothing when that was not enough.
pub(crate) fn start_of_last(file: &File, end: u64, count: usize, most: u64) -> io::Result<Option<u64>> {
    let floor = end.saturating_sub(most);
    let mut left = count;
    let mut position = end;
    let mut block = vec![0; BLOCK];
    while position > floor {
        let size = (position - floor).min(BLOCK as u64);
        position -= size;
        let Some(bytes) = usize::try_from(size).ok().and_then(|size| block.get_mut(..size)) else { break };
        file.read_exact_at(bytes, position)?;
        // Faster than searching backwards, and most blocks of a long line hold no end.
        if !bytes.contains(&b'\n') {
            continue;
        }
        let mut rest: &[u8] = bytes;
        while let Some(at) = rest.iter().rposition(|byte| *byte == b'\n') {
            if left == 0 {
                return Ok(Some(position + at as u64 + 1));
            }
            left -= 1;
            rest = rest.get(..at).unwrap_or_default();
        }
    }
    Ok((floor == 0).then_some(0))
}

/// The number of the line that begins at `offset`, counted from 1. The position of the handle is restored.
pub(crate) fn number_at(mut file: &File, offset: u64) -> io::Result<u64> {
    let before = file.stream_position()?;
    let mut lines = Lines::new(file, 0, offset)?;
    let mut number = 1;
    while lines.position() < offset {
        lines.skip(1)?;
        number += 1;
    }
    file.seek(SeekFrom::Start(before))?;
    Ok(number)
}
