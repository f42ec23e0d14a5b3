//! The rules in force: read from files, and read again when a file has changed, with no moment in between.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value};
use tgp_contract::{Code, FileSystem, RelativePath, SourceLocation, ToolDefinition, ToolError};
use tgp_fs::{MemoryFs, Stamp, real_place};
use tgp_policy::{Policy, PolicyError, PolicySettings, PolicySource, PolicyTool, SourceTrust, ToolCatalogue};
use tgp_text::{RulePurpose, looks_like_rule};
use tokio::sync::Mutex;

use super::rule_files::{DIRECTORY, MAX_FILES, RuleDirectory};
use super::{Predicate, PredicateCompiler, RuleFileCheck};
use crate::router::DynTool;

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
    /// Files that the configuration names, relative to the project, in addition to those with the usual names. They have to
    /// exist.
    pub files: Vec<String>,
    /// Looks for those that would not be read.
    pub check: Arc<RuleFileCheck>,
    pub settings: PolicySettings,
    pub trust: Arc<dyn RuleTrust>,
}

/// Rules that were read together.
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    /// By the name of their file.
    pub(crate) extensions: Vec<(String, Arc<dyn Predicate>)>,
    /// The files that were read, those without rules too.
    pub(crate) files: Vec<String>,
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

/// The files of rules.
struct RulePlaces {
    files: RuleFiles,
    /// Those that the configuration names.
    named: Vec<PathBuf>,
    /// The file that a confirmation changes.
    record: Option<PathBuf>,
    directory: RuleDirectory,
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
        let directory = RuleDirectory::new(files.tool_root.join(DIRECTORY));
        let named = files.files.iter().map(|file| files.project.join(file)).collect();
        let places = RulePlaces { files, named, record, directory };
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
        let usual = RulePurpose::Policy.paths().iter().map(|name| self.files.project.join(name));
        let usual = usual.filter(|path| !self.named.contains(path));
        self.in_directory()
            .into_iter()
            .chain(usual)
            .chain(self.named.iter().cloned())
            // While there is one of these, no call has an effect.
            .filter(|path| !self.files.check.is_unconfirmed(path))
            .chain(self.record.clone())
            .map(|path| SeenFile { state: state_of(&path), path })
            .collect()
    }

    /// The files in the directory of rules. One that cannot be listed is read like a file, and found unreadable.
    fn in_directory(&self) -> Vec<PathBuf> {
        let is_rule = |path: &&PathBuf| is_rule(path) || path.is_dir();
        match self.directory.files() {
            Ok(files) => files.iter().filter(is_rule).take(MAX_FILES + 1).cloned().collect(),
            Err(directory) => vec![directory],
        }
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

    /// Whether a file is neither in the project nor in the tool repository, by its name or by a link.
    fn is_outside(&self, path: &Path) -> bool {
        let place = real_place(path);
        !place.starts_with(&self.project) && !place.starts_with(real_place(&self.tool_root))
    }

    /// How a file is called in messages.
    fn name(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.project).unwrap_or(path);
        shown.display().to_string()
    }
}

fn is_rule(path: &Path) -> bool {
    path.file_name().is_some_and(|name| looks_like_rule(&name.to_string_lossy()) == Some(true))
}

fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ts")
}

async fn read(
    RulePlaces { files, named, record, .. }: &RulePlaces,
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
    let mut outside = Vec::new();
    for SeenFile { path, state } in seen {
        let name = files.name(path);
        let text = match state {
            FileState::Absent if named.contains(path) => {
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
        if files.is_outside(path) {
            // A person confirms what the configuration names; what a link in the tool repository leads to is not shown.
            if !named.contains(path) && path.starts_with(&files.tool_root) {
                let message =
                    format!("`{name}` is a link that leads out of the project and of the tool repository");
                return Err(ToolError::new(Code::Config, message)
                    .help("put the file itself there, or remove the link"));
            }
            outside.push(name.clone());
        }
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
    let read = sources.iter().map(|source| source.file.clone()).collect();
    let loaded = Policy::load_with(&sources, &files.settings, &Tools(tools));
    let policy = loaded.map_err(|error| without_contents(error, &outside))?;
    let extensions = compile(predicates, &files.tool_root, scripts).await?;
    let look_back = policy.rules().any(|rule| rule.is_sequence);
    let need_state = policy.depends_on_state() || !extensions.is_empty();
    Ok(Rules { policy, extensions, files: read, look_back, need_state, foreign, generation })
}

/// The error, without anything that a file outside the project holds.
fn without_contents(error: PolicyError, outside: &[String]) -> ToolError {
    let hidden = error.problems().find(|problem| outside.contains(&problem.place.file)).cloned();
    let error = ToolError::from(error);
    match hidden {
        Some(problem) => error.place(&problem.place).without_contents(&problem.place.file),
        None => error,
    }
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
    tool_root: &Path,
    scripts: Vec<(String, &PathBuf, String)>,
) -> Result<Vec<(String, Arc<dyn Predicate>)>, ToolError> {
    let directory = tool_root.join(DIRECTORY);
    let tree: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
    let mut paths = Vec::new();
    for (name, path, text) in scripts {
        // One that the configuration names may be anywhere.
        let below = path.strip_prefix(&directory).ok().or_else(|| path.file_name().map(Path::new));
        let below = below.unwrap_or(path);
        let place = RelativePath::new(&format!("{DIRECTORY}/{}", below.to_string_lossy()))?;
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
        let id = place.as_str().strip_prefix(DIRECTORY).unwrap_or(place.as_str());
        let id = id.trim_start_matches('/').trim_end_matches(".ts").to_owned();
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
