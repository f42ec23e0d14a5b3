//! The chain of causes of an error.

use std::error::Error;
use std::io;

/// The error and its causes, outermost first.
///
/// An `io::Error` does not count the error that it carries among its sources; here it is followed like every other.
pub fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&cause| {
        let carried = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        carried.map(|inner| inner as &(dyn Error + 'static)).or_else(|| cause.source())
    })
}

/// The message of the innermost cause. The outer layers of an HTTP error only repeat the URL, which can hold a key.
#[must_use]
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}
