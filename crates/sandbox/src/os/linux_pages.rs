//! Which pages of memory a worker has from its birth.
//!
//! A page that it has to ask for costs two microseconds, and a small run would ask for 130 of them. All of this only makes
//! a worker faster: a system that refuses a step gives the pages one by one.

use std::ffi::c_void;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// What a small run takes of the stack.
const STACK_BYTES: usize = 16 * 1024;
const PAGE_BYTES: usize = 4096;

/// Where the heap of the C library begins.
pub(crate) struct Heap {
    start: usize,
}

/// Prepares a template, before it locks itself and makes its engine: its copies get the pages of code and constants that
/// it touches from now on, and it knows where its heap is.
pub(crate) fn prepare_template() -> Option<Heap> {
    let mappings = fs::read_to_string("/proc/self/maps").ok()?;
    let mappings: Vec<Mapping> = mappings.lines().filter_map(Mapping::parse).collect();
    hand_over_code(&mappings);
    mappings.iter().find(|mapping| mapping.is_heap).map(|mapping| Heap { start: mapping.start })
}

/// A copy of a process gets no page table of a mapping that is equal to its file; it does when one page of it is not the
/// file's any more. So one byte in each of these mappings is written over itself, through the file of this process's
/// memory, because none of them may be written otherwise.
fn hand_over_code(mappings: &[Mapping]) {
    static CONSTANT: u8 = 0xA5;
    // The loader has written an address here, and made the page read-only afterwards.
    static RELOCATED: &u8 = &CONSTANT;
    let addresses = [hand_over_code as *const u8, &raw const CONSTANT, libc::memcpy as *const u8];
    let Ok(memory) = File::options().read(true).write(true).open("/proc/self/mem") else { return };
    for address in addresses.map(|address| address as usize) {
        let mapping = mappings.iter().find(|mapping| mapping.is_file_with(address));
        if let Some(mapping) =
            mapping.filter(|mapping| !mapping.is_file_with((&raw const RELOCATED) as usize))
        {
            // What the start of the process needed, above all the list of relocations, no run needs.
            advise(mapping.start, mapping.end, libc::MADV_DONTNEED);
        }
        let (mut byte, place) = ([0], address as u64);
        if memory.read_exact_at(&mut byte, place).is_ok() {
            // A system may forbid even this.
            let _ = memory.write_all_at(&byte, place);
        }
    }
}

/// A line of the list of mappings.
struct Mapping {
    start: usize,
    end: usize,
    is_file: bool,
    is_heap: bool,
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        // An unchanged page of a mapping that cannot be written is read from its file again.
        let is_read_only = words.next()?.starts_with("r-");
        let name = words.nth(3).unwrap_or_default();
        Some(Self {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            is_file: is_read_only && name.starts_with('/'),
            is_heap: name == "[heap]",
        })
    }

    fn is_file_with(&self, address: usize) -> bool {
        self.is_file && (self.start..self.end).contains(&address)
    }
}

impl Heap {
    /// Gives a worker its own copies of the pages that its run will write to.
    pub(crate) fn own(&self) {
        // SAFETY: this only asks where the heap ends.
        let end = unsafe { libc::sbrk(0) } as usize;
        advise(self.start, end, libc::MADV_POPULATE_WRITE);
        let here = (&raw const end) as usize;
        advise(here - STACK_BYTES, here, libc::MADV_POPULATE_WRITE);
    }
}

/// Only for advice that changes the contents of no page.
fn advise(start: usize, end: usize, advice: libc::c_int) {
    let start = start & !(PAGE_BYTES - 1);
    let length = end.saturating_sub(start);
    // SAFETY: pages of this process keep what they contain: those of a file that were not written are read again.
    unsafe { libc::madvise(start as *mut c_void, length, advice) };
}
