//! The npm packages: `tgp` starts the program of the platform's package.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::archive::PackageFile;
use super::platform::{Libc, PLATFORMS, Platform};

/// Starts the program.
pub const LAUNCHER: &str = include_str!("tgp.js");

/// The client for programs in Node, which needs the package `tgp`.
pub const CLIENT: &str = "@tgp/core";

/// The folder that an npm archive has its files in.
pub const FOLDER: &str = "package";

const README: &str = "\
# tgp

TGP is a kernel for AI agents: an agent writes typed TypeScript tools; TGP checks them, runs each call in its own
locked process, keeps the tools in git and finds them again.

    npx tgp demo

This package starts the program `tgp`, which is in a package of your platform (`@tgp/linux-x64`, `@tgp/linux-arm64`,
`@tgp/darwin-arm64`). `@tgp/core` is the client for programs.
";

/// The name of the archive, as `npm pack` gives it.
pub fn file_name(package: &str, version: &str) -> String {
    format!("{}-{version}.tgz", package.trim_start_matches('@').replace('/', "-"))
}

/// The package that users name. npm puts the manual page where `man` finds it, in a global installation.
pub fn main_package(version: &str, licence: &str, manual: Option<&PackageFile>) -> Vec<PackageFile> {
    let packages: Map<String, Value> =
        PLATFORMS.iter().map(|platform| (platform.npm_package(), json!(version))).collect();
    let mut manifest = json!({
        "name": "tgp",
        "version": version,
        "description": "A kernel for AI agents: typed tools, gates, one audit record per call",
        "license": "MIT",
        "bin": { "tgp": "bin/tgp.js" },
        "files": ["bin/tgp.js"],
        "engines": { "node": ">=18" },
        "optionalDependencies": packages,
    });
    if let (Some(manual), Some(fields)) = (manual, manifest.as_object_mut()) {
        fields.insert("man".to_owned(), json!([manual.path]));
        fields.insert("files".to_owned(), json!(["bin/tgp.js", manual.path]));
    }
    let launcher = LAUNCHER.as_bytes().into();
    let mut files = vec![
        PackageFile::text("package.json", pretty(&manifest)),
        PackageFile::program("bin/tgp.js", &launcher),
        PackageFile::text("README.md", README),
        PackageFile::text("LICENSE", licence),
    ];
    files.extend(manual.cloned());
    files
}

/// The package with the program of one platform.
pub fn platform_package(
    platform: &Platform,
    version: &str,
    program: &Rc<[u8]>,
    documents: &[PackageFile],
) -> Vec<PackageFile> {
    let name = platform.npm_package();
    let mut manifest = json!({
        "name": name,
        "version": version,
        "description": format!("The program of `tgp` for {} on {}", platform.os, platform.cpu),
        "license": "MIT",
        "os": [platform.os],
        "cpu": [platform.cpu],
        // A program within an archive cannot be started.
        "preferUnplugged": true,
    });
    if platform.libc == Libc::Glibc
        && let Some(fields) = manifest.as_object_mut()
    {
        fields.insert("libc".to_owned(), json!(["glibc"]));
    }
    let readme = format!("# {name}\n\nThe program of the npm package `tgp`, which starts it.\n");
    let mut files = vec![
        PackageFile::text("package.json", pretty(&manifest)),
        PackageFile::program("bin/tgp", program),
        PackageFile::text("README.md", readme),
    ];
    files.extend_from_slice(documents);
    files
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(files: &[PackageFile]) -> Value {
        let file = files.iter().find(|file| file.path == "package.json").unwrap();
        serde_json::from_slice(&file.data).unwrap()
    }

    #[test]
    fn archives_are_named_as_npm_names_them() {
        assert_eq!(file_name("tgp", "1.2.3"), "tgp-1.2.3.tgz");
        assert_eq!(file_name("@tgp/linux-x64", "1.2.3"), "tgp-linux-x64-1.2.3.tgz");
        assert_eq!(file_name(CLIENT, "1.2.3"), "tgp-core-1.2.3.tgz");
    }

    #[test]
    fn the_main_package_names_every_platform_once() {
        let files = main_package("1.2.3", "text", None);
        assert_eq!(manifest(&files).get("man"), None);
        let packages =
            json!({ "@tgp/linux-x64": "1.2.3", "@tgp/linux-arm64": "1.2.3", "@tgp/darwin-arm64": "1.2.3" });
        assert_eq!(manifest(&files).get("optionalDependencies"), Some(&packages));
        assert!(files.iter().any(|file| file.path == "bin/tgp.js" && file.is_program));
    }

    #[test]
    fn a_platform_package_is_for_its_platform() {
        let program: Rc<[u8]> = Rc::from(*b"program");
        let of = |target| {
            let platform = Platform::of_target(target).unwrap();
            manifest(&platform_package(platform, "1.2.3", &program, &[]))
        };
        let musl = of("aarch64-unknown-linux-musl");
        assert_eq!(musl.get("name").unwrap(), "@tgp/linux-arm64");
        assert_eq!(musl.get("cpu").unwrap(), &json!(["arm64"]));
        assert_eq!(musl.get("libc"), None);
        assert_eq!(of("x86_64-unknown-linux-gnu").get("libc"), Some(&json!(["glibc"])));
    }
}
