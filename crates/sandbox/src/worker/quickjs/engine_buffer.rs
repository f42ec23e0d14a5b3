//! A growing list in the engine's memory, so that the heap cap counts it and a lack of memory is the engine's error.

use std::ptr::NonNull;

use rquickjs::{Ctx, Error, Result, qjs};

/// Elements of the first piece of memory.
const FIRST_ELEMENTS: usize = 64;

/// Plain values, numbers and handles. It gives back its memory, and not what handles in it refer to.
pub(super) struct EngineBuffer<'js, T: Copy> {
    ctx: Ctx<'js>,
    pointer: NonNull<T>,
    length: usize,
    capacity: usize,
}

impl<'js, T: Copy> EngineBuffer<'js, T> {
    pub(super) fn new(ctx: &Ctx<'js>) -> Self {
        // The engine's memory is aligned for every type that C has.
        const { assert!(align_of::<T>() <= align_of::<u128>() && size_of::<T>() > 0) };
        Self { ctx: ctx.clone(), pointer: NonNull::dangling(), length: 0, capacity: 0 }
    }

    pub(super) fn ctx(&self) -> &Ctx<'js> {
        &self.ctx
    }

    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: the first `length` elements are written, and a buffer without memory has none.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    pub(super) fn push(&mut self, element: T) -> Result<()> {
        self.extend(std::iter::once(element))
    }

    /// Adds elements whose number is known.
    pub(super) fn extend(&mut self, elements: impl ExactSizeIterator<Item = T>) -> Result<()> {
        let more = elements.len();
        self.reserve(more)?;
        // At most as many as there is room for, whatever the iterator has said.
        for element in elements.take(more) {
            // SAFETY: `length` is below `capacity`, which is how many elements the memory has.
            unsafe { self.pointer.add(self.length).write(element) };
            self.length += 1;
        }
        Ok(())
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        let Some(needed) = self.length.checked_add(more) else { return Err(Error::Allocation) };
        if needed <= self.capacity {
            return Ok(());
        }
        let capacity = needed.max(self.capacity.saturating_mul(2)).max(FIRST_ELEMENTS);
        let Some(bytes) = capacity.checked_mul(size_of::<T>()) else { return Err(Error::Allocation) };
        let old = if self.capacity == 0 { std::ptr::null_mut() } else { self.pointer.as_ptr().cast() };
        // SAFETY: the old pointer is null or comes from this function; when memory runs out, the engine throws its
        // error and leaves the old memory as it is.
        let new = unsafe { qjs::js_realloc(self.ctx.as_raw().as_ptr(), old, bytes as qjs::size_t) };
        let Some(pointer) = NonNull::new(new.cast::<T>()) else { return Err(Error::Exception) };
        self.pointer = pointer;
        self.capacity = capacity;
        Ok(())
    }
}

impl<T: Copy> Drop for EngineBuffer<'_, T> {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: the memory comes from `reserve`, and nothing refers to it any more.
            unsafe { qjs::js_free(self.ctx.as_raw().as_ptr(), self.pointer.as_ptr().cast()) };
        }
    }
}
