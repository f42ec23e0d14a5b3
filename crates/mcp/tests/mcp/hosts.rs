//! The server in the configuration files of hosts: what was there stays, and goes back to what it was.

use tgp_mcp::install::{Host, Scope, ServerEntry, with_server, without_server};

const FIXTURES: [(Host, &str); 6] = [
    (Host::ClaudeCode, include_str!("fixtures/claude.json")),
    (Host::Codex, include_str!("fixtures/codex.toml")),
    (Host::Cursor, include_str!("fixtures/cursor.json")),
    (Host::VsCode, include_str!("fixtures/vscode.json")),
    (Host::Zed, include_str!("fixtures/zed.json")),
    (Host::Gemini, include_str!("fixtures/gemini.json")),
];

fn entry(argument: &str) -> ServerEntry {
    ServerEntry {
        name: "tgp".to_owned(),
        command: "/usr/bin/tgp".to_owned(),
        arguments: vec!["-C".to_owned(), argument.to_owned(), "mcp".to_owned()],
    }
}

#[test]
fn an_installation_adds_lines_and_changes_none() {
    for (host, before) in FIXTURES {
        let after = with_server(host, before, &entry("/srv/\"a\"\\b")).unwrap();
        assert!(after.contains("/usr/bin/tgp"), "{host:?}: {after}");
        // Every line of the file is still there, in its order; at most a comma was added to one.
        let mut rest = after.lines();
        for line in before.lines() {
            let comma = |text: &str| text.trim_end().trim_end_matches(',').to_owned();
            let is_same = |other: &str| other == line || comma(other) == comma(line);
            // An object on one line is opened for its new field.
            let is_opened =
                |other: &str| line.contains("{}") && other.starts_with(line.trim_end_matches("{}"));
            let with_comment = |other: &str| {
                let plain = |text: &str| text.replace([',', ' '], "");
                plain(other) == plain(line)
            };
            let found = rest.any(|other| is_same(other) || is_opened(other) || with_comment(other));
            assert!(found, "{host:?}: `{line}` is gone:\n{after}");
        }
    }
}

#[test]
fn the_entry_is_what_the_host_reads() {
    let expected = [
        (Host::ClaudeCode, "mcpServers", Some(("type", "stdio"))),
        (Host::Cursor, "mcpServers", None),
        (Host::VsCode, "servers", Some(("type", "stdio"))),
        (Host::Zed, "context_servers", Some(("source", "custom"))),
        (Host::Gemini, "mcpServers", None),
    ];
    for (host, field, extra) in expected {
        let text = with_server(host, "", &entry("/srv/a")).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let server = &value[field]["tgp"];
        assert_eq!(server["command"], "/usr/bin/tgp", "{host:?}: {text}");
        assert_eq!(server["args"], serde_json::json!(["-C", "/srv/a", "mcp"]));
        if let Some((name, text)) = extra {
            assert_eq!(server[name], text);
        }
    }
    let text = with_server(Host::Codex, "", &entry("/srv/a")).unwrap();
    assert_eq!(text, "[mcp_servers.tgp]\ncommand = \"/usr/bin/tgp\"\nargs = [\"-C\", \"/srv/a\", \"mcp\"]\n");
}

#[test]
fn a_second_installation_replaces_the_entry() {
    for (host, before) in FIXTURES {
        let first = with_server(host, before, &entry("/srv/first")).unwrap();
        let second = with_server(host, &first, &entry("/srv/second")).unwrap();
        assert!(second.contains("/srv/second") && !second.contains("/srv/first"), "{host:?}: {second}");
        assert_eq!(with_server(host, &second, &entry("/srv/second")).unwrap(), second, "{host:?}");
    }
}

#[test]
fn a_removal_leaves_everything_else() {
    for (host, before) in FIXTURES {
        assert_eq!(without_server(host, before, "tgp").unwrap(), None, "{host:?}");
        let installed = with_server(host, before, &entry("/srv/a")).unwrap();
        let removed = without_server(host, &installed, "tgp").unwrap().unwrap();
        assert!(!removed.contains("/usr/bin/tgp"), "{host:?}: {removed}");
        // Comments stay, also on a line that got a comma.
        for comment in before.lines().filter_map(|line| line.find(['#', '/']).and_then(|at| line.get(at..))) {
            assert!(removed.contains(comment), "{host:?}: `{comment}` is gone:\n{removed}");
        }
    }
}

#[test]
fn a_file_that_is_no_configuration_is_not_touched() {
    for (host, wrong) in [
        (Host::Cursor, "{ \"mcpServers\": "),
        (Host::Cursor, "{ \"mcpServers\": [] }"),
        (Host::Zed, "[]"),
        (Host::Codex, "mcp_servers = 3"),
        (Host::Codex, "[mcp_servers"),
    ] {
        assert!(with_server(host, wrong, &entry("/srv/a")).is_err(), "{host:?}: {wrong}");
    }
}

#[test]
fn every_host_has_a_file_of_its_own_in_each_scope() {
    let (home, project) = (std::path::Path::new("/home/ada"), std::path::Path::new("/srv/shop"));
    for scope in [Scope::User, Scope::Project] {
        let mut files: Vec<_> = Host::ALL.iter().map(|host| host.file(scope, home, project)).collect();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), Host::ALL.len());
    }
}
