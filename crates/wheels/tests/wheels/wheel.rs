//! Wheels that an index sends, and what is refused in them before a file is unpacked.

use proptest::prelude::*;
use tgp_wheels::WheelError;

use crate::support::{Builder, archive, open, patched};

fn shop() -> Builder {
    Builder::new("shop", "1.0").file("shop/__init__.py", "x = 1\n").file("shop/data.txt", "some data\n")
}

#[track_caller]
fn refused(builder: &Builder, expected: &str) {
    refused_bytes(&builder.bytes(), &builder.file_name(), expected);
}

#[track_caller]
fn refused_bytes(bytes: &[u8], file_name: &str, expected: &str) {
    let error = match open(bytes, file_name) {
        Ok(_) => panic!("it was accepted; expected: {expected}"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains(expected), "{error}; expected: {expected}");
}

#[test]
fn a_wheel_says_what_it_is() {
    let wheel = shop()
        .header("Requires-Python: >=3.8")
        .header("Requires-Dist: six (>=1.0) ; extra == 'x'")
        .header("Requires-Dist: attrs")
        .open()
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((wheel.name().as_str(), wheel.version().to_string().as_str()), ("shop", "1.0"));
    assert_eq!(wheel.requires(), ["six (>=1.0) ; extra == 'x'", "attrs"]);
    assert!(wheel.requires_python().unwrap().contains(&"3.9".parse().unwrap()));
    assert_eq!(wheel.checksum().len(), 64);
}

#[test]
fn names_of_files_and_metadata_agree() {
    let bytes = shop().bytes();
    for name in [
        "shop.whl",
        "shop-1.0.zip",
        "shop-1.0-py3-none.whl",
        "shop-1.0-x-py3-none-any.whl",
        "-1.0-py3-none-any.whl",
        "shop--py3-none-any.whl",
        "../shop-1.0-py3-none-any.whl",
        "shop-1.0-py3-none-any.whl\n",
        "sh/op-1.0-py3-none-any.whl",
        "shop-one-py3-none-any.whl",
        "shop-1.0-py3-none-any-a-b.whl",
    ] {
        refused_bytes(&bytes, name, "invalid file name");
    }
    open(&bytes, "Shop-1.0-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
        .map(|_| ())
        .unwrap();
    refused_bytes(&bytes, "other-1.0-py3-none-any.whl", "another package");
    refused_bytes(&bytes, "shop-2.0-py3-none-any.whl", "another package");
    for metadata in [
        "Name: other\nVersion: 1.0\n\n",
        "Name: shop\nVersion: 2.0\n\n",
        "Name: shop\n\n",
        "Version: 1.0\n\n",
        "",
        "Name: shop\nName: shop\nVersion: 1.0\n\n",
        "Name: shop\nVersion: 1.0\nVersion: 1.0\n\n",
        "\nName: shop\nVersion: 1.0\n",
        "Name: sh op\nVersion: 1.0\n\n",
        // pip reads another line, or the end, where these are.
        "Name: shop\nVersion: 1.0\nSummary: x\rRequires-Dist: evil @ file:///project/evil.whl\n\n",
        "Name: shop\nVersion: 1.0\nSummary: x\u{b}y\n\n",
        "Name: shop\nVersion: 1.0\nno colon\nRequires-Dist: x\n\n",
        "Name: shop\nVersion: 1.0\nRequires-Dist : x\n\n",
        " Name: shop\nName: shop\nVersion: 1.0\n\n",
    ] {
        refused(&Builder { metadata: Some(metadata.to_owned()), ..shop() }, "metadata");
    }
    for wheel in ["", "Wheel-Version: 2.0\n", "Wheel-Version: 11.0\n"] {
        refused(&Builder { wheel: wheel.to_owned(), ..shop() }, "format is unknown");
    }
    refused(&shop().file("other-1.0.dist-info/METADATA", "x"), "more than one");
    refused_bytes(
        &archive(&[("a.py".to_owned(), Vec::new(), 0o644)]),
        "shop-1.0-py3-none-any.whl",
        "no `.dist-info`",
    );
}

#[test]
fn bug_an_address_in_the_dependencies_of_a_wheel_was_built() {
    for address in [
        "evil @ https://example.org/evil-1.0.tar.gz",
        "evil@https://example.org/evil.zip",
        "evil @ file:///tmp/evil",
        "evil[x] @ git+https://example.org/evil ; os_name == 'posix'",
        "evil @ ../evil",
        "evil (https://example.org/evil)",
    ] {
        refused(&shop().header(&format!("Requires-Dist: {address}")), "depends on an address");
        // A value may go on in the next line.
        let (name, rest) = address.split_once(['@', ' ']).unwrap();
        let folded = format!(
            "Requires-Dist: {name}\n  {}",
            if rest.contains('@') { rest.to_owned() } else { format!("@{rest}") }
        );
        refused(&shop().header(&folded), "depends on an address");
    }
}

#[test]
fn every_file_is_listed_with_a_checksum() {
    let good = |path: &str| format!("{path},sha256={},1\n", "A".repeat(43));
    let all: String =
        ["shop/__init__.py", "shop/data.txt", "shop-1.0.dist-info/METADATA", "shop-1.0.dist-info/WHEEL"]
            .iter()
            .map(|path| good(path))
            .collect();
    // The contents are compared when they are unpacked.
    Builder { record: Some(all.clone()), ..shop() }.open().map(|_| ()).unwrap();
    for (record, expected) in [
        (String::new(), "is not listed"),
        (all.replace(&good("shop/data.txt"), ""), "`shop/data.txt` is not listed"),
        (all.replace(&good("shop/data.txt"), "shop/data.txt,,\n"), "has no checksum"),
        (all.replace(&good("shop/data.txt"), "shop/data.txt,md5=AAAA,1\n"), "no checksum of SHA-256"),
        (all.replace(&good("shop/data.txt"), "shop/data.txt,sha256=AAAA,1\n"), "no checksum of SHA-256"),
        (format!("{all}{}", good("shop/more.txt")), "is not there"),
        (format!("{all}{}", good("../outside")), "is not there"),
        (format!("{all}{}", good("shop/data.txt")), "is there twice"),
        (format!("{all},,\n"), "has no path"),
    ] {
        refused(&Builder { record: Some(record), ..shop() }, expected);
    }
}

#[test]
fn bug_a_large_list_of_files_took_gigabytes() {
    let rows: String = (0..500_000).map(|at| format!("{at},,\n")).collect();
    refused(&Builder { record: Some(rows), ..shop() }, "bytes of METADATA, WHEEL, RECORD");
    let rows: String = (0..200_000).map(|at| format!("{at},,\n")).collect();
    refused(&Builder { record: Some(rows), ..shop() }, "more than 40000 rows");
    let metadata = format!("Name: shop\nVersion: 1.0\n{}", "X: y\n".repeat(1 << 20));
    refused(&Builder { metadata: Some(metadata), ..shop() }, "bytes of METADATA");
    let requires = "Requires-Dist: six\n".repeat(6000);
    refused(&shop().header(&requires), "number of dependencies");
}

#[test]
fn entries_are_plain_files_at_plain_places() {
    for path in [
        "/absolute",
        "../outside",
        "shop/../../outside",
        "shop//x",
        "shop/./x",
        "shop\\x",
        "shop/new\nline",
        "shop/\u{1}",
        "shop/\u{7f}x",
        "..",
        "./x",
    ] {
        refused(&shop().file(path, "x"), "invalid entry");
    }
    refused(&shop().file(&format!("shop/{}", "a".repeat(256)), "x"), "too long name");
    refused(&shop().file("a/".repeat(40).trim_end_matches('/'), "x"), "too many directories");
    refused(&shop().file("shop/DATA.txt", "x"), "is there twice");
    refused(&shop().file("shop/data.txt/x", "x"), "a file and a directory");
    refused(&shop().file("SHOP/Data.TXT/x", "x"), "a file and a directory");
    let mut link = shop();
    link.files.push(("shop/link".to_owned(), b"/etc/passwd".to_vec(), 0o120_777));
    refused(&link, "is a link or a special file");
    // Two entries with one name, which no writer makes.
    let twice = shop().file("shop/datb.txt", "x");
    refused_bytes(&patched(&twice.bytes(), "shop/datb.txt", "shop/data.txt"), &twice.file_name(), "one name");
    // Different names in the list of entries and before the content.
    let bytes = shop().bytes();
    let at = bytes.windows(13).position(|window| window == b"shop/data.txt").unwrap();
    let mut other = bytes.clone();
    other[at..at + 13].copy_from_slice(b"shop/date.txt");
    refused_bytes(&other, "shop-1.0-py3-none-any.whl", "invalid archive");
}

#[test]
fn archives_that_say_too_much_are_refused() {
    let bytes = shop().bytes();
    let name = "shop-1.0-py3-none-any.whl";
    let end = bytes.len() - 22;
    let with = |at: usize, value: &[u8]| {
        let mut changed = bytes.clone();
        changed[end + at..end + at + value.len()].copy_from_slice(value);
        changed
    };
    refused_bytes(b"", name, "too short");
    refused_bytes(&[0; 4096], name, "does not end");
    refused_bytes(&[&bytes[..], b"x"].concat(), name, "does not end");
    refused_bytes(&[b"#!/bin/sh\n", &bytes[..]].concat(), name, "not where it says");
    refused_bytes(&with(10, &[0xff, 0xff]), name, "number of entries");
    refused_bytes(&with(10, &[1, 0]), name, "not where it says");
    refused_bytes(&with(12, &[0xff; 4]), name, "list of entries");
    refused_bytes(&with(16, &[0, 0, 0, 0]), name, "not where it says");
    refused_bytes(&with(20, &[1, 0]), name, "does not end");
    let few = with(8, &[3, 0, 3, 0]);
    refused_bytes(&few, name, "longer than it says");
    let mut many = Builder::new("shop", "1.0");
    for at in 0..20_001 {
        many.files.push((format!("f{at}"), Vec::new(), 0o644));
    }
    refused(&many, "number of entries");
}

#[test]
fn it_is_stopped_in_between() {
    use std::io::Write;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&shop().bytes()).unwrap();
    let stopped = tgp_wheels::Wheel::open(file, "shop-1.0-py3-none-any.whl", &|| true);
    assert!(matches!(stopped.map(|_| ()), Err(WheelError::Stopped)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damaged_archives_are_read_without_a_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = shop().bytes();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = open(&bytes, "shop-1.0-py3-none-any.whl");
    }
}
