//! cargo-deny, where it is installed: licences, bans and sources by deny.toml. The workflow also checks advisories,
//! which need the network.

use std::path::Path;

use anyhow::Result;

use crate::run;

pub fn check(root: &Path) -> Result<()> {
    if !run::quiet("cargo-deny", &["--version"], root) {
        println!("xtask: skipped: cargo deny (install it with `cargo install cargo-deny --locked`)");
        return Ok(());
    }
    // It reads the packages of all platforms. A build here downloads only some of them.
    let has_all = run::quiet("cargo", &["fetch", "--locked", "--offline", "--quiet"], root);
    let offline: &[&str] = if has_all { &["--offline"] } else { &[] };
    let arguments = [&["deny", "--locked"], offline, &["check", "licenses", "bans", "sources"]].concat();
    run::cargo(root, &arguments, &[])
}
