//! The hostile corpus: `tests/hostile/*.ts`, one file a case.
//!
//! The first line says how the run must end: `// expect: CODE`, or `// expect: CODE | CODE` where more than one is
//! right (which limit is met first may depend on the machine). `OK` stands for a run that ends well although it
//! tried something; `// result: JSON` then says with what.
//!
//! Further header lines: `// cpu: roomy` gives it so much CPU time that another limit must stop it; `// args: JSON`; `// source-repeat: TEXT COUNT` writes TEXT so often at that place of the
//! source; `// file: NAME` begins a second file beside the tool.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::Project;

#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub expected: Vec<String>,
    pub result: Option<Value>,
    pub args: Value,
    pub roomy: bool,
    /// Name and content; the first is the tool.
    files: Vec<(String, String)>,
}

impl Case {
    /// The tool's path as `exec_tool` takes it.
    pub fn path(&self) -> String {
        format!("tools/hostile/{}.ts", self.name)
    }

    pub fn install(&self, project: &Project) {
        for (name, content) in &self.files {
            project.tool(&format!("hostile/{name}"), content);
        }
    }

    fn parse(name: &str, text: &str) -> Self {
        let mut case = Self {
            name: name.to_owned(),
            expected: Vec::new(),
            result: None,
            args: json!({}),
            roomy: false,
            files: vec![(format!("{name}.ts"), String::new())],
        };
        for (number, line) in text.lines().enumerate() {
            let header = |key: &str| line.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": ");
            if number == 0 {
                let codes =
                    header("expect").unwrap_or_else(|| panic!("{name}.ts must begin with `// expect: CODE`"));
                case.expected = codes.split('|').map(|code| code.trim().to_owned()).collect();
            } else if let Some(json) = header("result") {
                case.result = Some(serde_json::from_str(json).unwrap());
            } else if header("cpu") == Some("roomy") {
                case.roomy = true;
            } else if let Some(json) = header("args") {
                case.args = serde_json::from_str(json).unwrap();
            } else if let Some(file) = header("file") {
                case.files.push((file.to_owned(), String::new()));
            } else {
                let content = &mut case.files.last_mut().unwrap().1;
                match header("source-repeat").and_then(|what| what.rsplit_once(' ')) {
                    Some((piece, count)) => content.push_str(&piece.repeat(count.parse().unwrap())),
                    None => {
                        content.push_str(line);
                        content.push('\n');
                    }
                }
            }
        }
        case
    }
}

/// Every case, sorted by name.
pub fn all() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let mut cases: Vec<Case> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            Case::parse(&name, &std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}
