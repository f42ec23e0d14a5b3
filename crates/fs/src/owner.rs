//! Who owns a file: for messages about files that this process cannot use.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Uid, User, geteuid};

/// The name of a user, or `uid 1000` for one that the system does not know.
#[must_use]
pub fn user_name(uid: u32) -> String {
    let known = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    known.map_or_else(|| format!("uid {uid}"), |user| user.name)
}

/// Who owns a path that this process may not use, and as whom it runs, as a sentence with the next step; the nearest
/// directory above where the path itself cannot be looked at.
#[must_use]
pub fn explain_permission(path: &Path) -> String {
    let found = path.ancestors().find_map(|place| Some((place, place.symlink_metadata().ok()?)));
    let Some((place, found)) = found else {
        return "check the permissions of the directories above it".to_owned();
    };
    let (owner, own) = (user_name(found.uid()), user_name(geteuid().as_raw()));
    let (place, mode) = (place.display(), found.mode() & 0o7777);
    if found.uid() == geteuid().as_raw() {
        return format!(
            "`{place}` belongs to {own} and has the mode {mode:04o}: give its owner access to it"
        );
    }
    format!(
        "`{place}` belongs to {owner} (mode {mode:04o}), and this command runs as {own}: run it as {owner}, or let {owner} \
         give the file to {own}"
    )
}
