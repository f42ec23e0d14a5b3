//! Relocations in their short form, where the loader of this machine knows it: a program of this size has a hundred
//! thousand, and both the kernel and its worker read all of them at their start.

use std::process::Command;

/// The first glibc whose loader knows the short form.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let knows = match variable("CARGO_CFG_TARGET_ENV").as_str() {
        // A program for another machine may meet another loader.
        "gnu" => variable("HOST") == variable("TARGET") && glibc().is_some_and(|version| version >= FIRST),
        // A static program has its own. Linkers for other processors differ in what they understand.
        "musl" => variable("HOST").split('-').next() == variable("TARGET").split('-').next(),
        _ => false,
    };
    if knows {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The C library of this machine, by its major and minor version.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
