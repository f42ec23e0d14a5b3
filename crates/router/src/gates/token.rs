//! Tokens narrow what the rules allow, for the caller that carries one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tgp_contract::{
    CallRecord, CapabilityToken, Code, Effect, FileFilter, Gate, GateRequest, RelativePath, Root, Stage,
    Target, ToolError, Verdict, background,
};
use tgp_policy::{Caveats, Grant, Reservation, TokenKey, TokenLedger};
use tgp_text::now_ms;

use super::policy::{PolicyContext, TddView};

/// The kernel's secret and its counters, made when they are first needed.
const KEY_FILE: &str = "token.key";
const LEDGER_FILE: &str = "tokens.sqlite";
/// The families of tokens that a person has ended, one per line.
const REVOKED_FILE: &str = "tokens.revoked";
/// Bytes of that file: some ten thousand families. A larger one covers every token.
const MAX_REVOKED_BYTES: u64 = 1 << 20;

/// Makes, narrows and verifies the tokens of one kernel.
pub struct TokenAuthority {
    directory: PathBuf,
    opened: Mutex<Option<Arc<Opened>>>,
    revoked: Mutex<RevokedFamilies>,
}

/// The revoked families as they were read last. Other processes write the file too.
#[derive(Default)]
struct RevokedFamilies {
    stamp: Option<(u64, i64, i64)>,
    families: BTreeSet<String>,
}

struct Opened {
    key: TokenKey,
    ledger: TokenLedger,
}

impl TokenAuthority {
    /// `directory` is where the kernel keeps what is not source.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, opened: Mutex::default(), revoked: Mutex::default() }
    }

    /// A new token.
    ///
    /// # Errors
    /// `EVALIDATION` for caveats that mean nothing, `EINTERNAL` when the key cannot be kept.
    pub fn mint(&self, caveats: &Caveats) -> Result<CapabilityToken, ToolError> {
        tgp_policy::mint(&self.opened()?.key, caveats)
    }

    /// Whether a token is one of this kernel and has not ended.
    ///
    /// # Errors
    /// `EPOLICY` with the reason.
    pub fn verify(&self, token: &CapabilityToken) -> Result<Grant, ToolError> {
        let grant = tgp_policy::verify(&self.opened()?.key, token)?;
        match grant.expires_ms() {
            Some(end) if end <= now_ms() => Err(ToolError::new(Code::Policy, "the token has expired")
                .detail("token", "expired")
                .help("ask its issuer for a new one")),
            _ if self.is_revoked(grant.family_id())? => {
                Err(ToolError::new(Code::Policy, "the token was revoked")
                    .detail("token", "revoked")
                    .help("ask its issuer for a new one"))
            }
            _ => Ok(grant),
        }
    }

    /// Ends a token with its whole family: the token that the kernel made, and everything derived from it.
    ///
    /// # Errors
    /// `EPOLICY` when it is none of this kernel or has ended; `EINTERNAL` when that cannot be kept.
    pub fn revoke(&self, token: &CapabilityToken) -> Result<Grant, ToolError> {
        let grant = self.verify(token)?;
        let path = self.directory.join(REVOKED_FILE);
        let line = format!("{}\n", grant.family_id());
        let length = std::fs::metadata(&path).map_or(0, |found| found.len());
        if length + line.len() as u64 > MAX_REVOKED_BYTES {
            let message = format!("`{}` is full", path.display());
            return Err(ToolError::new(Code::Internal, message)
                .help("mint tokens that expire, instead of revoking them"));
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(nix::libc::O_NOFOLLOW);
        options
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_all()))
            .map_err(|error| unusable(&path, &error))?;
        Ok(grant)
    }

    /// Whether a family was revoked, in this process or in another one.
    fn is_revoked(&self, family: &str) -> Result<bool, ToolError> {
        let path = self.directory.join(REVOKED_FILE);
        let found = match std::fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(unusable(&path, &error)),
        };
        if !found.is_file() || found.len() > MAX_REVOKED_BYTES {
            return Err(unusable(&path, &std::io::ErrorKind::InvalidData.into()));
        }
        let stamp = (found.len(), found.mtime(), found.mtime_nsec());
        let mut revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        if revoked.stamp != Some(stamp) {
            let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
            *revoked =
                RevokedFamilies { stamp: Some(stamp), families: text.lines().map(str::to_owned).collect() };
        }
        Ok(revoked.families.contains(family))
    }

    fn opened(&self) -> Result<Arc<Opened>, ToolError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = opened.as_ref() {
            return Ok(Arc::clone(opened));
        }
        let path = self.directory.join(KEY_FILE);
        let failed = |error: std::io::Error| {
            ToolError::new(Code::Internal, format!("the token key `{}`: {error}", path.display()))
                .help("check the permissions of the directory and the free space of the disk")
        };
        let key = match read_key(&path).map_err(failed)? {
            Some(key) => key,
            None => make_key(&path, failed)?,
        };
        let ledger = TokenLedger::open(&self.directory.join(LEDGER_FILE))?;
        let made = Arc::new(Opened { key, ledger });
        *opened = Some(Arc::clone(&made));
        Ok(made)
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> ToolError {
    ToolError::new(Code::Internal, format!("the revoked tokens in `{}`: {error}", path.display()))
        .help("check the owner and the permissions of the file; no token is accepted until it can be read")
}

fn read_key(path: &Path) -> std::io::Result<Option<TokenKey>> {
    let mut bytes = [0_u8; 32];
    match std::fs::File::open(path) {
        Ok(mut file) => file.read_exact(&mut bytes).map(|()| Some(TokenKey::from_bytes(bytes))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the key under another name and links it, so that of two kernels one wins and both use the same key.
fn make_key(path: &Path, failed: impl Fn(std::io::Error) -> ToolError) -> Result<TokenKey, ToolError> {
    let key = TokenKey::generate()?;
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut file| file.write_all(key.reveal()).and_then(|()| file.sync_all()))
        .and_then(|()| match std::fs::hard_link(&aside, path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        });
    let _ = std::fs::remove_file(&aside);
    written.map_err(&failed)?;
    let missing = || failed(std::io::ErrorKind::NotFound.into());
    read_key(path).map_err(&failed)?.ok_or_else(missing)
}

/// Refuses what a caller's token does not cover.
pub struct TokenGate {
    tokens: Arc<TokenAuthority>,
    tdd: Arc<dyn TddView>,
    /// Calls that were counted and have not ended; without a reservation while the ledger counts them.
    spent: Arc<Mutex<BTreeMap<u64, Option<Reservation>>>>,
}

impl TokenGate {
    #[must_use]
    pub fn new(tokens: Arc<TokenAuthority>, tdd: Arc<dyn TddView>) -> Self {
        Self { tokens, tdd, spent: Arc::default() }
    }

    fn check(&self, request: &GateRequest<'_>, token: &CapabilityToken) -> Result<Grant, ToolError> {
        let grant = self.tokens.verify(token)?;
        let targets = chosen(request);
        let request = &GateRequest { targets: &targets, ..*request };
        let judged = PolicyContext::new(self.tdd.as_ref(), request);
        grant.check(&judged.question(request), now_ms())?;
        Ok(grant)
    }

    /// Counts a call. The ledger is a database that several processes share, and may be busy.
    async fn spend(&self, serial: u64, grant: &Grant) -> Result<(), ToolError> {
        if grant.is_counted() {
            let (tokens, spent, grant) = (Arc::clone(&self.tokens), Arc::clone(&self.spent), grant.clone());
            locked(&spent).insert(serial, None);
            background::run(move || {
                let counted = tokens.opened().and_then(|opened| {
                    let reservation = opened.ledger.spend(&grant, now_ms())?;
                    Ok((opened, reservation))
                });
                let mut spent = locked(&spent);
                match (counted, spent.contains_key(&serial)) {
                    (Ok((_, reservation)), true) => {
                        spent.insert(serial, Some(reservation));
                        Ok(())
                    }
                    // The caller has gone away meanwhile, and its call is settled.
                    (Ok((opened, reservation)), false) => {
                        drop(spent);
                        opened.ledger.refund(reservation)
                    }
                    (Err(error), _) => {
                        spent.remove(&serial);
                        Err(error)
                    }
                }
            })
            .await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Gate for TokenGate {
    fn stage(&self) -> Stage {
        Stage::Policy
    }

    fn name(&self) -> &str {
        "token"
    }

    async fn judge(&self, request: GateRequest<'_>) -> Verdict {
        let Some(token) = &request.context.token else { return Verdict::Allow { rule: "none".to_owned() } };
        let checked = match self.check(&request, token) {
            Ok(grant) => self.spend(request.serial, &grant).await.map(|()| grant),
            Err(error) => Err(error),
        };
        match checked {
            Ok(grant) => Verdict::Allow { rule: format!("token/{}", grant.id()) },
            Err(error) => Verdict::Deny { rule: "token".to_owned(), error },
        }
    }

    async fn judge_further(&self, request: GateRequest<'_>) -> Verdict {
        let Some(token) = &request.context.token else { return Verdict::Allow { rule: "none".to_owned() } };
        match self.check(&request, token) {
            Ok(grant) => Verdict::Allow { rule: format!("token/{}", grant.id()) },
            Err(error) => Verdict::Deny { rule: "token".to_owned(), error },
        }
    }

    async fn judge_changes(&self, request: GateRequest<'_>) -> Verdict {
        let Some(token) = &request.context.token else { return Verdict::Allow { rule: "none".to_owned() } };
        match self.tokens.verify(token).and_then(|grant| check_files(&grant, self.tdd.as_ref(), &request)) {
            Ok(()) => Verdict::Allow { rule: "token".to_owned() },
            Err(error) => Verdict::Deny { rule: "token".to_owned(), error },
        }
    }

    async fn file_filter(&self, request: GateRequest<'_>) -> Option<FileFilter> {
        let token = request.context.token.as_ref()?;
        let Ok(grant) = self.tokens.verify(token) else { return Some(Arc::new(|_, _, _| false)) };
        let (call, definition) = (request.call.clone(), request.definition.clone());
        let (context, tdd) = (request.context.clone(), Arc::clone(&self.tdd));
        Some(Arc::new(move |root, path, access| {
            let targets = [Target::File { root, path: path.clone(), access }];
            let request = GateRequest {
                serial: 0,
                call: &call,
                definition: &definition,
                context: &context,
                targets: &targets,
                proposed: None,
            };
            let judged = PolicyContext::new(tdd.as_ref(), &request);
            grant.check(&judged.question(&request), now_ms()).is_ok()
        }))
    }

    async fn may_restrict_below(
        &self,
        request: GateRequest<'_>,
        _root: Root,
        _directory: &RelativePath,
    ) -> bool {
        let Some(token) = &request.context.token else { return false };
        // Reading, which is asked for with targets, is the file filter's alone: a token has no exceptions below a directory.
        let is_filtered = !request.targets.is_empty();
        self.tokens.verify(token).map_or(true, |grant| grant.limits_paths() && !is_filtered)
    }

    fn on_finished(&self, record: &CallRecord) {
        let reservation = locked(&self.spent).remove(&record.serial).flatten();
        if let Some(reservation) = reservation
            && !record.execution.has_started()
            && let Ok(opened) = self.tokens.opened()
        {
            // A call that cannot be given back stays spent, which is the strict side.
            let _ = background::in_place(|| opened.ledger.refund(reservation));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the caller has chosen. The host of a write is the remote of the tools, which the configuration has chosen; a
/// token that is limited to paths need not name it.
fn chosen<'a>(request: &GateRequest<'a>) -> Cow<'a, [Target]> {
    let is_remote = |target: &Target| matches!(target, Target::Host { .. });
    if request.definition.effect == Effect::Write && request.targets.iter().any(is_remote) {
        return request.targets.iter().filter(|target| !is_remote(target)).cloned().collect();
    }
    Cow::Borrowed(request.targets)
}

/// Each changed file against the token, under the name of the tool that changed it.
fn check_files(grant: &Grant, tdd: &dyn TddView, request: &GateRequest<'_>) -> Result<(), ToolError> {
    for target in request.targets {
        let one = GateRequest { targets: std::slice::from_ref(target), ..*request };
        let judged = PolicyContext::new(tdd, &one);
        grant.check(&judged.question(&one), now_ms())?;
    }
    Ok(())
}
