//! Taking the anchor to the remote, where it replaces only what this machine has put there.
//!
//! A machine whose record was rolled back or copied would otherwise wipe out the one trace of it that is left.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::Ordering;

use git2::Oid;

use crate::anchor::Anchored;
use crate::anchor_note::Note;
use crate::command::{Finished, words};
use crate::failure::blocking;
use crate::network::Network;
use crate::push_report::{has_taken, lines_of};
use crate::scratch::{BORROWED, ScratchRepo};

/// What a person has to know.
const DISPUTED: &str = "the remote has another head of this machine's audit, so the record here was rolled back or \
    copied; the remote's was kept, and a person should look at both: begin with `tgp audit verify`";

/// What the remote must have for the anchor to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lease {
    Nothing,
    Only(Oid),
}

impl From<Option<Oid>> for Lease {
    fn from(anchor: Option<Oid>) -> Self {
        anchor.map_or(Self::Nothing, Self::Only)
    }
}

impl Lease {
    /// The option of `git push`. It forces, too: an anchor follows no other.
    pub(crate) fn option(self, anchored: &Anchored) -> OsString {
        let expected = match self {
            Self::Nothing => String::new(),
            Self::Only(anchor) => anchor.to_string(),
        };
        format!("--force-with-lease={}:{expected}", anchored.remote_reference()).into()
    }
}

/// Without a `+`, which would override the lease.
pub(crate) fn refspec(anchored: &Anchored) -> OsString {
    format!("{}:{}", anchored.commit, anchored.remote_reference()).into()
}

impl Network {
    /// `why`, and that the remote's anchor is not one of ours, if that was found.
    pub(crate) fn with_dispute(&self, why: Option<String>) -> Option<String> {
        match (why, self.dispute()) {
            (Some(why), Some(dispute)) => Some(format!("{why}; {dispute}")),
            (why, dispute) => why.or(dispute),
        }
    }

    pub(crate) fn dispute(&self) -> Option<String> {
        self.is_disputed.load(Ordering::Relaxed).then(|| DISPUTED.to_owned())
    }

    /// The anchor, ready to be pushed from the scratch repository.
    pub(crate) async fn anchor_for(&self, scratch: &ScratchRepo) -> Option<Anchored> {
        let (anchors, objects) = (self.anchors.clone(), scratch.objects());
        let mut borrowed = self.git.join("objects").into_os_string().into_vec();
        borrowed.push(b'\n');
        let prepare = move || {
            let anchored = anchors.for_push(&objects)?;
            fs::create_dir_all(objects.join(BORROWED).parent()?).ok()?;
            fs::write(objects.join(BORROWED), borrowed).ok()?;
            Some(anchored)
        };
        blocking(move || Ok(prepare())).await.ok().flatten()
    }

    /// Notes that the anchor is about to be sent, and returns what the remote is known to have. One that cannot be
    /// noted is not sent: it would later be taken for another writer's.
    pub(crate) async fn announce(&self, anchored: &Anchored) -> Option<Lease> {
        let (state, anchor) = (self.state.clone(), anchored.commit);
        let announce = move || {
            let mut note = Note::read(&state);
            if note.confirmed != Some(anchor) {
                note.send(anchor);
                note.write(&state)?;
            }
            Ok(note.confirmed.into())
        };
        blocking(announce).await.ok()
    }

    /// Takes note of what the remote said of the anchor, and investigates where the remote has another one.
    pub(crate) async fn heard(&self, scratch: &ScratchRepo, answer: &Finished, anchored: &Anchored) {
        self.take_down(answer, anchored).await;
        if lines_of(answer, &anchored.remote_reference()).any(|line| line.contains("stale info")) {
            self.settle(scratch, anchored).await;
        }
    }

    /// Compares the remote's anchor with ours, and brings ours there if it is not. Whether it arrives is not
    /// checked, because the next push takes it along; but a remote that has another writer's is remembered.
    pub(crate) async fn settle_anchor(&self) {
        if self.refuses_anchors.load(Ordering::Relaxed) {
            return;
        }
        let Ok(scratch) = self.scratch(Vec::new()).await else { return };
        if let Some(anchored) = self.anchor_for(&scratch).await {
            self.settle(&scratch, &anchored).await;
        }
    }

    async fn settle(&self, scratch: &ScratchRepo, anchored: &Anchored) {
        let target = anchored.remote_reference();
        let Ok(found) = self.references(std::slice::from_ref(&target), self.timeouts.ask).await else {
            return;
        };
        let found = found.into_iter().next().flatten();
        if found == Some(anchored.commit) {
            return self.confirm(anchored.commit).await;
        }
        if let Some(found) = found {
            let state = self.state.clone();
            let is_ours = blocking(move || Ok(Note::read(&state).names(found))).await;
            let Ok(is_ours) = is_ours else { return };
            self.is_disputed.store(!is_ours, Ordering::Relaxed);
            if !is_ours {
                return;
            }
        }
        if self.announce(anchored).await.is_none() {
            return;
        }
        let mut arguments = words(&["push", "--porcelain", "--no-verify", "--no-signed"]);
        arguments.push(Lease::from(found).option(anchored));
        arguments.extend(words(&["--", &self.endpoint.url]));
        arguments.push(refspec(anchored));
        if let Ok(answer) = self.git(scratch, arguments, self.timeouts.transfer).await {
            self.take_down(&answer, anchored).await;
        }
    }

    /// Takes note of what the remote said of the anchor. Where it said nothing, the anchor may have arrived.
    async fn take_down(&self, answer: &Finished, anchored: &Anchored) {
        let (target, anchor) = (anchored.remote_reference(), anchored.commit);
        if has_taken(answer, &target) {
            self.confirm(anchor).await;
        } else if lines_of(answer, &target).any(|line| line.starts_with('!')) {
            self.note(move |note| note.refuse(anchor)).await;
        }
    }

    async fn confirm(&self, anchor: Oid) {
        self.is_disputed.store(false, Ordering::Relaxed);
        self.note(move |note| note.confirm(anchor)).await;
    }

    /// Changes the note. Should that fail, the one from before the push still names what was sent.
    async fn note(&self, change: impl FnOnce(&mut Note) + Send + 'static) {
        let state = self.state.clone();
        let write = move || {
            let before = Note::read(&state);
            let mut note = before.clone();
            change(&mut note);
            if note == before { Ok(()) } else { note.write(&state) }
        };
        let _ = blocking(write).await;
    }
}
