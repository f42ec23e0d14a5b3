//! The fields of a configuration that need a person's confirmation: what executes something, sends a secret or the
//! project's contents to an address, reaches beyond the project, or loosens what holds without it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use tgp_audit::Redaction;
use tgp_contract::{Code, RelativePath, Root, ToolError, canonical};
use tgp_policy::{Protection, may_run_later, protected};
use tgp_sql::DatabaseUrl;

use super::loosening::fields_that_loosen;
use super::store::shown_path;
use super::url;
use crate::config::{Config, FsConfig, JailConfig, SandboxConfig};
use crate::knowledge::check_build;
use crate::project_access::ForeignOwner;
use crate::settings::readable_place;
use tgp_fs::{RepositoryAccess, real_place};

/// A field, or fields that only mean something together, as they are shown, hashed and confirmed.
#[derive(Clone, Debug)]
pub struct SensitiveField {
    /// Such as `tdd.command`.
    pub name: &'static str,
    /// Its value without passwords and tokens.
    pub value: Value,
    /// What it makes possible, for the person who confirms it.
    pub allows: &'static str,
    /// The hash of the whole value where `value` leaves out settings that are named as credentials: another one needs
    /// another confirmation.
    hidden: Option<String>,
    /// Takes it out of a configuration, so that what is left is never wider.
    withhold: fn(&mut Config),
}

/// What stands for the variables of the environment that a configuration reads: their values may be in any of its fields, and
/// most fields are shown, recorded or sent without a question.
pub(super) const ENVIRONMENT: &str = "process.env";

/// What stands for the other user that the project belongs to.
pub(super) const OWNER: &str = "owner";
/// The places outside of the project that its git repository uses. No file of the project's configuration names them: git's
/// own files do.
pub(super) const REPOSITORY: &str = "repository";

/// The field that names a graph server.
const GRAPH_URL: &str = "graph.url";

/// The sensitive fields of a configuration. `variables` are those of the environment that its file reads: which secret
/// is sent is part of what is confirmed, although the secret itself is not.
pub(super) fn of(
    config: &Config,
    project: &Path,
    home: Option<&Path>,
    variables: &[String],
) -> Vec<SensitiveField> {
    let field = |name, allows, withhold, value: Option<Value>| {
        value.map(|value| SensitiveField::new(name, allows, withhold, value))
    };
    let (llm, hidden) = llm(config, variables);
    let llm = field(
        "llm",
        "sends conversations, and the key that the variable holds, to this address",
        withhold_llm,
        llm,
    );
    [
        // Withheld by reading the file again, see `admit`.
        field(
            ENVIRONMENT,
            "gives the configuration these variables of your environment: it can show, record and send what they hold",
            |_| {},
            (!variables.is_empty()).then(|| json!(variables)),
        ),
        field(
            "rootDir",
            "keeps the tools, their rules and the audit in a directory outside the project",
            withhold_root,
            root_dir(config, project),
        ),
        field(
            OWNER,
            "lets commands with effects run in a project of another user, by its configuration and its rules",
            |_| {},
            owner(config, project),
        ),
        field(
            REPOSITORY,
            "reads and commits to git files in these places outside the project, which its `.git` leads to",
            |config| config.repository = RepositoryAccess::default(),
            repository_value(config.repository.places()),
        ),
        field("git", git_allows(config), withhold_git, git(config, project, variables)),
        field(
            "fs",
            "lets forged tools use directories outside the project",
            withhold_fs,
            fs(config, project),
        ),
        field(
            "allowedFetchUrls",
            "lets forged tools reach these addresses",
            |config| config.allowed_fetch_urls.clear(),
            (!config.allowed_fetch_urls.is_empty()).then(|| json!(config.allowed_fetch_urls)),
        ),
        field(
            "secrets",
            "sends these secrets to these hosts, and runs the commands that print them",
            |config| config.secrets.clear(),
            secrets(config),
        ),
        field(
            "db.url",
            if config.db.url.as_deref().is_some_and(has_secret) {
                "opens this database for exec_sql, and sends its server the password"
            } else {
                "opens this database for exec_sql"
            },
            |config| config.db.url = None,
            database(config, project, variables),
        ),
        field(
            "registry.embeddings",
            if config.registry.embeddings.as_ref().is_some_and(|endpoint| endpoint.api_key.is_some()) {
                "sends descriptions of tools, searches and the key to this address"
            } else {
                "sends descriptions of tools and searches to this address"
            },
            |config| config.registry.embeddings = None,
            embeddings(config, variables),
        ),
        field(
            "tdd.command",
            "runs this command as the project's tests",
            |config| config.tdd.command = None,
            config.tdd.command.as_ref().map(|command| json!(command)),
        ),
        field(
            "sandbox.ceiling",
            "lets calls ask for runs with these limits, each after an approval",
            |config| {
                config.sandbox.ceiling = config.sandbox.ceiling.at_most(&SandboxConfig::default().ceiling)
            },
            config.sandbox.raises_ceiling().then(|| json!(config.sandbox.ceiling)),
        ),
        field(
            "jail.direct",
            "lets builds and tests write these directories without their changes being judged",
            |config| keep_usual(&mut config.jail.direct, &JailConfig::default().direct),
            unusual(&config.jail.direct, &JailConfig::default().direct),
        ),
        field(
            "jail.readable",
            "lets commands read these paths outside the project",
            |config| keep_usual(&mut config.jail.readable, &JailConfig::default().readable),
            readable(&config.jail.readable, project, home),
        ),
        llm.map(|field| SensitiveField { hidden, ..field }),
        field(
            GRAPH_URL,
            if config.graph.url.as_deref().is_some_and(has_secret) {
                "sends the code graph's queries, the user and the password to this server"
            } else {
                "sends the code graph's queries to this server"
            },
            |config| config.graph.url = None,
            config
                .graph
                .url
                .as_ref()
                .map(|text| with_variables(json!({ "url": url::masked(text) }), variables)),
        ),
    ]
    .into_iter()
    .flatten()
    .chain(fields_that_loosen(config, project))
    .collect()
}

impl SensitiveField {
    /// A field whose whole value is shown.
    pub(super) fn new(
        name: &'static str,
        allows: &'static str,
        withhold: fn(&mut Config),
        value: Value,
    ) -> Self {
        Self { name, value, allows, hidden: None, withhold }
    }

    /// Refuses a field that this build cannot use, so that no person is asked to confirm it.
    ///
    /// # Errors
    /// `ECONFIG` for `graph.url` without the feature `graph-bolt`.
    pub fn check_supported(&self) -> Result<(), ToolError> {
        if self.name == GRAPH_URL { check_build() } else { Ok(()) }
    }

    /// What a confirmation is for: the value, with what is not shown of it.
    pub(super) fn confirmed_value(&self) -> Value {
        match &self.hidden {
            None => self.value.clone(),
            Some(hidden) => json!({ "shown": self.value, "hidden": hidden }),
        }
    }

    /// Takes the field out of `config`, and notes there that it was ignored.
    pub(super) fn withhold_from(&self, config: &mut Config) {
        (self.withhold)(config);
        config.ignored.push(self.name);
    }
}

/// The owner of the project, where that is another user than that of this process.
fn owner(config: &Config, project: &Path) -> Option<Value> {
    let owner = ForeignOwner::find(project, &project.join(&config.root_dir))?;
    Some(json!({ "uid": owner.uid(), "name": owner.name() }))
}

/// The places as they are shown and hashed; none where everything is in the project.
pub(super) fn repository_value(places: &BTreeSet<PathBuf>) -> Option<Value> {
    let shown = places.iter().map(|place| shown_path(place)).collect::<Vec<_>>();
    (!shown.is_empty()).then(|| json!(shown))
}

fn secrets(config: &Config) -> Option<Value> {
    let shown = config.secrets.iter().map(|secret| (secret.name.clone(), secret.shown()));
    (!config.secrets.is_empty()).then(|| Value::Object(shown.collect()))
}

/// A directory of the project counts as well, unless it has the usual name: what is in it is judged as tools, and not as
/// the files of the project that they were.
fn root_dir(config: &Config, project: &Path) -> Option<Value> {
    // Found by the kernel in git's own files, and not named by the configuration.
    if config.main_tree.is_some() {
        return None;
    }
    let root = real_place(&project.join(&config.root_dir));
    let has_usual_name = root.file_name().is_some_and(|name| name == USUAL_ROOT);
    (!root.starts_with(project) || !has_usual_name).then(|| json!(root.to_string_lossy()))
}

/// The name of tool repositories.
const USUAL_ROOT: &str = ".tgp";

/// Refuses a tool repository in a place of the project that no tool may touch, or of which files run later. This
/// cannot be confirmed: below it the paths of tools would hide what they are.
///
/// # Errors
/// `ECONFIG`.
pub(crate) fn check_root(config: &Config, project: &Path) -> Result<(), ToolError> {
    let root = real_place(&project.join(&config.root_dir));
    let Ok(place) = root.strip_prefix(project) else { return Ok(()) };
    let place = place.to_str().and_then(|place| RelativePath::new(place).ok());
    let is_tool_root = |protection: &Protection| !protection.reads && protection.rule == "builtin/state";
    let refused = place.as_ref().is_none_or(|place| {
        let protection = protected(Root::Project, place).filter(|found| !is_tool_root(found));
        place.is_root() || protection.is_some() || may_run_later(place)
    });
    if !refused {
        return Ok(());
    }
    let message = format!(
        "`rootDir` is `{}`: the tool repository cannot be the project itself, nor in a place that is protected or that \
         holds files which run later",
        config.root_dir
    );
    Err(ToolError::new(Code::Config, message)
        .detail("field", "rootDir")
        .help("leave it out, which means `./.tgp`, or name a directory of its own"))
}

fn withhold_root(config: &mut Config) {
    config.root_dir = Config::default().root_dir;
}

fn git(config: &Config, project: &Path, variables: &[String]) -> Option<Value> {
    let git = config.git.as_ref()?;
    if !git.has_remote() && git.auth.token.is_none() {
        return None;
    }
    let value = json!({
        "provider": git.provider.map(|provider| format!("{provider:?}").to_lowercase()),
        "repo": git.repo.as_deref().map(url::masked),
        "url": git.url.as_deref().map(|url| with_place(url::masked_remote(url), local_path(url), project)),
        "apiBaseUrl": git.api_base_url.as_deref().map(url::masked),
        "sendsToken": git.auth.token.is_some(),
    });
    Some(with_variables(value, variables))
}

/// What else the remote is sent, in addition to the tools.
fn git_allows(config: &Config) -> &'static str {
    match &config.git {
        Some(git) if git.auth.token.is_some() => {
            "exchanges the tool repository with this remote, and sends it the token"
        }
        Some(git) if git.url.as_deref().is_some_and(|url| url::masked_remote(url) != url) => {
            "exchanges the tool repository with this remote, and sends it the password in the URL"
        }
        _ => "exchanges the tool repository with this remote",
    }
}

/// Whether an address has a password or a token in it.
fn has_secret(text: &str) -> bool {
    url::masked(text) != text
}

fn withhold_git(config: &mut Config) {
    if let Some(git) = &mut config.git {
        (git.provider, git.repo, git.url, git.api_base_url, git.auth.token) = (None, None, None, None, None);
    }
}

fn fs(config: &Config, project: &Path) -> Option<Value> {
    let FsConfig { allowed_dirs, read_dirs, block_upward_traversal } = &config.fs;
    let outside = |named: &[String]| -> Vec<String> {
        let places = named.iter().map(|text| real_place(&project.join(text)));
        let outside = places.filter(|directory| !directory.starts_with(project));
        outside.map(|directory| directory.to_string_lossy().into_owned()).collect()
    };
    let (writable, readable) = (outside(allowed_dirs), outside(read_dirs));
    if *block_upward_traversal && writable.is_empty() && readable.is_empty() {
        return None;
    }
    let mut value = json!({ "blockUpwardTraversal": block_upward_traversal, "allowedDirs": writable });
    // Left out where there are none, so that what was confirmed before the setting existed stays confirmed.
    if let Some(fields) = value.as_object_mut().filter(|_| !readable.is_empty()) {
        fields.insert("readDirs".to_owned(), json!(readable));
    }
    Some(value)
}

/// What leaves the project by its name is not opened then; what leaves it by a link no file system here follows.
fn withhold_fs(config: &mut Config) {
    config.fs.block_upward_traversal = true;
    let stays = |text: &String| {
        let mut depth = 0_i32;
        Path::new(text).components().all(|part| {
            depth += match part {
                Component::Normal(_) => 1,
                Component::CurDir => 0,
                Component::ParentDir => -1,
                Component::RootDir | Component::Prefix(_) => i32::MIN / 2,
            };
            depth >= 0
        })
    };
    config.fs.allowed_dirs.retain(stays);
    config.fs.read_dirs.retain(stays);
}

fn database(config: &Config, project: &Path, variables: &[String]) -> Option<Value> {
    let text = config.db.url.as_deref()?;
    let named = DatabaseUrl::parse(text).ok().and_then(|url| url.sqlite_file().map(Path::to_owned));
    let is_own = named.as_ref().is_some_and(|file| {
        let (file, root) = (real_place(&project.join(file)), real_place(&project.join(&config.root_dir)));
        // The state of the kernel itself is kept in databases, too.
        file.starts_with(project) && !file.starts_with(root) && is_free_place(&file, project)
    });
    let shown = with_place(url::masked(text), named.as_deref(), project);
    (!is_own).then(|| with_variables(json!({ "url": shown }), variables))
}

/// An address as it is shown, and where it leads if it is a path with links on its way: another end of a link needs another
/// confirmation.
fn with_place(shown: String, path: Option<&Path>, project: &Path) -> String {
    let Some(named) = path.map(|path| project.join(path)) else { return shown };
    let plain: PathBuf = named.components().collect();
    let place = real_place(&named);
    let has_links = named.ancestors().any(Path::is_symlink);
    if has_links && place != plain { format!("{shown} -> {}", place.display()) } else { shown }
}

/// The path of a remote that is a directory of this machine.
fn local_path(url: &str) -> Option<&Path> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    let is_scp = path.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
    (!path.contains("://") && !is_scp).then(|| Path::new(path))
}

/// Whether a file of the project is one that nothing protects and that does not run later, so that it may become a database.
fn is_free_place(file: &Path, project: &Path) -> bool {
    let place = file.strip_prefix(project).ok().and_then(|place| RelativePath::new(place.to_str()?).ok());
    place.is_some_and(|place| {
        let in_tools = place.parts().any(|part| part.eq_ignore_ascii_case(USUAL_ROOT));
        !in_tools && protected(Root::Project, &place).is_none() && !may_run_later(&place)
    })
}

fn embeddings(config: &Config, variables: &[String]) -> Option<Value> {
    let endpoint = config.registry.embeddings.as_ref()?;
    let value = json!({ "baseUrl": url::masked(&endpoint.base_url), "sendsKey": endpoint.api_key.is_some() });
    Some(with_variables(value, variables))
}

/// The value without credentials, and the hash of the body if it has any.
fn llm(config: &Config, variables: &[String]) -> (Option<Value>, Option<String>) {
    let llm = &config.llm;
    let mut hidden = None;
    let mut value = Map::new();
    let mut add = |name: &str, text: Option<&str>| {
        value.extend(text.map(|text| (name.to_owned(), json!(url::masked(text)))));
    };
    add("provider", llm.provider.as_deref().filter(|provider| is_chosen_provider(provider)));
    add("baseUrl", llm.base_url.as_deref());
    add("keyVariable", llm.key_variable.as_deref());
    if !llm.body.is_empty() {
        let body = Value::Object(llm.body.clone());
        let shown = without_credentials(body.clone(), &config.audit.redact_names);
        if shown != body {
            hidden = Some(canonical::hash_exact(body));
        }
        value.insert("body".to_owned(), shown);
    }
    if value.is_empty() {
        return (None, None);
    }
    // The provider decides in which form a key is sent.
    if let (Some(provider), false) = (&llm.provider, value.contains_key("provider")) {
        value.insert("provider".to_owned(), json!(provider));
    }
    // It is sent along, and the file may have read it from the environment.
    value.extend(llm.model.as_deref().map(|model| ("model".to_owned(), json!(model))));
    (Some(with_variables(Value::Object(value), variables)), hidden)
}

/// The value as the audit would keep it. A setting called `key` is a credential here, whatever it is elsewhere.
fn without_credentials(value: Value, names: &[String]) -> Value {
    let names: Vec<String> = names.iter().cloned().chain(["key".to_owned()]).collect();
    match Redaction::new(&names, &[]) {
        Ok(redaction) => redaction.value(value),
        // Too many names to search for: nothing is shown.
        Err(_) => json!("[redacted]"),
    }
}

/// A provider that a project cannot choose by itself: an address that gets the conversation, or a file whose turns are
/// played as the model's.
fn is_chosen_provider(provider: &str) -> bool {
    provider.contains("://") || provider.starts_with("script:")
}

fn withhold_llm(config: &mut Config) {
    let llm = &mut config.llm;
    llm.provider = llm.provider.take().filter(|provider| !is_chosen_provider(provider));
    (llm.base_url, llm.key_variable) = (None, None);
    llm.body.clear();
}

/// A value that represents a secret, with the names of the variables that the secret may come from.
fn with_variables(mut value: Value, variables: &[String]) -> Value {
    if let Some(fields) = value.as_object_mut().filter(|_| !variables.is_empty()) {
        fields.insert("variables".to_owned(), json!(variables));
    }
    value
}

fn unusual(values: &[String], usual: &[String]) -> Option<Value> {
    let unusual: Vec<&String> = values.iter().filter(|value| !usual.contains(value)).collect();
    (!unusual.is_empty()).then(|| json!(unusual))
}

/// The unusual paths of `jail.readable`, with where they lead if links are on their way: another end of a link needs another
/// confirmation.
fn readable(values: &[String], project: &Path, home: Option<&Path>) -> Option<Value> {
    let usual = JailConfig::default().readable;
    let shown = |text: &String| {
        let named = readable_place(text, project, home);
        let place = named.as_deref().map(real_place);
        match place.filter(|place| named.as_deref() != Some(place)) {
            Some(place) => format!("{text} -> {}", place.display()),
            None => text.clone(),
        }
    };
    let unusual: Vec<String> = values.iter().filter(|value| !usual.contains(value)).map(shown).collect();
    (!unusual.is_empty()).then(|| json!(unusual))
}

fn keep_usual(values: &mut Vec<String>, usual: &[String]) {
    values.retain(|value| usual.contains(value));
}
