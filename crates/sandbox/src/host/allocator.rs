//! The allocator of the kernel's process.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "the C library's allocator has no safe interface")
)]

/// Gives pages that hold nothing back to the system. Each thread allocates from a region of its own, so memory of large
/// values that many threads have freed otherwise stays with the process. It walks the whole heap: call it after large
/// values are gone, on a thread that may wait.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes a number, locks what it looks at, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
