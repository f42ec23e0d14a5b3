//! Keeping the head and the tail of a stream.

use std::collections::VecDeque;

use crate::Captured;

/// Keeps the head and the tail of a stream of any length in bounded memory.
#[derive(Debug)]
pub(crate) struct HeadTailBuffer {
    head: Vec<u8>,
    head_bytes: usize,
    tail: VecDeque<u8>,
    tail_bytes: usize,
    total_bytes: u64,
}

impl HeadTailBuffer {
    pub(crate) fn new(bytes: usize) -> Self {
        let tail_bytes = bytes / 2;
        Self {
            head: Vec::new(),
            head_bytes: bytes - tail_bytes,
            tail: VecDeque::new(),
            tail_bytes,
            total_bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_bytes - self.head.len()));
        self.head.extend_from_slice(first);
        let (_, rest) = rest.split_at(rest.len().saturating_sub(self.tail_bytes));
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_bytes);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend(rest);
    }

    pub(crate) fn finish(self) -> Captured {
        Captured { head: self.head, tail: self.tail.into(), total_bytes: self.total_bytes }
    }
}
