//! What manifests say about packages, and about where their modules are.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::language::{Ecosystem, Language};

/// Aliases and targets of one manifest; more were made by a machine.
const MAX_ALIASES: usize = 500;

/// The entries of a Cargo manifest that are programs.
pub(crate) const PROGRAM: &str = "bin";

/// What one manifest says. A file that says nothing we know is an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) ecosystem: Option<Ecosystem>,
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    /// What members of a Cargo workspace inherit.
    pub(crate) workspace_version: Option<String>,
    /// Whether `version.workspace = true`.
    pub(crate) inherits_version: bool,
    /// Entry files by sub-path: `.` is the package itself. A sub-path has one for each condition.
    pub(crate) entries: Vec<(String, String)>,
    /// Names that refer to others: path aliases of TypeScript (with `*`), renamed crates, replaced modules of Go.
    pub(crate) aliases: Vec<(String, Vec<String>)>,
    /// Names with `#` of a `package.json`, and what they may mean under any condition.
    pub(crate) imports: Vec<(String, Vec<String>)>,
    pub(crate) base_url: Option<String>,
    /// The configurations that it extends, the last of which counts most.
    pub(crate) extends: Vec<String>,
    /// The configurations of other projects that it refers to.
    pub(crate) references: Vec<String>,
    /// Whether a configuration names files that are not below its directory.
    pub(crate) leads_out: bool,
    /// Whether it may say anything about names, as it could not be read.
    pub(crate) is_unreadable: bool,
    /// Whether a crate is of the edition of 2015, in which the paths of `use` begin at the root of the crate.
    pub(crate) of_2015: bool,
    /// Patterns of the directories that are members of its workspace; `!` before those that are not, `.` for its own.
    pub(crate) members: Vec<String>,
    /// Dependencies that are in the tree, and where; the empty path for one that is a member of the workspace.
    pub(crate) locals: Vec<(String, String)>,
}

impl Manifest {
    /// None when the text cannot be read at all.
    pub(crate) fn read(language: Language, text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}');
        match language {
            Language::PackageJson => package_json(text),
            Language::PnpmWorkspace => Some(pnpm_workspace(text)),
            Language::TsConfig => tsconfig(text),
            Language::CargoToml => cargo_toml(text),
            Language::PyProject => pyproject(text),
            Language::GoMod => Some(go_mod(text)),
            Language::Pom => Some(pom(text)),
            _ => None,
        }
    }

    /// A configuration of TypeScript that could not be read.
    pub(crate) fn unreadable() -> Self {
        Self { is_unreadable: true, ..Self::default() }
    }

    /// What other files' links depend on: all but the package's own version.
    pub(crate) fn for_links(&self) -> Self {
        Self { version: None, ..self.clone() }
    }
}

fn text_of(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn package_json(text: &str) -> Option<Manifest> {
    let value: Value = serde_json::from_str(text).ok()?;
    let mut entries = Vec::new();
    match value.get("exports") {
        Some(Value::Object(exports)) if exports.keys().any(|key| key.starts_with('.')) => {
            for (sub_path, target) in exports.iter().take(MAX_ALIASES) {
                entries.extend(branches(target).into_iter().map(|path| (sub_path.clone(), path)));
            }
        }
        Some(target) => entries.extend(branches(target).into_iter().map(|path| (".".to_owned(), path))),
        None => {}
    }
    for field in ["source", "module", "main", "browser", "types", "typings"] {
        entries.extend(text_of(value.get(field)).map(|target| (".".to_owned(), target)));
    }
    Some(Manifest {
        ecosystem: Some(Ecosystem::Npm),
        name: text_of(value.get("name")),
        version: text_of(value.get("version")),
        entries,
        imports: npm_imports(value.get("imports")),
        members: npm_members(value.get("workspaces")),
        locals: npm_locals(&value),
        ..Manifest::default()
    })
}

/// `"imports": {"#name": ..}`: every target, because which condition holds shows when the code runs.
fn npm_imports(imports: Option<&Value>) -> Vec<(String, Vec<String>)> {
    let names = imports.and_then(Value::as_object).into_iter().flatten();
    let all = names.map(|(name, target)| {
        let mut targets = branches(target);
        targets.sort();
        targets.dedup();
        (name.clone(), targets)
    });
    all.take(MAX_ALIASES).collect()
}

/// `"workspaces": [..]`, or with the list under `packages`.
fn npm_members(workspaces: Option<&Value>) -> Vec<String> {
    let list = workspaces.map(|list| list.get("packages").unwrap_or(list)).and_then(Value::as_array);
    let members = list.into_iter().flatten().filter_map(Value::as_str);
    members.take(MAX_ALIASES).map(str::to_owned).collect()
}

/// Dependencies on what is in the tree and not in a registry.
fn npm_locals(value: &Value) -> Vec<(String, String)> {
    let kinds = [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
        "resolutions",
        "overrides",
    ];
    let pnpm = value.get("pnpm").and_then(|pnpm| pnpm.get("overrides"));
    let lists = kinds.iter().filter_map(|kind| value.get(*kind)).chain(pnpm).filter_map(Value::as_object);
    let local = |(name, version): (&String, &Value)| {
        let version = version.as_str()?;
        let is_path = |text: &str| text.starts_with("./") || text.starts_with("../");
        if let Some(meant) = version.strip_prefix("workspace:") {
            let path = if is_path(meant) { meant } else { "" };
            return Some((name.clone(), path.to_owned()));
        }
        let named = ["file:", "link:", "portal:"].iter().find_map(|kind| version.strip_prefix(kind));
        let path = named.or_else(|| Some(version).filter(|version| is_path(version)))?;
        Some((name.clone(), path.trim_start_matches("//").to_owned()))
    };
    lists.flatten().filter_map(local).take(MAX_ALIASES).collect()
}

/// The list under `packages`: one item a line, as it is usually written, or all of them in brackets.
fn pnpm_workspace(text: &str) -> Manifest {
    let mut members = vec![".".to_owned()];
    let mut is_inside = false;
    for line in text.lines() {
        let content = line.trim();
        let item = if is_inside { content.strip_prefix('-') } else { None };
        if let Some(list) = line.strip_prefix("packages:") {
            is_inside = true;
            let list = list.trim().trim_matches(['[', ']']);
            members.extend(list.split(',').map(plain_item));
        } else if let Some(item) = item {
            members.push(plain_item(item));
        } else if !content.is_empty() && !content.starts_with('#') {
            is_inside = false;
        }
    }
    members.retain(|member| !member.is_empty());
    members.truncate(MAX_ALIASES);
    Manifest { ecosystem: Some(Ecosystem::Npm), members, ..Manifest::default() }
}

/// An item of a list without its quotes and what is said about it.
fn plain_item(item: &str) -> String {
    let item = item.split(" #").next().unwrap_or(item).trim();
    item.trim_matches(['"', '\'']).to_owned()
}

/// Every path among the nested conditions of an export or an import; sources before what is built from them.
fn branches(target: &Value) -> Vec<String> {
    const FIRST: [&str; 6] = ["source", "types", "import", "default", "require", "node"];
    let mut paths = Vec::new();
    // What is still to be read, the first part last.
    let mut open = vec![target];
    while let Some(target) = open.pop().filter(|_| paths.len() < MAX_ALIASES) {
        match target {
            Value::String(path) => paths.push(path.clone()),
            Value::Object(conditions) => {
                let others = conditions.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
                let known = FIRST.iter().filter_map(|name| conditions.get(*name));
                let in_order: Vec<&Value> = known.chain(others.map(|(_, target)| target)).collect();
                open.extend(in_order.into_iter().rev());
            }
            Value::Array(fallbacks) => open.extend(fallbacks.iter().rev()),
            _ => {}
        }
    }
    paths
}

fn tsconfig(text: &str) -> Option<Manifest> {
    let value: Value = serde_json::from_str(&without_comments(text)).ok()?;
    let options = value.get("compilerOptions");
    let option = |name: &str| options.and_then(|options| options.get(name));
    let mut aliases = Vec::new();
    if let Some(Value::Object(paths)) = option("paths") {
        for (pattern, targets) in paths.iter().take(MAX_ALIASES) {
            let targets = targets.as_array().into_iter().flatten();
            let targets = targets.filter_map(Value::as_str).map(str::to_owned).collect();
            aliases.push((pattern.clone(), targets));
        }
    }
    let extends = match value.get("extends") {
        Some(Value::Array(list)) => list.iter().filter_map(|item| text_of(Some(item))).collect(),
        other => text_of(other).into_iter().collect(),
    };
    let list = |name: &str| value.get(name).and_then(Value::as_array).into_iter().flatten();
    // A path from the directory of the file, with or without a dot before it.
    let reference =
        |path: &str| if path.starts_with(['.', '/']) { path.to_owned() } else { format!("./{path}") };
    let paths = list("references").filter_map(|item| item.get("path").and_then(Value::as_str));
    let references = paths.take(MAX_ALIASES).map(reference).collect();
    let mut files = list("include").chain(list("files")).filter_map(Value::as_str);
    let leads_out = files.any(|path| path.starts_with('/') || path.split('/').any(|part| part == ".."));
    let base_url = text_of(option("baseUrl"));
    Some(Manifest { aliases, base_url, extends, references, leads_out, ..Manifest::default() })
}

/// JSON as TypeScript's own files are written: without comments and commas before a closing bracket.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut in_string = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' if in_string => {
                out.push(character);
                out.extend(characters.next());
            }
            '"' => {
                in_string = !in_string;
                out.push(character);
            }
            '/' if !in_string && characters.peek() == Some(&'/') => {
                for skipped in characters.by_ref() {
                    if skipped == '\n' {
                        out.push('\n');
                        break;
                    }
                }
            }
            '/' if !in_string && characters.peek() == Some(&'*') => {
                characters.next();
                let mut last = ' ';
                for skipped in characters.by_ref() {
                    if last == '*' && skipped == '/' {
                        break;
                    }
                    last = skipped;
                }
            }
            '}' | ']' if !in_string => {
                let kept = out.trim_end().len();
                if out.get(..kept).is_some_and(|text| text.ends_with(',')) {
                    out.truncate(kept - 1);
                }
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out
}

fn cargo_toml(text: &str) -> Option<Manifest> {
    let table: toml::Table = text.parse().ok()?;
    let package = table.get("package");
    let workspace = table.get("workspace");
    let field = |owner: Option<&toml::Value>, name: &str| {
        owner.and_then(|owner| owner.get(name)).and_then(toml::Value::as_str).map(str::to_owned)
    };
    let (mut aliases, mut locals) = (Vec::new(), Vec::new());
    let mut dependencies: Vec<&toml::Value> = ["dependencies", "dev-dependencies", "build-dependencies"]
        .iter()
        .filter_map(|name| table.get(*name))
        .collect();
    dependencies.extend(workspace.and_then(|workspace| workspace.get("dependencies")));
    let targets = table.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    dependencies.extend(targets.filter_map(|(_, target)| target.get("dependencies")));
    let patches = table.get("patch").and_then(toml::Value::as_table).into_iter().flatten();
    dependencies.extend(patches.map(|(_, patches)| patches));
    for list in dependencies.into_iter().filter_map(toml::Value::as_table) {
        for (name, dependency) in list.iter().take(MAX_ALIASES) {
            if let Some(package) = field(Some(dependency), "package") {
                aliases.push((name.replace('-', "_"), vec![package.replace('-', "_")]));
            }
            locals.extend(field(Some(dependency), "path").map(|path| (name.clone(), path)));
        }
    }
    let mut members = Vec::new();
    if let Some(workspace) = workspace {
        members.push(".".to_owned());
        let list = |name: &str| workspace.get(name).and_then(toml::Value::as_array);
        let texts = |name: &str| list(name).into_iter().flatten().filter_map(toml::Value::as_str);
        members.extend(texts("members").take(MAX_ALIASES).map(str::to_owned));
        members.extend(texts("exclude").take(MAX_ALIASES).map(|path| format!("!{path}")));
    }
    let mut entries = Vec::new();
    let programs = table.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    entries.extend(
        programs
            .filter_map(|program| field(Some(program), "path"))
            .take(MAX_ALIASES)
            .map(|path| (PROGRAM.to_owned(), path)),
    );
    entries.extend(field(table.get("lib"), "path").map(|path| (".".to_owned(), path)));
    entries.extend(field(table.get("lib"), "name").map(|name| ("name".to_owned(), name)));
    let edition = package.and_then(|package| package.get("edition"));
    let inherits = package
        .and_then(|package| package.get("version"))
        .and_then(|version| version.get("workspace"))
        .and_then(toml::Value::as_bool);
    Some(Manifest {
        ecosystem: Some(Ecosystem::Cargo),
        name: field(package, "name"),
        version: field(package, "version"),
        workspace_version: field(workspace.and_then(|workspace| workspace.get("package")), "version"),
        inherits_version: inherits.unwrap_or(false),
        of_2015: package.is_some() && edition.is_none_or(|edition| edition.as_str() == Some("2015")),
        entries,
        aliases,
        members,
        locals,
        ..Manifest::default()
    })
}

fn pyproject(text: &str) -> Option<Manifest> {
    let table: toml::Table = text.parse().ok()?;
    let poetry = table.get("tool").and_then(|tool| tool.get("poetry"));
    let project = table.get("project").or(poetry);
    let field = |name: &str| {
        project.and_then(|project| project.get(name)).and_then(toml::Value::as_str).map(str::to_owned)
    };
    Some(Manifest {
        ecosystem: Some(Ecosystem::Pypi),
        name: field("name"),
        version: field("version"),
        ..Manifest::default()
    })
}

/// The name in a `go.mod`, and the modules that it or a `go.work` replaces by directories.
fn go_mod(text: &str) -> Manifest {
    let mut manifest = Manifest { ecosystem: Some(Ecosystem::Go), ..Manifest::default() };
    let mut block: Option<String> = None;
    for line in text.lines() {
        let words = go_words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (verb, words) = match (block.as_deref(), words.as_slice()) {
            (_, [")", ..]) => {
                block = None;
                continue;
            }
            (None, [verb, "(", ..]) => {
                block = Some((*verb).to_owned());
                continue;
            }
            (Some(verb), words) => (verb, words),
            (None, [verb, words @ ..]) => (*verb, words),
            (None, []) => continue,
        };
        match (verb, words) {
            ("module", [name, ..]) => manifest.name = manifest.name.or_else(|| Some((*name).to_owned())),
            // With or without versions.
            ("replace", [name, "=>", target, ..] | [name, _, "=>", target, ..])
                if target.starts_with(['.', '/']) && manifest.aliases.len() < MAX_ALIASES =>
            {
                manifest.aliases.push(((*name).to_owned(), vec![(*target).to_owned()]));
            }
            _ => {}
        }
    }
    manifest
}

/// The words of a line of a `go.mod`, without quotes and comments.
fn go_words(line: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while let Some(first) = rest.chars().next().filter(|_| !rest.starts_with("//")) {
        let is_quote = matches!(first, '"' | '`');
        let word = if is_quote { rest.get(1..).unwrap_or_default() } else { rest };
        let end = match first {
            _ if is_quote => word.find(first),
            '(' | ')' => Some(1),
            _ => word.find(|letter: char| letter.is_whitespace() || matches!(letter, '(' | ')')),
        };
        let end = end.unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        words.push(word.split("//").next().filter(|_| !is_quote).unwrap_or(word).to_owned());
        rest = behind.strip_prefix(first).filter(|_| is_quote).unwrap_or(behind).trim_start();
    }
    words
}

/// The project's own coordinates: elements right below `project`, the parent's group where it has none.
fn pom(text: &str) -> Manifest {
    let mut path: Vec<String> = Vec::new();
    let (mut group, mut parent_group, mut artifact, mut version) = (None, None, None, None);
    for part in text.split('<').skip(1) {
        let Some((tag, content)) = part.split_once('>') else { continue };
        if tag.starts_with(['?', '!']) || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            path.pop();
            continue;
        }
        path.push(tag.split_whitespace().next().unwrap_or_default().to_owned());
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let content = Some(content.trim().to_owned()).filter(|content| !content.is_empty());
        match names.as_slice() {
            ["project", "groupId"] => group = content,
            ["project", "artifactId"] => artifact = content,
            ["project", "version"] => version = content,
            ["project", "parent", "groupId"] => parent_group = content,
            _ => {}
        }
    }
    let group = group.or(parent_group);
    let name = artifact.map(|artifact| match group {
        Some(group) => format!("{group}:{artifact}"),
        None => artifact,
    });
    Manifest { ecosystem: Some(Ecosystem::Maven), name, version, ..Manifest::default() }
}
