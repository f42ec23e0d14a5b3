//! What the measurements and the fitting of the search share.
#![forbid(unsafe_code)]

pub mod training;
