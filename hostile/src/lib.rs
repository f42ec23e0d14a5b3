//! Attacks on the built `tgp`: each is one file below `cases/`, with the outcome that shows that it held.
//!
//! A case is loaded ([`case`], [`load`]), laid out as its own project ([`project`]), and its calls are made through
//! each of the entry points that it names ([`entry`]). What came of each step is compared with what the file expects
//! ([`judge`]); after each family the processes, descriptors, memory, temporary files and locks are compared with what
//! they were before ([`baseline`], [`endurance`]). See `README.md` for the format.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod binary;
pub mod case;
pub mod corpus;
pub mod endurance;
pub mod entry;
pub mod expected;
pub mod families;
pub mod judge;
pub mod load;
pub mod needs;
pub mod outcome;
pub mod process;
pub mod project;
pub mod report;
pub mod sandbox;
pub mod suite;
