//! Definitions and pins on disk, in a directory of the user that no project, agent or remote writes.

use std::path::{Path, PathBuf};

use tgp_audit::RecordedDecision;
use tgp_contract::{Code, ToolError, canonical};
use tgp_fs::append_log::at;
use tgp_fs::{Stamp, private_record};

use crate::definition::{check_server_name, is_server_name};
use crate::{Pin, ServerDefinition};

/// How the files of a server end.
const DEFINITION: &str = ".json";
const PIN: &str = ".pin.json";
/// Bytes of a definition, and of a pin: the most that a server may say of its tools, and what is around it.
const MAX_DEFINITION_BYTES: u64 = 64 << 10;
const MAX_PIN_BYTES: u64 = 16 << 20;
/// Servers of one user.
const MAX_SERVERS: usize = 200;

/// Where the servers of a user are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStore {
    directory: PathBuf,
}

impl UpstreamStore {
    /// A store in `directory`, which need not exist.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The names of all servers, in order.
    ///
    /// # Errors
    /// When the directory cannot be read, or there are too many.
    pub fn names(&self) -> Result<Vec<String>, ToolError> {
        if !self.is_usable() {
            return Ok(Vec::new());
        }
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&self.directory)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let file = entry.map_err(at(&self.directory))?.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(DEFINITION));
            if let Some(name) = name.filter(|name| is_server_name(name)) {
                names.push(name.to_owned());
            }
            if names.len() > MAX_SERVERS {
                let message = format!("there are more than {MAX_SERVERS} upstream servers");
                return Err(
                    ToolError::new(Code::Budget, message).help("remove some with `tgp upstream remove`")
                );
            }
        }
        names.sort();
        Ok(names)
    }

    /// Changes with every change of a server; `None` when there is none. Nothing is read for it.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn stamp(&self) -> Result<Option<String>, ToolError> {
        let names = self.names()?;
        if names.is_empty() {
            return Ok(None);
        }
        let mut seen = Vec::new();
        for name in names {
            for path in [self.file(&name, DEFINITION), self.file(&name, PIN)] {
                let stamp = std::fs::metadata(&path).ok().map(|metadata| Stamp::of(&metadata));
                seen.push(format!("{name} {stamp:?}"));
            }
        }
        Ok(Some(canonical::sha256_hex(seen.join("\n").as_bytes())))
    }

    /// The definition of a server, when there is one.
    ///
    /// # Errors
    /// When it cannot be read, or others may have written it.
    pub fn definition(&self, name: &str) -> Result<Option<ServerDefinition>, ToolError> {
        check_server_name(name)?;
        if !self.is_usable() {
            return Ok(None);
        }
        let path = self.file(name, DEFINITION);
        let definition: Option<ServerDefinition> =
            private_record::read(&path, MAX_DEFINITION_BYTES, |why| refused(&path, why))?;
        if let Some(definition) = &definition {
            definition.check()?;
        }
        Ok(definition)
    }

    /// The tools of a server as its user has seen them.
    ///
    /// # Errors
    /// As [`Self::definition`].
    pub fn pin(&self, name: &str) -> Result<Option<Pin>, ToolError> {
        check_server_name(name)?;
        if !self.is_usable() {
            return Ok(None);
        }
        let path = self.file(name, PIN);
        private_record::read(&path, MAX_PIN_BYTES, |why| refused(&path, why))
    }

    /// Keeps a server, once the decision is in the audit. Its pin goes first: a definition without its pin would be one whose
    /// tools were never seen.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(
        &self,
        name: &str,
        definition: &ServerDefinition,
        pin: &Pin,
        decision: RecordedDecision,
    ) -> Result<(), ToolError> {
        decision.take_effect();
        check_server_name(name)?;
        definition.check()?;
        self.check_usable()?;
        private_record::write(&self.file(name, PIN), pin)?;
        private_record::write(&self.file(name, DEFINITION), definition)
    }

    /// Replaces the pin of a server after its user has seen what changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_pin(&self, name: &str, pin: &Pin, decision: RecordedDecision) -> Result<(), ToolError> {
        decision.take_effect();
        check_server_name(name)?;
        self.check_usable()?;
        private_record::write(&self.file(name, PIN), pin)
    }

    /// Forgets a server; false when there was none.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, ToolError> {
        check_server_name(name)?;
        self.check_usable()?;
        let mut found = false;
        for path in [self.file(name, DEFINITION), self.file(name, PIN)] {
            match std::fs::remove_file(&path) {
                Ok(()) => found = true,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(at(&path)(error)),
            }
        }
        Ok(found)
    }

    /// A relative path would be another place for every directory that a command starts in, such as the project.
    fn is_usable(&self) -> bool {
        self.directory.is_absolute()
    }

    fn check_usable(&self) -> Result<(), ToolError> {
        match self.is_usable() {
            true => Ok(()),
            false => Err(ToolError::new(Code::Config, "upstream servers cannot be kept: HOME is not set")
                .help("set HOME, or TGP_HOME to an absolute path outside of every project")),
        }
    }

    fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.directory.join(format!("{name}{ending}"))
    }
}

fn refused(path: &Path, why: &str) -> ToolError {
    ToolError::new(Code::Security, format!("`{}` is not used: {why}", path.display()))
        .help("look at the file, and add the server again with `tgp upstream add`")
}
