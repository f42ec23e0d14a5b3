//! A chronicle of files that reads the whole file for every request.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tgp_contract::{
    AppendResult, CHRONICLE_DIRECTORY, Chronicle, ChronicleEvent, ChronicleLayout, Code,
    MAX_CHRONICLE_LINE_BYTES, RelativePath, ToolError, decode_line,
};

/// Bytes of one chronicle; a fake that is filled further was meant to be a real one.
const MAX_BYTES: usize = 64 << 20;
/// Entries of the directory of chronicles.
const MAX_ENTRIES: usize = 10_000;
/// What the name of every chronicle ends in.
const ENDING: &str = ".sage";

/// Keeps each event once, in the usual scope: the names `.sage/*.sage` and `src/**/*.sage`. The files are below `.sage`.
pub struct FakeChronicle {
    project: PathBuf,
    /// Held from reading a file to the end of writing it.
    writing: Mutex<()>,
}

impl FakeChronicle {
    #[must_use]
    pub fn new(project: impl Into<PathBuf>) -> Self {
        Self { project: project.into(), writing: Mutex::default() }
    }

    /// Where the file of a chronicle is.
    ///
    /// # Errors
    /// `EPERMISSION` for a name outside the scope.
    pub fn place(&self, file: &RelativePath) -> Result<PathBuf, ToolError> {
        check_scope(file)?;
        Ok(self.project.join(ChronicleLayout::Tree.file_of(file)?.as_str()))
    }

    /// The lines of a chronicle without their ends; none where there is no file.
    fn lines(&self, file: &RelativePath) -> Result<Vec<Vec<u8>>, ToolError> {
        let bytes = match std::fs::read(self.place(file)?) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(internal(&error)),
        };
        // What a crash has left behind the last line is not an event.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').and_then(|end| bytes.get(..end));
        let Some(whole) = whole else { return Ok(Vec::new()) };
        Ok(whole.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
    }

    fn keep(&self, file: &RelativePath, line: &str) -> Result<(), ToolError> {
        let place = self.place(file)?;
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(|error| internal(&error))?;
        }
        let opened = OpenOptions::new().append(true).create(true).open(place);
        let written = opened.and_then(|mut opened| opened.write_all(format!("{line}\n").as_bytes()));
        written.map_err(|error| internal(&error))
    }
}

fn check_scope(file: &RelativePath) -> Result<(), ToolError> {
    let parts: Vec<&str> = file.parts().collect();
    let inside = match parts.as_slice() {
        [first, _] if *first == CHRONICLE_DIRECTORY => true,
        [first, .., _] => *first == "src" && !parts.iter().any(|part| part.eq_ignore_ascii_case(".git")),
        _ => false,
    };
    let named = file.name().is_some_and(|name| name.len() > ENDING.len() && name.ends_with(ENDING));
    if inside && named {
        return Ok(());
    }
    let message = format!("`{file}` is outside the scope of the chronicle");
    Err(ToolError::new(Code::Permission, message).help("name `.sage/NAME.sage` or `src/PATH.sage`"))
}

/// The event with its own id, and its line.
fn encode(event: ChronicleEvent) -> Result<(String, String), ToolError> {
    let refuse = |message: String| {
        ToolError::new(Code::Validation, message).help("see docs/relay.md for what an event is")
    };
    event.check_form().map_err(|error| refuse(error.to_string()))?;
    let own = event.compute_id().map_err(|error| refuse(error.to_string()))?;
    if let Some(given) = event.event_id.as_ref().filter(|given| **given != own) {
        return Err(refuse(format!("the eventId is `{given}`, not its own `{own}`")));
    }
    let event = ChronicleEvent { event_id: Some(own.clone()), ..event };
    let line = event.to_canonical().map_err(|error| refuse(error.to_string()))?;
    if line.len() >= MAX_CHRONICLE_LINE_BYTES {
        return Err(refuse(format!(
            "the event needs {} bytes, and a line has fewer than {MAX_CHRONICLE_LINE_BYTES}",
            line.len()
        )));
    }
    Ok((own, line))
}

#[async_trait]
impl Chronicle for FakeChronicle {
    async fn append(&self, file: &RelativePath, event: ChronicleEvent) -> Result<AppendResult, ToolError> {
        check_scope(file)?;
        let (event_id, line) = encode(event)?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = self.lines(file)?;
        let appended = !lines.iter().any(|known| known == line.as_bytes());
        if appended {
            if lines.iter().map(Vec::len).sum::<usize>() + line.len() > MAX_BYTES {
                let message = format!("the fake chronicle has {MAX_BYTES} bytes, and takes no more");
                return Err(ToolError::new(Code::Budget, message).help("use the real chronicle"));
            }
            self.keep(file, &line)?;
        }
        Ok(AppendResult { event_id, appended })
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        let lines = self.lines(file)?;
        let last = lines.iter().skip(lines.len().saturating_sub(most));
        last.map(|line| {
            decode_line(line).map_err(|error| {
                ToolError::new(Code::Integrity, format!("`{file}` cannot be understood: {error}"))
                    .help("look at the file, or take it from a commit")
            })
        })
        .collect()
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        let mut names = Vec::new();
        let mut folders = vec![RelativePath::new(CHRONICLE_DIRECTORY)?];
        let mut left = MAX_ENTRIES;
        while let Some(folder) = folders.pop() {
            let listed = match std::fs::read_dir(self.project.join(folder.as_str())) {
                Ok(listed) => listed,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(internal(&error)),
            };
            for entry in listed {
                left = left.checked_sub(1).ok_or_else(|| {
                    ToolError::new(Code::Budget, format!("there are more than {MAX_ENTRIES} chronicles"))
                        .help("use the real chronicle")
                })?;
                let entry = entry.map_err(|error| internal(&error))?;
                let path = folder.join(&entry.file_name().to_string_lossy())?;
                if entry.file_type().map_err(|error| internal(&error))?.is_dir() {
                    folders.push(path);
                } else {
                    names.extend(ChronicleLayout::Tree.name_of(&path));
                }
            }
        }
        names.retain(|name| check_scope(name).is_ok());
        names.sort();
        Ok(names)
    }
}

fn internal(error: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(Code::Internal, format!("the chronicle cannot be read or written: {error}"))
        .help("check that the project can be written")
}
