//! A hundred popular packages, each in a small tool, under the default limits. `tests/packages/list.txt` is the list.
//!
//! `TGP_TEST_PACKAGE_LIST` names a directory whose `node_modules` has them, as `cargo xtask with-databases` installs it;
//! without it the tests say so and pass. A package that npm could not install is skipped in one line.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tgp::contract::ToolResult;

use crate::support::{Project, exec, result};

const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packages/list.txt");

/// How many of the list have to work, or be excluded because they make code from text.
const LEAST: usize = 90;

/// How many tools are tried at a time.
const PARALLEL: usize = 2;

/// One entry of the list.
struct Case {
    package: String,
    /// What it needs beside itself.
    others: Vec<String>,
    /// Why it is not expected to work.
    excluded: Option<String>,
    source: String,
    /// The result as JSON, or a part of the error.
    expected: String,
}

fn list() -> Vec<Case> {
    let text = std::fs::read_to_string(LIST).unwrap();
    text.split("\n=== ").skip(1).map(case).collect()
}

fn case(entry: &str) -> Case {
    let (header, rest) = entry.split_once('\n').expect("an entry has a header and a tool");
    let (source, expected) = rest.trim_end().rsplit_once("\n--> ").expect("an entry ends with a result");
    let (named, excluded) = match header.split_once(" (") {
        Some((named, reason)) => (named, Some(reason.trim_end_matches(')').to_owned())),
        None => (header, None),
    };
    let name_of = |word: &str| {
        let (name, _) = word.rsplit_once('@').unwrap_or_else(|| panic!("`{word}` has no version"));
        name.to_owned()
    };
    let mut packages = named.split_whitespace().map(name_of);
    let package = packages.next().expect("an entry names a package");
    let (source, expected) = (source.to_owned(), expected.to_owned());
    Case { package, others: packages.collect(), excluded, source, expected }
}

/// A project with the packages of the list and the default limits, or nothing when this machine has none.
fn project(test: &str) -> Option<Project> {
    let Some(directory) = std::env::var_os("TGP_TEST_PACKAGE_LIST") else {
        println!("skipped: {test}: TGP_TEST_PACKAGE_LIST is not set");
        return None;
    };
    let project = Project::new();
    symlink(PathBuf::from(directory).join("node_modules"), project.file("node_modules")).unwrap();
    let cases = list();
    let names: Vec<&String> =
        cases.iter().flat_map(|case| case.others.iter().chain([&case.package])).collect();
    project.put("tgp.config.json", &json!({ "allowedImports": names }).to_string());
    Some(project)
}

fn is_installed(project: &Project, package: &str) -> bool {
    let found = project.file("node_modules").join(package).join("package.json").is_file();
    if !found {
        println!("skipped: {package}: npm could not install it");
    }
    found
}

fn failure(case: &Case, answer: &ToolResult) -> Option<String> {
    let told = match (answer, &case.excluded) {
        (ToolResult::Done(data), None) => {
            let expected: Value = serde_json::from_str(&case.expected).expect("the expected result is JSON");
            if data["result"] == expected {
                return None;
            }
            data["result"].to_string()
        }
        (ToolResult::Failed(error), Some(_)) if error.message.contains(&case.expected) => return None,
        (ToolResult::Done(data), Some(_)) => format!("it works: {}", data["result"]),
        (ToolResult::Failed(error), _) => format!("{error} {:?}", error.details.get("stack")),
    };
    Some(format!("{}: {told}, expected {}", case.package, case.expected))
}

#[test]
fn the_list_has_a_hundred_packages_of_which_ninety_work_or_make_code_from_text() {
    let cases = list();
    assert_eq!(cases.len(), 100);
    let mut names: Vec<&String> = cases.iter().map(|case| &case.package).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 100, "no package twice");
    let counts = |case: &&Case| {
        case.excluded.as_ref().is_none_or(|reason| reason.starts_with("excluded: code from text"))
    };
    assert!(cases.iter().filter(counts).count() >= LEAST);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn popular_packages_work_under_the_default_limits() {
    let Some(project) = project("popular packages") else { return };
    let kernel = project.boot().await.unwrap();
    let cases = list();
    let installed = cases.iter().enumerate().filter(|(_, case)| is_installed(&project, &case.package));
    let failures: Vec<String> = stream::iter(installed)
        .map(|(number, case)| {
            let (name, kernel) = (format!("p{number}.ts"), &kernel);
            project.tool(&name, &case.source);
            async move { failure(case, &exec(kernel, &format!("tools/{name}"), json!({})).await) }
        })
        .buffered(PARALLEL)
        .filter_map(|failure| async { failure })
        .collect()
        .await;
    assert!(failures.is_empty(), "{} packages fail:\n{}", failures.len(), failures.join("\n"));
    kernel.shutdown().await;
}

/// What a tool makes with packages is a file that other programs read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_saves_a_spreadsheet_and_a_pdf_file() {
    let Some(project) = project("spreadsheets and PDF files") else { return };
    if !["xlsx", "pdf-lib", "fflate"].iter().all(|package| is_installed(&project, package)) {
        return;
    }
    let kernel = project.boot().await.unwrap();
    project.tool(
        "office.ts",
        "import * as XLSX from 'xlsx';
        import { PDFDocument, StandardFonts } from 'pdf-lib';
        import { unzipSync, strFromU8 } from 'fflate';
        export default async () => {
            const book = XLSX.utils.book_new();
            const rows = [{ sku: 'Gr\\u00f6\\u00dfe', qty: 2 }, { sku: 'b', qty: 40 }];
            XLSX.utils.book_append_sheet(book, XLSX.utils.json_to_sheet(rows), 'Orders');
            await tgp.write_file('tmp/orders.xlsx', XLSX.write(book, { type: 'array', bookType: 'xlsx', compression: true }));
            const document = await PDFDocument.create();
            const font = await document.embedFont(StandardFonts.Helvetica);
            document.addPage([300, 200]).drawText('Invoice 42', { x: 20, y: 150, size: 18, font });
            await tgp.write_file('tmp/invoice.pdf', await document.save({ useObjectStreams: false }));
            const again = XLSX.read(await tgp.read_file('tmp/orders.xlsx', 'bytes'));
            const parts = unzipSync(await tgp.read_file('tmp/orders.xlsx', 'bytes'));
            return [XLSX.utils.sheet_to_json(again.Sheets.Orders), strFromU8(parts['[Content_Types].xml']).slice(0, 5)];
        };",
    );
    let answer = exec(&kernel, "tools/office.ts", json!({})).await;
    assert_eq!(result(&answer), json!([[{ "sku": "Größe", "qty": 2 }, { "sku": "b", "qty": 40 }], "<?xml"]));
    let pdf = std::fs::read(project.file("tmp/invoice.pdf")).unwrap();
    assert!(pdf.starts_with(b"%PDF-") && pdf.trim_ascii_end().ends_with(b"%%EOF"));
    // The place that the trailer names has the table of the file's objects.
    let text = String::from_utf8_lossy(&pdf);
    let start = text.rsplit("startxref").next().and_then(|rest| rest.split_whitespace().next()).unwrap();
    assert!(pdf[start.parse::<usize>().unwrap()..].starts_with(b"xref"), "startxref {start}");
    let xlsx = project.file("tmp/orders.xlsx");
    assert!(std::fs::read(&xlsx).unwrap().starts_with(b"PK\x03\x04"));
    let script = "import sys, zipfile\nbook = zipfile.ZipFile(sys.argv[1])\nassert book.testzip() is None\n\
                  text = book.read('xl/sharedStrings.xml').decode() if 'xl/sharedStrings.xml' in book.namelist() else ''\n\
                  print('Größe' in text + book.read('xl/worksheets/sheet1.xml').decode())";
    match Command::new("python3").arg("-c").arg(script).arg(&xlsx).env("PYTHONIOENCODING", "utf-8").output() {
        Ok(read) => assert_eq!(String::from_utf8_lossy(&read.stdout), "True\n", "{read:?}"),
        Err(_) => println!("skipped: reading the spreadsheet with Python: python3 cannot be started"),
    }
    kernel.shutdown().await;
}
