//! The caller's arguments, environment and name in the processes that are copies of it.
//!
//! The supervisor of a jailed program and the first process of its pid namespace are forks of the kernel that never
//! execute anything. Every process may read the arguments and the name of another one, and in the arguments of the
//! kernel is a token or a task.
#![expect(unsafe_code, reason = "the arguments and the environment are in raw memory")]

use std::io;
use std::ops::Range;

use nix::errno::Errno;
use nix::sys::prctl;

use crate::JailError;

/// Arguments and environment are no longer than this together, on a system with its largest stack.
const MOST_BYTES: usize = 8 << 20;

/// The name of the copies.
const NAME: &std::ffi::CStr = c"tgp-jail";

/// The places of arguments and environment in memory.
#[derive(Clone, Debug)]
pub(crate) struct CallerText {
    arguments: Range<usize>,
    environment: Range<usize>,
}

impl CallerText {
    /// Asks the system where they are. What cannot be found cannot be erased, so nothing may be started then.
    pub(crate) fn find() -> Result<Self, JailError> {
        let refused = |source| JailError::Refused { step: "find its own arguments", source };
        let text = std::fs::read_to_string("/proc/self/stat").map_err(refused)?;
        Self::parse(&text).ok_or_else(|| refused(io::ErrorKind::InvalidData.into()))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name of the program, in parentheses, may hold anything. The third field follows it.
        let (_, fields) = text.rsplit_once(')')?;
        let mut fields = fields.split_whitespace().skip(45).map(str::parse::<usize>);
        let mut range = || {
            let (start, end) = (fields.next()?.ok()?, fields.next()?.ok()?);
            (start != 0 && start <= end && end - start <= MOST_BYTES).then_some(start..end)
        };
        Some(Self { arguments: range()?, environment: range()? })
    }

    /// Before the copies exist, so that the program cannot be faster. System calls and writes to memory only.
    pub(crate) fn erase_what_all_may_read(&self) -> Result<(), Errno> {
        erase(&self.arguments);
        prctl::set_name(NAME)
    }

    /// For the copies alone: the program may still inherit the variables. The copies cannot be traced, and so no other
    /// process may read them, so this is a second lock.
    pub(crate) fn erase_environment(&self) {
        erase(&self.environment);
    }
}

fn erase(range: &Range<usize>) {
    // SAFETY: the kernel has laid the text there, in pages of the stack that can be written and are there as long as the
    // process. This copy of them is ours alone, and nothing reads them in it any more.
    unsafe { std::ptr::write_bytes(range.start as *mut u8, 0, range.len()) };
}

#[cfg(test)]
mod tests {
    use super::CallerText;

    #[test]
    fn the_places_are_found_behind_any_name() {
        let text = std::fs::read_to_string("/proc/self/stat").unwrap();
        let (_, fields) = text.rsplit_once(')').unwrap();
        let text = CallerText::parse(&format!("7 (a) b (c)){fields}")).unwrap();
        // Where the system lays things out so, these may be places as well.
        let other = CallerText::parse(&format!("7 (a) b (c{fields}"));
        let is_other = other.is_none_or(|other| other.arguments != text.arguments);
        assert!(is_other, "without the last parenthesis of the name the fields are others");
        // SAFETY: the range is that of this process.
        let argument = unsafe { std::ffi::CStr::from_ptr(text.arguments.start as *const libc::c_char) };
        assert_eq!(argument.to_str().ok(), std::env::args().next().as_deref());
        assert!(!text.environment.is_empty());
        assert!(CallerText::parse("7 (a) S 1 2 3").is_none());
    }
}
