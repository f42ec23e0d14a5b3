//! What all parts of a valve share, and one scan of the tree from its beginning to its transaction.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tgp_contract::{Cancellation, Chronicle, Code, RelativePath, ToolError};

use crate::decide::TriggerMatcher;
use crate::failure::Failure;
use crate::journal::{Journal, JournalTx, Known, MetaKey};
use crate::lock::Lock;
use crate::mutex::locked;
use crate::personas::Personas;
use crate::reconcile::{Comparison, Deletions, UncertainDeletion};
use crate::tree::{Hashing, RULE_FILES, Rules, ScanObstacle, Scope, Seen, Stamp, Tree, Walk, WalkError};
use crate::{Actions, ValveClock};

/// Events that may wait for a chronicle before no more scans are made. The changes stay on the disk meanwhile, and are
/// found when there is room again.
const MAX_WAITING: u64 = 100_000;
/// Problems that were reported and are not reported again; beyond it some are reported twice.
const MAX_REPORTED: usize = 10_000;
/// Problems of one scan that are reported.
const MAX_PROBLEMS: usize = 100;
/// More than the largest file of personas.
const MAX_PERSONAS_BYTES: u64 = 1 << 20;

/// The kernel stamps files by a clock that moves a hundred times a second or more often.
const TICK: Duration = Duration::from_millis(20);

/// What all parts of a valve share.
pub(crate) struct Core {
    pub(crate) tree: Tree,
    journal: Mutex<Journal>,
    personas: Mutex<ActivePersonas>,
    pub(crate) personas_file: RelativePath,
    pub(crate) chronicle: Arc<dyn Chronicle>,
    pub(crate) actions: Arc<dyn Actions>,
    pub(crate) clock: ValveClock,
    pub(crate) all: bool,
    pub(crate) lock: Mutex<Lock>,
    reported: Mutex<HashSet<String>>,
    /// What has happened to the journal that this one has replaced, until it is reported.
    pub(crate) loss: Mutex<Option<String>>,
}

/// The personas in use, and the text that was read last, which may be broken.
struct ActivePersonas {
    personas: Arc<Personas>,
    text: Option<String>,
}

/// What a core is made of.
pub(crate) struct Parts {
    pub(crate) tree: Tree,
    pub(crate) journal: Journal,
    pub(crate) lock: Lock,
    pub(crate) loss: Option<String>,
}

/// What one scan has found.
#[derive(Debug, Default)]
pub(crate) struct ScanResult {
    pub(crate) files: u64,
    pub(crate) is_baseline: bool,
    pub(crate) changes: u64,
    pub(crate) problems: Vec<ToolError>,
    /// Files that are gone and were not reported as deleted yet.
    pub(crate) doubtful: Vec<UncertainDeletion>,
    /// The rules are others than at the last scan, so only the whole tree says what they mean. Nothing was written
    /// down.
    pub(crate) wants_whole: bool,
}

/// One look.
pub(crate) struct ScanRequest<'a> {
    pub(crate) scope: Scope,
    pub(crate) deletions: Deletions,
    /// Called for each directory before it is read.
    pub(crate) enter: &'a mut dyn FnMut(&RelativePath),
    /// The actions that are carried out now.
    pub(crate) suspects: &'a [u64],
    pub(crate) stop: &'a AtomicBool,
}

impl Core {
    pub(crate) fn new(parts: Parts, options: &crate::ValveOptions) -> Result<Self, ToolError> {
        let text = read_personas(&parts.tree, &options.personas_file)?;
        let personas = Personas::parse(&text, options.personas_file.as_str())?;
        Ok(Self {
            tree: parts.tree,
            journal: Mutex::new(parts.journal),
            personas: Mutex::new(ActivePersonas { personas: Arc::new(personas), text: Some(text) }),
            personas_file: options.personas_file.clone(),
            chronicle: Arc::clone(&options.chronicle),
            actions: Arc::clone(&options.actions),
            clock: Arc::clone(&options.clock),
            all: options.all,
            lock: Mutex::new(parts.lock),
            reported: Mutex::default(),
            loss: Mutex::new(parts.loss),
        })
    }

    pub(crate) fn now_ms(&self) -> u64 {
        (self.clock)()
    }

    pub(crate) fn personas(&self) -> Arc<Personas> {
        Arc::clone(&locked(&self.personas).personas)
    }

    /// Reads the file of personas again. Nothing when it is as it was; a broken one leaves the old personas in use.
    pub(crate) fn reload(&self) -> Option<Result<u64, ToolError>> {
        let read = read_personas(&self.tree, &self.personas_file);
        let mut held = locked(&self.personas);
        let text = match read {
            Ok(text) if held.text.as_ref() == Some(&text) => return None,
            Ok(text) => text,
            Err(_) if held.text.is_none() => return None,
            Err(failure) => {
                held.text = None;
                return Some(Err(failure.into()));
            }
        };
        let parsed = Personas::parse(&text, self.personas_file.as_str());
        held.text = Some(text);
        Some(parsed.map(|personas| {
            let count = personas.len() as u64;
            held.personas = Arc::new(personas);
            count
        }))
    }

    /// One transaction.
    pub(crate) fn transact<T>(
        &self,
        work: impl FnOnce(&JournalTx<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        locked(&self.journal).transact(work)
    }

    /// Compares the tree, or a part of it, with the journal, and writes down what follows from it.
    pub(crate) fn look(&self, look: ScanRequest<'_>) -> Result<ScanResult, Failure> {
        let ScanRequest { scope, deletions, enter, suspects, stop } = look;
        let began_ns = system_ns();
        let (stored, last_look, waiting) = self.transact(|ledger| {
            let is_known = ledger.number(MetaKey::HasBaseline)?.is_some();
            let last_look = ledger.number(MetaKey::LastLookNs)?.unwrap_or_default();
            let last_look = is_known.then(|| i64::try_from(last_look).unwrap_or(i64::MAX));
            Ok((ledger.rules()?, last_look, ledger.event_count()?))
        })?;
        let is_first = last_look.is_none();
        if waiting >= MAX_WAITING {
            return Err(Failure::Full { waiting });
        }
        let (mut known, seen) = self.compared(&scope, enter, stop)?;
        let is_whole = scope == Scope::Whole;
        if !is_whole && (is_first || rules_differ(&seen, &stored)) {
            return Ok(ScanResult { wants_whole: true, ..ScanResult::default() });
        }
        let texts = seen.rules.texts.clone();
        let old_rules = (is_whole && texts != stored).then(|| Rules::from_texts(stored, self.tree.layout()));
        let mut recalled = Vec::new();
        if old_rules.is_some() {
            // What is no longer ignored is compared with what was last reported of it.
            for (path, sha256) in self.hidden()? {
                if !seen.rules.ignores_file(&path) {
                    known.entry(path.clone()).or_insert_with(|| Known::recalled(sha256));
                    recalled.push(path);
                }
            }
        }
        let personas = self.personas();
        let mut hashing = Hashing::new(&self.tree, stop, personas.want_contents());
        let comparison = Comparison {
            hashing: &mut hashing,
            personas: &personas,
            old_rules: old_rules.as_ref(),
            last_look_ns: last_look.unwrap_or_default(),
            is_silent: is_first && !self.all,
            deletions: &deletions,
        };
        let difference = comparison.run(known, seen)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Stopped);
        }
        let now_ms = self.now_ms();
        let files = self.transact(|ledger| {
            for path in &recalled {
                ledger.unhide(path)?;
            }
            for path in &difference.forgotten {
                ledger.forget(path)?;
            }
            for (path, sha256) in &difference.hidden {
                ledger.hide(path, sha256)?;
            }
            for (path, known) in &difference.remembered {
                ledger.remember(path, known)?;
            }
            if old_rules.is_some() {
                ledger.set_rules(&texts)?;
            }
            let mut decider = TriggerMatcher::new(ledger, &personas, now_ms, suspects)?;
            decider.release()?;
            for found in &difference.found {
                decider.decide(found)?;
            }
            if is_whole {
                ledger.set_number(MetaKey::HasBaseline, 1)?;
                ledger.set_number(MetaKey::LastScanMs, now_ms)?;
                ledger.set_number(MetaKey::LastLookNs, began_ns)?;
            }
            ledger.file_count()
        })?;
        Ok(ScanResult {
            files,
            is_baseline: is_first && !self.all,
            changes: difference.found.len() as u64,
            problems: self.news(&difference.blind, is_whole),
            doubtful: difference.doubtful,
            wants_whole: false,
        })
    }

    /// What is known of a scope, and what is there. A file that came into it from elsewhere, or was renamed while it was
    /// walked, brings along the name by which it is known.
    fn compared(
        &self,
        scope: &Scope,
        enter: &mut dyn FnMut(&RelativePath),
        stop: &AtomicBool,
    ) -> Result<(HashMap<RelativePath, Known>, Seen), Failure> {
        let mut known = self.transact(|ledger| ledger.known(scope))?;
        let mut seen = Walk { tree: &self.tree, stop, enter }.run(scope).map_err(|error| match error {
            WalkError::Root(source) => Failure::Project { path: self.tree.root().to_owned(), source },
            WalkError::TooMany(most) => Failure::TooManyFiles(most),
            WalkError::Stopped => Failure::Stopped,
        })?;
        if *scope != Scope::Whole {
            let new = seen.files.iter().filter(|(path, _)| !known.contains_key(path));
            let stamps: Vec<Stamp> = new.map(|(_, stamp)| stamp.clone()).collect();
            let mut origins = self.transact(|ledger| ledger.known_as(&stamps))?;
            // A second link to the same file stays where it is.
            origins.retain(|(path, _)| {
                let there = std::fs::symlink_metadata(self.tree.at(path));
                there.is_err_and(|error| error.kind() == ErrorKind::NotFound)
            });
            let left: HashSet<&RelativePath> = origins.iter().map(|(path, _)| path).collect();
            seen.files.retain(|(path, _)| !left.contains(path));
            known.extend(origins);
        }
        Ok((known, seen))
    }

    fn hidden(&self) -> Result<Vec<(RelativePath, String)>, Failure> {
        self.transact(|ledger| {
            let hidden = ledger.hidden()?;
            Ok(hidden)
        })
    }

    /// Reports what has waited for the end of a cooldown.
    pub(crate) fn release(&self, suspects: &[u64]) -> Result<(), Failure> {
        let (personas, now_ms) = (self.personas(), self.now_ms());
        self.transact(|ledger| TriggerMatcher::new(ledger, &personas, now_ms, suspects)?.release())
    }

    /// What was not reported before.
    fn news(&self, blind: &[ScanObstacle], is_whole: bool) -> Vec<ToolError> {
        let mut reported = locked(&self.reported);
        let mut current = HashSet::new();
        let mut news = Vec::new();
        for error in blind.iter().map(problem) {
            let key = error.message.clone();
            if !reported.contains(&key) && !current.contains(&key) && news.len() < MAX_PROBLEMS {
                news.push(error);
            }
            if current.len() < MAX_REPORTED {
                current.insert(key);
            }
        }
        // A full scan knows all problems there are; what it did not meet is over, and is news when it comes again.
        if is_whole || reported.len() > MAX_REPORTED {
            *reported = current;
        } else {
            reported.extend(current);
        }
        news
    }
}

/// The time of the system, which is what files are stamped with, less the tick by which their stamps may lag behind.
fn system_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

fn problem(blind: &ScanObstacle) -> ToolError {
    match blind {
        ScanObstacle::Unreadable(path, error) => {
            ToolError::new(Code::Permission, format!("`{path}` cannot be read: {error}"))
                .help("make it readable, or ignore it; until then it counts as unchanged")
                .detail("path", path.as_str())
        }
        ScanObstacle::Unspeakable(directory, name) => ToolError::new(
            Code::Validation,
            format!("`{name}` in `{directory}` has a name no event can tell"),
        )
        .help("rename it to UTF-8 without control characters and backslashes, or ignore it")
        .detail("path", directory.as_str()),
        ScanObstacle::Rules(path, what) => {
            ToolError::new(Code::Config, format!("the rules of `{path}` are not applied: {what}"))
                .help("keep the file small and readable")
                .detail("path", path.as_str())
        }
    }
}

/// Whether a scanned directory has other rules than at the last scan.
fn rules_differ(seen: &Seen, stored: &std::collections::BTreeMap<RelativePath, String>) -> bool {
    let differs = |path: &RelativePath| seen.rules.texts.get(path) != stored.get(path);
    !seen.rules.has_same_outside(stored)
        || seen.ruled.iter().any(|directory| {
            RULE_FILES.iter().any(|name| directory.join(name).is_ok_and(|path| differs(&path)))
        })
}

pub(crate) fn read_personas(tree: &Tree, path: &RelativePath) -> Result<String, Failure> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => Failure::NoPersonas(path.clone()),
        _ => Failure::Personas { path: path.clone(), source },
    };
    let file = tree.open_file(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::from(std::io::ErrorKind::InvalidInput)));
    }
    let mut text = String::new();
    file.take(MAX_PERSONAS_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_PERSONAS_BYTES {
        return Err(Failure::LargePersonas(path.clone()));
    }
    Ok(text)
}

/// Runs what blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    core: &Arc<Core>,
    work: impl FnOnce(&Core) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let core = Arc::clone(core);
    let done = tokio::task::spawn_blocking(move || work(&core)).await;
    done.unwrap_or_else(|error| Err(Failure::Thread(error.to_string())))
}

/// A cancellation that can be asked again after it was granted.
pub(crate) struct Stop<'a> {
    cancelled: Cancellation<'a>,
    is_wanted: bool,
}

impl<'a> Stop<'a> {
    pub(crate) fn new(cancelled: Cancellation<'a>) -> Self {
        Self { cancelled, is_wanted: false }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Completes when the work is no longer wanted.
    pub(crate) async fn wanted(&mut self) {
        if !self.is_wanted {
            self.cancelled.as_mut().await;
            self.is_wanted = true;
        }
    }
}
