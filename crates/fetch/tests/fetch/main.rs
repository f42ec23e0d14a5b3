//! `tgp.fetch` through its public face, against servers on this machine's loopback interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "skipped programs are told")]

mod addresses;
mod allow_list;
mod entries;
mod limits;
mod property;
mod proxy;
mod proxy_limits;
mod proxy_tunnels;
mod redirects;
mod requests;
mod secrets;
mod server;
mod tls;
