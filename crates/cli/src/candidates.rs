//! What a shell offers for the values of arguments: the tools and the sessions of the project in this folder.
//!
//! A shell asks at every press of a key, so that nothing is booted: names are read from the folders, up to a bound.

use std::ffi::OsString;
use std::fs::DirEntry;
use std::io::{self, Write};
use std::path::Path;

use clap_complete::CompletionCandidate;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

/// The variable by which the script of a shell asks this program.
pub const VARIABLE: &str = "TGP_COMPLETE";

const ROOT: &str = ".tgp";
const SESSIONS: &str = ".tgp/.state/sessions";
/// Names that are offered at most.
const MAX_NAMES: usize = 1000;
/// Entries of folders that are looked at for them.
const MAX_ENTRIES: usize = 10_000;
const MAX_DEPTH: usize = 8;

/// The shells that can ask.
pub const SHELLS: Shells<'static> = Shells(&[&PlainBash, &Elvish, &Fish, &Powershell, &Zsh]);

/// Bash puts what it is offered on the command line as it is. Names of files come from whoever made them, so those with
/// a meaning to the shell are left out; it still completes them by itself.
struct PlainBash;

impl EnvCompleter for PlainBash {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        Bash.write_registration(var, name, bin, completer, buf)
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let mut offered = Vec::new();
        Bash.write_complete(cmd, args, current_dir, &mut offered)?;
        let separator = std::env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        let offered = String::from_utf8_lossy(&offered).into_owned();
        let plain: Vec<&str> = offered.split(separator.as_str()).filter(|name| is_plain(name)).collect();
        write!(buf, "{}", plain.join(&separator))
    }
}

/// Whether no shell reads anything but a name in it.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./=,:+@%".contains(&byte))
}

/// The paths of tools, such as `tools/math/fib.ts`.
pub fn tools() -> Vec<CompletionCandidate> {
    let mut search = Search { names: Vec::new(), entries: 0 };
    search.below(Path::new(ROOT), "tools", 0);
    search.candidates()
}

/// The ids of sessions, and `last`.
pub fn sessions() -> Vec<CompletionCandidate> {
    let mut search = Search { names: Vec::new(), entries: 0 };
    for entry in search.entries_of(Path::new(SESSIONS)) {
        search.add(entry.file_name().to_string_lossy().into_owned());
    }
    // Ids begin with the time, and the newest is the likeliest.
    search.names.sort_by(|one, other| other.cmp(one));
    search.names.insert(0, "last".to_owned());
    search.names.into_iter().map(CompletionCandidate::new).collect()
}

struct Search {
    names: Vec<String>,
    entries: usize,
}

impl Search {
    fn entries_of(&mut self, folder: &Path) -> Vec<DirEntry> {
        let room = MAX_ENTRIES.saturating_sub(self.entries);
        let entries: Vec<DirEntry> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().take(room).collect();
        self.entries += entries.len();
        entries
    }

    fn below(&mut self, root: &Path, folder: &str, depth: usize) {
        if depth >= MAX_DEPTH {
            return;
        }
        for entry in self.entries_of(&root.join(folder)) {
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.below(root, &name, depth + 1),
                Ok(kind) if kind.is_file() && name.ends_with(".ts") && !name.ends_with(".d.ts") => {
                    self.add(name);
                }
                _ => {}
            }
        }
    }

    /// A name that means something to a shell is not offered: who wrote the tool must not write command lines.
    fn add(&mut self, name: String) {
        if self.names.len() < MAX_NAMES && !name.starts_with(['-', '.']) && is_plain(&name) {
            self.names.push(name);
        }
    }

    fn candidates(mut self) -> Vec<CompletionCandidate> {
        self.names.sort();
        self.names.into_iter().map(CompletionCandidate::new).collect()
    }
}
