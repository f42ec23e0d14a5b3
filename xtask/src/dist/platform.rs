//! The platforms that packages are made for, and what a built program was built for.

use std::fmt::Write;

use anyhow::{Context, Result, bail};

/// A platform with packages. Both libraries of a processor share the npm package: a release has one of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    pub target: &'static str,
    /// The words of npm and of the name of the npm package.
    pub os: &'static str,
    pub cpu: &'static str,
    /// The words of wheels.
    pub machine: &'static str,
    pub libc: Libc,
}

/// The C library that a program needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libc {
    /// None: it is linked into the program.
    Static,
    Glibc,
    /// The one of macOS, which every version since the oldest supported one has.
    System,
}

pub const PLATFORMS: [Platform; 5] = [
    linux("x86_64-unknown-linux-musl", "x64", "x86_64", Libc::Static),
    linux("x86_64-unknown-linux-gnu", "x64", "x86_64", Libc::Glibc),
    linux("aarch64-unknown-linux-musl", "arm64", "aarch64", Libc::Static),
    linux("aarch64-unknown-linux-gnu", "arm64", "aarch64", Libc::Glibc),
    Platform {
        target: "aarch64-apple-darwin",
        os: "darwin",
        cpu: "arm64",
        machine: "aarch64",
        libc: Libc::System,
    },
];

/// How a Mach-O program for arm64 begins: the magic number and the processor.
const MACH_O_ARM64: &[u8] = b"\xcf\xfa\xed\xfe\x0c\0\0\x01";

const fn linux(target: &'static str, cpu: &'static str, machine: &'static str, libc: Libc) -> Platform {
    Platform { target, os: "linux", cpu, machine, libc }
}

impl Platform {
    pub fn of_target(target: &str) -> Result<&'static Self> {
        PLATFORMS.iter().find(|platform| platform.target == target).with_context(|| {
            let known = PLATFORMS.iter().map(|platform| platform.target).collect::<Vec<_>>().join(", ");
            format!("no packages are made for `{target}`: expected one of {known}")
        })
    }

    /// Whether a program of this platform runs on this machine.
    pub fn is_own(&self) -> bool {
        let os = if self.os == "darwin" { "macos" } else { self.os };
        self.machine == std::env::consts::ARCH && os == std::env::consts::OS
    }

    /// The platform of a built program, from its header and the loader that it names.
    pub fn of_program(program: &[u8]) -> Result<&'static Self> {
        if program.starts_with(MACH_O_ARM64) {
            return Self::of_target("aarch64-apple-darwin");
        }
        if !program.starts_with(b"\x7fELF") {
            bail!("not a program: it begins with neither an ELF header nor a Mach-O header for arm64");
        }
        let machine = match program.get(18..20) {
            Some([62, 0]) => "x86_64",
            Some([183, 0]) => "aarch64",
            _ => bail!("a program for a processor without packages: expected x86_64 or aarch64"),
        };
        // A linker writes the loader's path near the beginning. A static program has none.
        let start = program.get(..4096).unwrap_or(program);
        let libc = match (contains(start, b"/ld-linux"), contains(start, b"/ld-musl")) {
            (false, false) => Libc::Static,
            (true, _) => Libc::Glibc,
            (false, true) => bail!("a program that needs a shared musl library: expected a static one"),
        };
        let platform = PLATFORMS.iter().find(|platform| platform.machine == machine && platform.libc == libc);
        platform.context("a program without packages")
    }

    pub fn npm_package(&self) -> String {
        format!("@tgp/{}-{}", self.os, self.cpu)
    }

    /// The platform tags of its wheel, sorted as the file name needs them. A static program runs with either library.
    pub fn wheel_tags(&self, program: &[u8]) -> Vec<String> {
        let machine = self.machine;
        match self.libc {
            Libc::Static => vec![
                format!("manylinux2014_{machine}"),
                format!("manylinux_2_17_{machine}"),
                format!("musllinux_1_1_{machine}"),
            ],
            Libc::Glibc => vec![format!("manylinux_2_{}_{machine}", glibc_minor(program))],
            // What Rust builds for unless it is told otherwise.
            Libc::System => vec!["macosx_11_0_arm64".to_owned()],
        }
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// The newest `GLIBC_2.N` whose functions a program names, at least 17, which every supported system has.
fn glibc_minor(program: &[u8]) -> u32 {
    const PREFIX: &[u8] = b"GLIBC_2.";
    let mut newest = 17;
    for (at, _) in program.iter().enumerate().filter(|(_, byte)| **byte == b'G') {
        let Some(rest) = program.get(at..).and_then(|rest| rest.strip_prefix(PREFIX)) else { continue };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).take(3);
        let minor = digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        newest = newest.max(minor);
    }
    newest
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The beginning of a program.
    pub(in crate::dist) fn elf(machine: u8, text: &str) -> Vec<u8> {
        let mut program = b"\x7fELF".to_vec();
        program.resize(18, 0);
        program.extend([machine, 0]);
        program.extend(text.as_bytes());
        program
    }

    #[track_caller]
    fn check(machine: u8, text: &str, expected: &str) {
        let found = match Platform::of_program(&elf(machine, text)) {
            Ok(platform) => platform.target.to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_platform_is_read_from_the_program() {
        check(62, "", "x86_64-unknown-linux-musl");
        check(62, "/lib64/ld-linux-x86-64.so.2", "x86_64-unknown-linux-gnu");
        check(183, "", "aarch64-unknown-linux-musl");
        check(183, "/lib/ld-linux-aarch64.so.1", "aarch64-unknown-linux-gnu");
        check(
            62,
            "/lib/ld-musl-x86_64.so.1",
            "a program that needs a shared musl library: expected a static one",
        );
        check(3, "", "a program for a processor without packages: expected x86_64 or aarch64");
        assert!(Platform::of_program(b"#!/bin/sh").is_err());
        let darwin = Platform::of_program(b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0").unwrap();
        assert_eq!(darwin.target, "aarch64-apple-darwin");
        assert_eq!(darwin.npm_package(), "@tgp/darwin-arm64");
        assert_eq!(darwin.wheel_tags(b""), ["macosx_11_0_arm64"]);
    }

    #[test]
    fn wheels_are_tagged_by_what_the_program_needs() {
        let gnu = Platform::of_target("x86_64-unknown-linux-gnu").unwrap();
        assert_eq!(gnu.wheel_tags(b"..GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4"), ["manylinux_2_34_x86_64"]);
        assert_eq!(gnu.wheel_tags(b""), ["manylinux_2_17_x86_64"]);
        let musl = Platform::of_target("aarch64-unknown-linux-musl").unwrap();
        let tags = musl.wheel_tags(b"");
        assert_eq!(tags, ["manylinux2014_aarch64", "manylinux_2_17_aarch64", "musllinux_1_1_aarch64"]);
    }

    #[test]
    fn an_unknown_target_is_refused() {
        let error = Platform::of_target("riscv64gc-unknown-linux-gnu").unwrap_err().to_string();
        assert!(error.starts_with("no packages are made for `riscv64gc-unknown-linux-gnu`"), "{error}");
    }
}
