//! Mutexes whose holders leave nothing half done, so that one that panicked does not stop the others.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
