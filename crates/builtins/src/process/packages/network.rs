//! The network of an installation: a proxy of the kernel, which asks the gates about every host before it connects.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tgp_contract::{Code, Target, ToolError, background};
use tgp_fetch::{ConnectProxy, ProxyEvent, ProxyOutcome, ProxyQuestion};
use tgp_router::Invocation;
use tokio::sync::mpsc;

/// Where a manager finds the proxy. Its network is its own, so the port is free.
pub(super) const PROXY_PORT: u16 = 3128;

/// The port of an index of packages.
const HTTPS_PORT: u16 = 443;

/// Hosts that one installation may ask for. Packages come from a handful.
const MAX_HOSTS: usize = 32;

/// Questions that wait for their turn. More connections wait in the proxy.
const MAX_WAITING: usize = 64;

/// Bytes that one installation downloads to its own directory.
const MAX_DOWNLOAD_BYTES: u64 = 4 << 30;

/// How often they are counted.
const COUNT_PAUSE: Duration = Duration::from_secs(1);

/// Hosts that were refused or could not be reached, for the error of an installation that failed.
#[derive(Clone, Default)]
pub(super) struct Unreached(Arc<Mutex<Option<String>>>);

impl Unreached {
    fn note(&self, why: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// The first of them.
    pub(super) fn first(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Serves the connections of an installation until a gate has something against a host, or more is downloaded than may be,
/// and returns that.
pub(super) async fn serve(
    listener: TcpListener,
    invocation: Invocation<'_>,
    unreached: &Unreached,
    downloads: PathBuf,
    manager: &'static str,
) -> ToolError {
    let opened = listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
    let listener = match opened {
        Ok(listener) => listener,
        Err(error) => return ToolError::new(Code::Internal, format!("the jail has no network: {error}")),
    };
    let (questions, mut asked) = mpsc::channel(MAX_WAITING);
    let seen = unreached.clone();
    let proxy = ConnectProxy::asking(questions).with_observer(move |event: ProxyEvent| match event.outcome {
        ProxyOutcome::Refused(refusal) => seen.note(refusal.to_string()),
        ProxyOutcome::Failed(why) => seen.note(why),
        ProxyOutcome::Opened | ProxyOutcome::Closed { .. } => {}
    });
    let answers = async {
        let mut known = BTreeSet::new();
        while let Some(question) = asked.recv().await {
            if let Err(error) = answer(question, &mut known, invocation).await {
                return error;
            }
        }
        ToolError::new(Code::Internal, "the proxy of the installation has ended")
    };
    tokio::select! {
        never = proxy.serve(listener) => match never {},
        error = answers => error,
        error = too_much(downloads, manager) => error,
    }
}

/// Ends when a directory has more bytes than one installation may download.
async fn too_much(downloads: PathBuf, manager: &str) -> ToolError {
    loop {
        tokio::time::sleep(COUNT_PAUSE).await;
        let directory = downloads.clone();
        let counted = background::run(move || Ok(tgp_jail::exceeds(&directory, MAX_DOWNLOAD_BYTES))).await;
        // What cannot be counted is too much.
        if counted.unwrap_or(true) {
            let message = format!("{manager} downloaded more than {} MB", MAX_DOWNLOAD_BYTES >> 20);
            return ToolError::new(Code::Runtime, message)
                .detail("limit", MAX_DOWNLOAD_BYTES)
                .help("nothing was installed; install fewer packages, or ask the user to install them");
        }
    }
}

/// Takes a host past the gates, once for all its connections. Where the name leads into a network that is not public,
/// the address is a host of its own: the name alone does not tell.
async fn answer(
    question: ProxyQuestion,
    known: &mut BTreeSet<String>,
    invocation: Invocation<'_>,
) -> Result<(), ToolError> {
    let name = question.address().map_or_else(|| question.target().host(), |address| address.to_string());
    let port = question.target().port();
    let host = format!("{name}:{port}");
    if !known.contains(&host) {
        if known.len() == MAX_HOSTS {
            let message = format!("the installation wants to reach more than {MAX_HOSTS} hosts");
            question.refuse(message.as_str());
            return Err(ToolError::new(Code::Policy, message)
                .detail("limit", MAX_HOSTS)
                .help("nothing was installed"));
        }
        // Another port is another service: a rule that denies the host means it as well, one that allows it does not.
        let mut targets = vec![Target::Host { host: name.clone() }];
        if port != HTTPS_PORT {
            targets.push(Target::Host { host: host.clone() });
        }
        let judged = invocation.router.judge_further(invocation, invocation.call, &targets, false).await;
        if let Err(error) = judged {
            question.refuse(error.message.as_str());
            return Err(error.detail("host", name));
        }
        known.insert(host);
    }
    question.allow();
    Ok(())
}
