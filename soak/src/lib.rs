//! A soak test of the built `tgp`: mixed load on projects that share a small disk, random kills and a disk that fills
//! up, and then the check that everything which was reported agrees with what is there.
//!
//! [`run`] does all of it: it makes the disk ([`disk`]) and the projects ([`site`]), starts the actors of [`load`] and
//! [`chaos`], records what was reported to them ([`ledger`]), and compares at the end ([`verify`]). See `README.md`.
#![forbid(unsafe_code)]

pub mod chaos;
pub mod disk;
pub mod ledger;
pub mod load;
pub mod plan;
pub mod program;
pub mod report;
pub mod run;
pub mod server;
pub mod site;
pub mod verify;
