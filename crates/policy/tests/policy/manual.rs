//! Every piece of YAML on the page about policies is right, and its lists are those of the code.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tgp_contract::{Effect, Root, TddMode, TddState};
use tgp_policy::{Policy, PolicySettings, PolicyTool, ToolCatalogue, protected};

use crate::support::{path, source, statement, written};

/// The tools that the page names.
struct Tools;

impl ToolCatalogue for Tools {
    fn look_up(&self, tool: &str, arguments: &Value) -> Option<PolicyTool> {
        let text = |name: &str| arguments[name].as_str();
        let (effect, targets) = match tool {
            "fs_write" => (Effect::Write, vec![written(text("path")?)]),
            "exec_sql" => {
                let verb = text("sql")?.split(' ').next()?.to_lowercase();
                (Effect::Write, vec![statement(text("sql")?, &[&verb])])
            }
            "fetch" => (Effect::Network, Vec::new()),
            _ => return None,
        };
        Some(PolicyTool { name: tool.to_owned(), aliases: Vec::new(), effect, targets })
    }
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md")).unwrap()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// A piece of YAML as a whole file.
fn completed(block: &str) -> String {
    let rule = "version: 1\nrules:\n  - id: r\n    effect: deny\n";
    match block.split(':').next().unwrap() {
        "version" => block.to_owned(),
        "sequences" => format!("version: 1\n{block}"),
        "where" => format!("{rule}{}", indented(block)),
        "match" => format!("{rule}    tools: [exec_sql, deploy]\n{}", indented(block)),
        other => panic!("a piece that begins with `{other}`"),
    }
}

#[test]
fn the_yaml_of_the_manual_loads() {
    let page = page();
    let mut blocks: Vec<String> =
        page.split("```yaml\n").skip(1).map(|rest| completed(rest.split("```").next().unwrap())).collect();
    let typed: String = page
        .lines()
        .skip_while(|line| !line.contains("cat > tgp.policy.yaml"))
        .skip(1)
        .map_while(|line| line.strip_prefix("> ").filter(|line| *line != "EOF"))
        .map(|line| format!("{line}\n"))
        .collect();
    blocks.push(typed);
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        let loaded = Policy::load_with(&[source("page.yaml", &block)], &PolicySettings::default(), &Tools);
        if let Err(error) = loaded {
            panic!("{:#?}\n{block}", error.problems().collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_lists_of_the_manual_are_complete() {
    let page = page();
    let words = TddMode::ALL.iter().map(|mode| mode.as_str());
    for word in words.chain(TddState::ALL.iter().map(|state| state.as_str())) {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
    // Each file that the row on credentials names is protected.
    let row = page.lines().find(|line| line.starts_with("| `builtin/credentials`")).unwrap();
    let named: Vec<&str> = row.split('`').skip(3).step_by(2).collect();
    assert!(named.len() > 30, "{named:?}");
    for name in named {
        let shared = [".env.example", ".sample", ".template"].contains(&name);
        let file = name.replace('*', "x").trim_end_matches('/').to_owned();
        let found = protected(Root::Project, &path(&file)).map(|protection| protection.rule);
        assert_eq!(found, (!shared).then_some("builtin/credentials"), "{name}");
    }
}
