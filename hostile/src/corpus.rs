//! The TypeScript corpus, `cases/sandbox/*.ts`: one hostile tool per file.
//!
//! The first line says how the run must end: `// expect: CODE`, or `// expect: CODE | CODE` where more than one is
//! right (which limit is met first may depend on the machine). `OK` means a run that ends well although it
//! tried something; `// result: JSON` then says with what.
//!
//! Further header lines: `// cpu: roomy` gives it so much CPU time that another limit must stop it; `// args: JSON`;
//! `// source-repeat: TEXT COUNT` writes TEXT so often at that place of the source; `// file: NAME` begins a second
//! file beside the tool.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::load::{SANDBOX, folder};

/// How a run ends that has taken too long.
const TIMEOUT: &str = "ERR_ISOLATE_TIMEOUT";

/// A hostile tool with the end that its run must have.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    /// `OK` and codes, one of which the run must end with.
    pub expected: Vec<String>,
    pub result: Option<Value>,
    pub args: Value,
    pub roomy: bool,
    /// Name and content; the first is the tool.
    files: Vec<(String, String)>,
}

impl Case {
    /// The tool's path as `exec_tool` takes it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("tools/hostile/{}.ts", self.name)
    }

    /// Whether the run only took too long for the tight limits, on a machine that stopped it for a while: then it is
    /// judged by a run with roomy ones.
    #[must_use]
    pub fn was_too_slow(&self, ending: &str) -> bool {
        !self.roomy && ending == TIMEOUT && !self.expected.iter().any(|expected| expected == TIMEOUT)
    }

    /// Name below `tools/hostile` and content of each of its files.
    #[must_use]
    pub fn files(&self) -> &[(String, String)] {
        &self.files
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let mut case = Self {
            name: name.to_owned(),
            expected: Vec::new(),
            result: None,
            args: json!({}),
            roomy: false,
            files: Vec::new(),
        };
        let mut file = (format!("{name}.ts"), String::new());
        for (number, line) in text.lines().enumerate() {
            let header = |key: &str| line.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": ");
            if number == 0 {
                let codes = header("expect").context("it must begin with `// expect: CODE`")?;
                case.expected = codes.split('|').map(|code| code.trim().to_owned()).collect();
            } else if let Some(json) = header("result") {
                case.result = Some(serde_json::from_str(json)?);
            } else if header("cpu") == Some("roomy") {
                case.roomy = true;
            } else if let Some(json) = header("args") {
                case.args = serde_json::from_str(json)?;
            } else if let Some(next) = header("file") {
                case.files.push(std::mem::replace(&mut file, (next.to_owned(), String::new())));
            } else if let Some((piece, count)) =
                header("source-repeat").and_then(|what| what.rsplit_once(' '))
            {
                file.1.push_str(&piece.repeat(count.parse()?));
            } else {
                file.1.push_str(line);
                file.1.push('\n');
            }
        }
        case.files.push(file);
        Ok(case)
    }
}

/// Every case, sorted by name.
///
/// # Errors
/// When a file is wrong.
pub fn all() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder().join(SANDBOX))? {
        cases.push(read(&entry?.path())?);
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn read(path: &Path) -> Result<Case> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Case::parse(&name, &fs::read_to_string(path)?).with_context(|| path.display().to_string())
}
