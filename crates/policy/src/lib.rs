//! What may happen: built-in rules, rules of files, sequence rules, and tokens that narrow them further.
#![forbid(unsafe_code)]
