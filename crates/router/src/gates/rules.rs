//! The rules in force: read from files, and read again when a file has changed, with no moment in between.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use serde_json::{Map, Value};
use tgp_contract::{Code, FileSystem, RelativePath, SourceLocation, ToolDefinition, ToolError};
use tgp_fs::{MemoryFs, Stamp};
use tgp_policy::{Policy, PolicySettings, PolicySource, PolicyTool, SourceTrust, ToolCatalogue};
use tokio::sync::Mutex;

use super::{Predicate, PredicateCompiler};
use crate::router::DynTool;

/// Below the tool root: rules in YAML, and extension rules in TypeScript.
const DIRECTORY: &str = "policy";

/// Files of rules; more than that is not written by people.
const MAX_FILES: usize = 256;

/// Bytes of one file that are read. The policy refuses less than that, with its own words.
const MAX_BYTES: u64 = 1024 * 1024;

/// Files of rules that are not the project's own, by name: those of the tool repository, which a remote or an agent may
/// have changed, and those outside the project.
pub type ForeignRules = BTreeMap<String, String>;

/// Says whether a person has confirmed rules that are not the project's own. Until then they only tighten.
pub trait RuleTrust: Send + Sync {
    /// Whether exactly these files have been confirmed.
    fn is_confirmed(&self, rules: &ForeignRules) -> bool;
    /// The file that a new confirmation changes, so that it takes effect in a running kernel.
    fn record(&self) -> Option<PathBuf>;
}

/// Where rules come from.
#[derive(Clone)]
pub struct RuleFiles {
    /// The agent's root on disk.
    pub tool_root: PathBuf,
    pub project: PathBuf,
    /// Files of the project, relative to it.
    pub files: Vec<String>,
    /// Whether those files have to exist.
    pub required: bool,
    pub settings: PolicySettings,
    pub trust: Arc<dyn RuleTrust>,
}

/// Rules that were read together.
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    /// By the name of their file.
    pub(crate) extensions: Vec<(String, Arc<dyn Predicate>)>,
    /// Whether any of them depends on what a session has done.
    pub(crate) look_back: bool,
    /// Whether any of them may depend on the state of test-driven work.
    pub(crate) need_state: bool,
    /// Those that only tighten unless they have been confirmed.
    pub(crate) foreign: ForeignRules,
    /// Distinguishes one set of rules from the next.
    pub(crate) generation: u64,
}

struct Loaded {
    seen: Vec<SeenFile>,
    generation: u64,
    /// Broken rules allow nothing: every call is denied with this error until the file is repaired.
    rules: Result<Arc<Rules>, ToolError>,
}

/// A file as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenFile {
    path: PathBuf,
    state: FileState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FileState {
    Absent,
    There(Stamp),
    /// The system does not say whether it is there, for example because a directory above it may not be entered.
    Unknown(ErrorKind),
}

/// The files of rules, and the directory of them as it was listed last: it is listed again when it has changed.
struct RulePlaces {
    files: RuleFiles,
    /// The file that a confirmation changes.
    record: Option<PathBuf>,
    listed: std::sync::Mutex<Option<(Stamp, Vec<PathBuf>)>>,
}

/// Keeps the rules that are in force.
pub(crate) struct RuleStore {
    places: RulePlaces,
    predicates: Arc<dyn PredicateCompiler>,
    tools: Vec<Arc<dyn DynTool>>,
    loaded: RwLock<Arc<Loaded>>,
    /// One reading at a time.
    reading: Mutex<()>,
}

impl RuleStore {
    /// Reads the rules for the first time.
    ///
    /// # Errors
    /// `ECONFIG` with every problem of every file.
    pub(crate) async fn open(
        files: RuleFiles,
        predicates: Arc<dyn PredicateCompiler>,
        tools: Vec<Arc<dyn DynTool>>,
    ) -> Result<Self, ToolError> {
        let record = files.trust.record();
        let places = RulePlaces { files, record, listed: std::sync::Mutex::default() };
        let seen = places.look();
        let rules = Arc::new(read(&places, &seen, &*predicates, &tools, 0).await?);
        let loaded = RwLock::new(Arc::new(Loaded { seen, generation: 0, rules: Ok(rules) }));
        Ok(Self { places, predicates, tools, loaded, reading: Mutex::new(()) })
    }

    /// The rules of the files as they are now. Until new ones are completely read the old ones apply.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(crate) async fn current(&self) -> Result<Arc<Rules>, ToolError> {
        let seen = self.places.look();
        if let Some(rules) = self.read_already(&seen) {
            return rules;
        }
        let _reading = self.reading.lock().await;
        if let Some(rules) = self.read_already(&seen) {
            return rules;
        }
        let generation = self.loaded().generation + 1;
        let rules = read(&self.places, &seen, &*self.predicates, &self.tools, generation).await.map(Arc::new);
        let answer = rules.clone();
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Loaded { seen, generation, rules });
        answer
    }

    fn read_already(&self, seen: &[SeenFile]) -> Option<Result<Arc<Rules>, ToolError>> {
        let loaded = self.loaded();
        (loaded.seen == seen).then(|| loaded.rules.clone())
    }

    fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RulePlaces {
    /// Every file of rules, and when it was changed.
    fn look(&self) -> Vec<SeenFile> {
        let paths = self.in_directory();
        let named = self.files.files.iter().map(|file| self.files.project.join(file));
        paths
            .into_iter()
            .chain(named)
            .chain(self.record.clone())
            .map(|path| SeenFile { state: state_of(&path), path })
            .collect()
    }

    /// The files in the directory of rules.
    fn in_directory(&self) -> Vec<PathBuf> {
        let directory = self.files.tool_root.join(DIRECTORY);
        let now = SystemTime::now();
        let stamp = match state_of(&directory) {
            FileState::There(stamp) => stamp,
            // Most projects have none.
            FileState::Absent => return Vec::new(),
            FileState::Unknown(_) => return vec![directory],
        };
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, paths)) = &*listed
            && *known == stamp
        {
            return paths.clone();
        }
        let found: std::io::Result<Vec<PathBuf>> = std::fs::read_dir(&directory).and_then(|entries| {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.filter(|path| !matches!(path, Ok(path) if !is_rule(path))).take(MAX_FILES + 1).collect()
        });
        // What is there and cannot be listed is read like a file, and found unreadable.
        let Ok(mut paths) = found else { return vec![directory] };
        paths.sort();
        *listed = stamp.is_settled(now).then(|| (stamp, paths.clone()));
        paths
    }
}

/// What is at a path. A link that leads nowhere is there, with a stamp of its own.
fn state_of(path: &Path) -> FileState {
    match path.symlink_metadata() {
        Ok(itself) => {
            let target = if itself.is_symlink() { std::fs::metadata(path).ok() } else { None };
            FileState::There(Stamp::of(target.as_ref().unwrap_or(&itself)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => FileState::Absent,
        Err(error) => FileState::Unknown(error.kind()),
    }
}

impl RuleFiles {
    /// Whether a file is the project's own: in the project, reached by no link, and not in the tool repository. Only
    /// such a file is out of the reach of remotes, and protected from tools by its name.
    fn is_own(&self, path: &Path) -> bool {
        let is_plain = path.canonicalize().is_ok_and(|real| real == path);
        let in_tools = |root: &Path| path.starts_with(root);
        is_plain
            && path.starts_with(&self.project)
            && !in_tools(&self.tool_root)
            && self.tool_root.canonicalize().is_ok_and(|root| !in_tools(&root))
    }

    /// How a file is called in messages.
    fn name(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.project).unwrap_or(path);
        shown.display().to_string()
    }
}

fn is_rule(path: &Path) -> bool {
    is_yaml(path) || is_script(path)
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn is_script(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.ends_with(".ts") && !name.ends_with(".d.ts") && !name.ends_with(".test.ts")
}

async fn read(
    RulePlaces { files, record, .. }: &RulePlaces,
    seen: &[SeenFile],
    predicates: &dyn PredicateCompiler,
    tools: &[Arc<dyn DynTool>],
    generation: u64,
) -> Result<Rules, ToolError> {
    let seen = seen.iter().filter(|seen| record.as_ref() != Some(&seen.path));
    if seen.clone().count() > MAX_FILES {
        return Err(ToolError::new(Code::Config, format!("there are more than {MAX_FILES} files of rules"))
            .help("put several rules into one file"));
    }
    let mut sources = Vec::new();
    let mut scripts = Vec::new();
    let mut foreign = ForeignRules::new();
    for SeenFile { path, state } in seen {
        let name = files.name(path);
        let text = match state {
            FileState::Absent if files.required => {
                return Err(ToolError::new(
                    Code::Config,
                    format!("the file of rules `{name}` does not exist"),
                )
                .help("make it, or take it out of `policy.files` in the configuration"));
            }
            FileState::Absent => continue,
            FileState::There(_) => text_of(path),
            FileState::Unknown(kind) => Err((*kind).into()),
        };
        let text = text.map_err(|error| {
            ToolError::new(Code::Config, format!("`{name}` cannot be read: {error}"))
                .help("rules that cannot be read deny everything; fix or remove the file")
        })?;
        let trust = if files.is_own(path) { SourceTrust::Full } else { SourceTrust::TightenOnly };
        if trust == SourceTrust::TightenOnly {
            foreign.insert(name.clone(), text.clone());
        }
        if is_script(path) {
            scripts.push((name, path, text))
        } else {
            sources.push(PolicySource { file: name, text, trust })
        }
    }
    // All of them together: an `allow` that was confirmed beside a `deny` is not confirmed without it.
    if !foreign.is_empty() && files.trust.is_confirmed(&foreign) {
        sources.iter_mut().for_each(|source| source.trust = SourceTrust::Full);
    }
    let policy = Policy::load_with(&sources, &files.settings, &Tools(tools))?;
    let extensions = compile(predicates, scripts).await?;
    let look_back = policy.rules().any(|rule| rule.is_sequence);
    let need_state = policy.depends_on_state() || !extensions.is_empty();
    Ok(Rules { policy, extensions, look_back, need_state, foreign, generation })
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    // A pipe would be waited for.
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Compiles extension rules. They may import each other, so they are compiled from their own small tree.
async fn compile(
    predicates: &dyn PredicateCompiler,
    scripts: Vec<(String, &PathBuf, String)>,
) -> Result<Vec<(String, Arc<dyn Predicate>)>, ToolError> {
    let tree: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
    let mut paths = Vec::new();
    for (name, path, text) in scripts {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let place = RelativePath::new(&format!("{DIRECTORY}/{file}"))?;
        tree.write(&place, text.as_bytes())?;
        paths.push((name, place));
    }
    let mut extensions = Vec::new();
    for (name, place) in paths {
        let predicate = predicates.compile(&tree, &place).await.map_err(|error| {
            let message = format!("the extension rule `{name}` cannot be used: {}", error.message);
            let place = error.place_of().filter(|found| found.file == place.as_str());
            let error = error.with_code(Code::Config).with_message(message);
            // Where the person finds it, not where it is in the tree it was compiled from.
            place.map_or_else(
                || error.clone(),
                |found| error.clone().place(&SourceLocation { file: name.clone(), ..found }),
            )
        })?;
        let id = place.name().unwrap_or_default().trim_end_matches(".ts").to_owned();
        extensions.push((id, predicate));
    }
    Ok(extensions)
}

/// What the examples of rules may leave out, the tools themselves know.
struct Tools<'a>(&'a [Arc<dyn DynTool>]);

impl ToolCatalogue for Tools<'_> {
    fn look_up(&self, name: &str, arguments: &Value) -> Option<PolicyTool> {
        let is_called = |definition: &ToolDefinition| {
            definition.name.as_str() == name || definition.aliases.iter().any(|alias| alias == name)
        };
        let tool = self.0.iter().find(|tool| is_called(tool.definition()))?;
        let definition = tool.definition();
        Some(PolicyTool {
            name: definition.name.to_string(),
            aliases: definition.aliases.clone(),
            effect: definition.effect,
            targets: tool.targets(&completed(arguments, &definition.input_schema)).ok()?,
        })
    }
}

/// The arguments of an example with something for each that is required and left out: an example names what a rule is
/// about, and the content of a file that it writes is rarely that.
fn completed(arguments: &Value, schema: &Value) -> Value {
    let mut arguments = arguments.clone();
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    if let Some(fields) = arguments.as_object_mut() {
        for name in required.filter_map(Value::as_str) {
            let kind = schema.pointer(&format!("/properties/{name}/type")).and_then(Value::as_str);
            fields.entry(name).or_insert_with(|| match kind {
                Some("string") => "".into(),
                Some("integer" | "number") => 0.into(),
                Some("boolean") => false.into(),
                Some("array") => Value::Array(Vec::new()),
                _ => Value::Object(Map::new()),
            });
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_the_system_does_not_show_is_not_absent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(state_of(&folder.path().join("missing")), FileState::Absent);
        assert!(matches!(state_of(&file), FileState::There(_)));
        // Not even root can look below a file.
        assert_eq!(state_of(&file.join("rules")), FileState::Unknown(ErrorKind::NotADirectory));
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        assert!(matches!(state_of(&folder.path().join("link")), FileState::There(_)));
    }
}
