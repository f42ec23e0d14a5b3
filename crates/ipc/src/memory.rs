//! What clients may make the kernel hold: bytes on their way in, values made of them, answers on their way out.
//!
//! Each is counted for all clients together, and for the clients of one token family together: a client that connects
//! often with one token, or with tokens derived from it, gets no more than one that connects once. A limit that is
//! reached refuses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tgp_contract::{Code, JsonLimits, JsonSize, ToolError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes for the requests of one token family: more than the largest frame with the most values.
const REQUESTS_OF_FAMILY: usize = 64 << 20;
/// Bytes for the requests of all clients.
const REQUESTS_OF_ALL: usize = 256 << 20;
/// Bytes of answers that one token family has not taken yet.
const ANSWERS_OF_FAMILY: usize = 64 << 20;
/// Bytes of answers that all clients together have not taken yet.
const ANSWERS_OF_ALL: usize = 256 << 20;
/// What a value of a request counts: it takes 72 bytes, and a call holds its arguments several times.
const BYTES_OF_VALUE: usize = 256;
/// What is counted at a time, so that numbers of bytes fit a semaphore.
const UNIT: usize = 1 << 10;

/// The memory of one server's clients.
#[derive(Debug)]
pub(crate) struct Memory {
    requests: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    /// Those that have clients; never more than there are connections.
    families: Mutex<BTreeMap<String, Weak<Family>>>,
}

/// The memory of one token family's clients.
#[derive(Debug)]
struct Family {
    requests: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

/// What one client counts in.
#[derive(Clone, Debug)]
pub(crate) struct ClientMemory {
    all: Arc<Memory>,
    family: Arc<Family>,
}

/// Memory in use, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    family: OwnedSemaphorePermit,
    all: OwnedSemaphorePermit,
}

impl Held {
    /// Gives back what is more than a frame of this size takes.
    pub(crate) fn keep(&mut self, length: usize, size: JsonSize) {
        let wanted = units(weight(length, size.values)) as usize;
        for permit in [&mut self.family, &mut self.all] {
            let more = permit.num_permits().saturating_sub(wanted);
            drop(permit.split(more));
        }
    }
}

/// What a frame counts with so many values in it.
fn weight(length: usize, values: usize) -> usize {
    length.saturating_add(values.saturating_mul(BYTES_OF_VALUE))
}

fn semaphore(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes / UNIT))
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            requests: semaphore(REQUESTS_OF_ALL),
            answers: semaphore(ANSWERS_OF_ALL),
            families: Mutex::default(),
        })
    }

    /// The share of a client of this family.
    pub(crate) fn of(self: &Arc<Self>, family: &str) -> ClientMemory {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        families.retain(|_, family| family.strong_count() > 0);
        let known = families.get(family).and_then(Weak::upgrade);
        let shared = known.unwrap_or_else(|| {
            let made = Arc::new(Family {
                requests: semaphore(REQUESTS_OF_FAMILY),
                answers: semaphore(ANSWERS_OF_FAMILY),
            });
            families.insert(family.to_owned(), Arc::downgrade(&made));
            made
        });
        ClientMemory { all: Arc::clone(self), family: shared }
    }
}

impl ClientMemory {
    /// Counts a frame before it is read, with as many values as so many bytes can hold. Requests of the family that are
    /// under way are waited for, up to `patience`; those of others are not. It is counted at once, since frames that wait
    /// for each other with a half of their memory in hand would all wait in vain.
    pub(crate) async fn hold(&self, length: usize, patience: Duration) -> Result<Held, ToolError> {
        let values = JsonLimits::ARGUMENTS.values.min(length);
        let wanted = units(weight(length, values));
        let waiting = Arc::clone(&self.family.requests).acquire_many_owned(wanted);
        let family = tokio::time::timeout(patience, waiting).await.ok().and_then(Result::ok);
        let family = family.ok_or_else(|| full("the requests of this token take too much memory"))?;
        let all = Arc::clone(&self.all.requests).try_acquire_many_owned(wanted);
        let all = all.map_err(|_| full("the requests of all clients take too much memory"))?;
        Ok(Held { family, all })
    }

    /// Counts an answer until it is written; nothing when there is no room for it.
    pub(crate) fn hold_answer(&self, bytes: usize) -> Option<Held> {
        let own = Arc::clone(&self.family.answers).try_acquire_many_owned(units(bytes)).ok()?;
        let all = Arc::clone(&self.all.answers).try_acquire_many_owned(units(bytes)).ok()?;
        Some(Held { family: own, all })
    }
}

fn full(message: &str) -> ToolError {
    ToolError::new(Code::Budget, message).help("wait for answers before sending more, or send less at a time")
}
