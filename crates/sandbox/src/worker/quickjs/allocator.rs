//! A counting allocator: the heap cap is enforced where memory is handed out, and crossing it leaves a mark that
//! no `catch` in the tool can wipe.

use std::cell::Cell;
use std::rc::Rc;

use rquickjs::allocator::Allocator;

/// After the cap was crossed only pieces of this size are given out. A tool that catches the error and goes on gets
/// nothing that takes time to fill, so the engine soon comes to its next check and stops it.
const LAST_BYTES: usize = 4096;

/// What the engine has allocated. Shared between the allocator and the run that reads it.
#[derive(Debug)]
pub(in crate::worker) struct HeapMeter {
    used: Cell<usize>,
    peak: Cell<usize>,
    limit: Cell<usize>,
    exceeded: Cell<bool>,
}

impl HeapMeter {
    pub(in crate::worker) fn new(limit: usize) -> Rc<Self> {
        Rc::new(Self {
            used: Cell::new(0),
            peak: Cell::new(0),
            limit: Cell::new(limit),
            exceeded: Cell::new(false),
        })
    }

    /// A run may ask for less than its worker was made for, never for more.
    pub(in crate::worker) fn lower_limit(&self, limit: usize) {
        self.limit.set(self.limit.get().min(limit));
    }

    pub(in crate::worker) fn exceeded(&self) -> bool {
        self.exceeded.get()
    }

    pub(in crate::worker) fn peak(&self) -> usize {
        self.peak.get()
    }

    fn admits(&self, more: usize) -> bool {
        let fits = self.used.get().checked_add(more).is_some_and(|total| total <= self.limit.get())
            && (more <= LAST_BYTES || !self.exceeded.get());
        if !fits {
            self.exceeded.set(true);
        }
        fits
    }

    fn add(&self, bytes: usize) {
        let used = self.used.get().saturating_add(bytes);
        self.used.set(used);
        if used > self.peak.get() {
            self.peak.set(used);
        }
    }

    fn subtract(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}

pub(in crate::worker) struct CountingAllocator(pub(in crate::worker) Rc<HeapMeter>);

fn usable(pointer: *mut u8) -> usize {
    // SAFETY: every pointer that reaches this comes from the malloc family below and is still allocated.
    unsafe { crate::os::usable_size(pointer) }
}

// SAFETY: all functions hand the work to the C library's allocator, which meets the trait's terms on size and
// alignment; null is returned when the cap is reached.
unsafe impl Allocator for CountingAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.admits(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: malloc has no precondition.
        let pointer: *mut u8 = unsafe { libc::malloc(size) }.cast();
        if !pointer.is_null() {
            self.0.add(usable(pointer));
        }
        pointer
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(total) = count.checked_mul(size) else {
            self.0.exceeded.set(true);
            return std::ptr::null_mut();
        };
        if !self.0.admits(total) {
            return std::ptr::null_mut();
        }
        // SAFETY: calloc has no precondition.
        let pointer: *mut u8 = unsafe { libc::calloc(count, size) }.cast();
        if !pointer.is_null() {
            self.0.add(usable(pointer));
        }
        pointer
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        if pointer.is_null() {
            return;
        }
        self.0.subtract(usable(pointer));
        // SAFETY: the trait's contract says the pointer came from this allocator.
        unsafe { libc::free(pointer.cast()) };
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        let old_size = if pointer.is_null() { 0 } else { usable(pointer) };
        if new_size > old_size && !self.0.admits(new_size - old_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the trait's contract says the pointer came from this allocator.
        let moved: *mut u8 = unsafe { libc::realloc(pointer.cast(), new_size) }.cast();
        if !moved.is_null() {
            self.0.subtract(old_size);
            self.0.add(usable(moved));
        }
        moved
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        usable(pointer)
    }
}
