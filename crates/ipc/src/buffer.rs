//! A buffer that refuses to become larger than a message may be.

use std::io::{self, Write};

#[derive(Debug)]
pub(crate) struct BoundedBuffer {
    bytes: Vec<u8>,
    most: usize,
}

impl BoundedBuffer {
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
