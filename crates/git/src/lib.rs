//! The tool repository: hydrate, persist, rebase, pull requests.
#![forbid(unsafe_code)]
