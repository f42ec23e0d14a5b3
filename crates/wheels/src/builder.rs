//! The files of an installation: unpacked to a staging directory, each with one owner.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tgp_contract::{EntryKind, FsError, RelativePath};

use crate::archive::ArchiveEntry;
use crate::environment::Environment;
use crate::layout::{Destination, LIST, Layout, PROJECT_PATH, Placement, SETTINGS, in_record};
use crate::record::{self, Checksum};
use crate::removal::{self, Removal};
use crate::{
    EnvironmentChange, EnvironmentError, InstallError, InstallOptions, Interpreter, Wheel, WheelError,
};

/// Files of all wheels together.
const MAX_FILES: usize = 200_000;
/// Bytes of all wheels together.
const MAX_BYTES: u64 = 6 << 30;
/// Largest program of a package whose first line is changed.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// A new file of the environment.
struct NewFile {
    content: PathBuf,
    bytes: u64,
    executable: bool,
    owner: String,
}

pub(crate) struct Builder<'a> {
    options: &'a InstallOptions<'a>,
    layout: &'a Layout,
    first_line: String,
    /// Files of the packages that stay, in lower case, with the package.
    owners: BTreeMap<String, String>,
    files: BTreeMap<String, NewFile>,
    links: BTreeMap<String, PathBuf>,
    bytes: u64,
}

impl<'a> Builder<'a> {
    /// `owners` has the files of the packages that stay, in lower case.
    pub(crate) fn new(
        options: &'a InstallOptions<'a>,
        layout: &'a Layout,
        first_line: String,
        owners: BTreeMap<String, String>,
    ) -> Self {
        Self { options, layout, first_line, owners, files: BTreeMap::new(), links: BTreeMap::new(), bytes: 0 }
    }

    /// Unpacks a wheel, and returns its line in the list of packages.
    pub(crate) fn wheel(&mut self, wheel: &mut Wheel) -> Result<String, InstallError> {
        let file_name = wheel.file_name().to_owned();
        let mut left_out = Vec::new();
        let mut unpacked = BTreeMap::new();
        for (path, entry) in wheel.files() {
            let of_wheel = |source| InstallError::Wheel { file: file_name.clone(), source };
            let placement =
                Placement { name: wheel.name(), dist_info: wheel.dist_info(), data: wheel.data() };
            let destination = self
                .layout
                .destination(&path, &placement)
                .map_err(|problem| of_wheel(WheelError::Destination { path: path.clone(), problem }))?;
            let (target, is_script) = match destination {
                Destination::Path(target) => (target, false),
                Destination::Script(target) => (target, true),
                Destination::LeftOut => {
                    if path.ends_with(".pth") {
                        left_out.push(path);
                    }
                    continue;
                }
            };
            // What the installer writes itself.
            if is_own_record(&target, wheel.dist_info(), self.layout) {
                continue;
            }
            let written = self.unpack(wheel, &path, entry, &target, is_script)?;
            unpacked.insert(target, written);
        }
        let entry_points = wheel.entry_points();
        let of_wheel = |source| InstallError::Wheel { file: file_name.clone(), source };
        for (name, entry_point) in entry_points.map_err(of_wheel)? {
            let target = format!("bin/{name}");
            let placement =
                Placement { name: wheel.name(), dist_info: wheel.dist_info(), data: wheel.data() };
            let judged = self.layout.judged(target.clone(), &placement);
            judged.map_err(|problem| of_wheel(WheelError::Destination { path: target.clone(), problem }))?;
            // A program that the wheel brings itself wins, as with pip.
            if !unpacked.contains_key(&target) {
                let program = entry_point.program(&self.first_line);
                unpacked.insert(target.clone(), self.text(&target, &program, true, wheel.name().as_str())?);
            }
        }
        self.information(wheel, &unpacked)?;
        let mut line =
            format!("{}=={}  {file_name}  sha256:{}", wheel.name(), wheel.version(), wheel.checksum());
        left_out.iter().for_each(|path| line.push_str(&format!("  without {}", shown(path))));
        line.push('\n');
        Ok(line)
    }

    fn unpack(
        &mut self,
        wheel: &mut Wheel,
        path: &str,
        entry: ArchiveEntry,
        target: &str,
        is_script: bool,
    ) -> Result<(Checksum, u64), InstallError> {
        let owner = wheel.name().to_string();
        let content = self.place(target, &owner)?;
        self.bytes = self.bytes.saturating_add(entry.bytes);
        if self.bytes > MAX_BYTES {
            let source = WheelError::Limit { what: "the length of all packages together", limit: MAX_BYTES };
            return Err(InstallError::Wheel { file: wheel.file_name().to_owned(), source });
        }
        let mut file = BufWriter::new(File::create_new(&content)?);
        let unpacked = wheel.unpack(path, entry, &mut file, self.options.stop);
        let mut written =
            unpacked.map_err(|source| InstallError::Wheel { file: wheel.file_name().to_owned(), source })?;
        file.flush()?;
        drop(file);
        if is_script && written.1 <= MAX_SCRIPT_BYTES {
            let text = fs::read(&content)?;
            if let Some(changed) = self.with_first_line(&text) {
                fs::write(&content, &changed)?;
                written = (record::checksum_of(&changed), changed.len() as u64);
            }
        }
        let executable = is_script || entry.executable;
        self.files.insert(target.to_owned(), NewFile { content, bytes: written.1, executable, owner });
        Ok(written)
    }

    /// A program of a wheel, which names no Python in particular, with that of the environment.
    fn with_first_line(&self, text: &[u8]) -> Option<Vec<u8>> {
        let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
        let (line, rest) = text.split_at(end);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !matches!(line, b"#!python" | b"#!pythonw") {
            return None;
        }
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        Some([self.first_line.as_bytes(), rest].concat())
    }

    /// The path of a new content, for a place that no other package has.
    fn place(&mut self, target: &str, owner: &str) -> Result<PathBuf, InstallError> {
        if (self.options.stop)() {
            return Err(InstallError::Stopped);
        }
        let lower = target.to_lowercase();
        if let Some(first) = self.owners.insert(lower, owner.to_owned()) {
            return Err(InstallError::Conflict { path: target.to_owned(), first, second: owner.to_owned() });
        }
        RelativePath::new(target).map_err(|error| EnvironmentError::Files(error.into()))?;
        if self.files.len() >= MAX_FILES {
            let source = WheelError::Limit { what: "the number of files", limit: MAX_FILES as u64 };
            return Err(InstallError::Wheel { file: owner.to_owned(), source });
        }
        Ok(self.options.staging.join(format!("f{}", self.files.len())))
    }

    fn text(
        &mut self,
        target: &str,
        text: &str,
        executable: bool,
        owner: &str,
    ) -> Result<(Checksum, u64), InstallError> {
        let content = self.place(target, owner)?;
        fs::write(&content, text)?;
        let bytes = text.len() as u64;
        self.files.insert(target.to_owned(), NewFile { content, bytes, executable, owner: owner.to_owned() });
        Ok((record::checksum_of(text.as_bytes()), bytes))
    }

    /// `INSTALLER`, `REQUESTED` and `RECORD`.
    fn information(
        &mut self,
        wheel: &Wheel,
        unpacked: &BTreeMap<String, (Checksum, u64)>,
    ) -> Result<(), InstallError> {
        let site_packages = self.layout.site_packages().to_owned();
        let place = |name: &str| format!("{site_packages}/{}/{name}", wheel.dist_info());
        let owner = wheel.name().to_string();
        let mut files = unpacked.clone();
        let installer = place("INSTALLER");
        files.insert(installer.clone(), self.text(&installer, "tgp\n", false, &owner)?);
        if self.options.requested.contains(wheel.name()) {
            let requested = place("REQUESTED");
            files.insert(requested.clone(), self.text(&requested, "", false, &owner)?);
        }
        let record = place("RECORD");
        let mut text: String = files
            .iter()
            .map(|(path, (checksum, bytes))| {
                record::row(&in_record(path, &site_packages), Some((checksum, *bytes)))
            })
            .collect();
        text.push_str(&record::row(&in_record(&record, &site_packages), None));
        self.text(&record, &text, false, &owner)?;
        Ok(())
    }

    /// What `python -m venv --without-pip` makes.
    pub(crate) fn new_environment(&mut self) -> Result<(), InstallError> {
        let Interpreter { version, program } = self.options.interpreter;
        let location = self.options.location.display();
        let shown = || InstallError::Location(program.display().to_string());
        let name = program.to_str().filter(|name| !name.contains(['\n', '\r'])).ok_or_else(shown)?;
        let home = program.parent().and_then(Path::to_str).ok_or_else(shown)?;
        let (major, minor) = self.options.interpreter.minor();
        let settings = format!(
            "home = {home}\ninclude-system-site-packages = false\nversion = {version}\nexecutable = {name}\n"
        );
        self.text(SETTINGS, &settings, false, "the environment")?;
        let activate = ACTIVATE.replace("@LOCATION@", &location.to_string());
        self.text("bin/activate", &activate, false, "the environment")?;
        // As newer versions of venv do: thousands of files of packages are not part of the project.
        self.text(".gitignore", "*\n", false, "the environment")?;
        self.links.insert("bin/python3".to_owned(), program.clone());
        for link in ["bin/python".to_owned(), format!("bin/python{major}.{minor}")] {
            self.links.insert(link, PathBuf::from("python3"));
        }
        self.links.insert("lib64".to_owned(), PathBuf::from("lib"));
        Ok(())
    }

    /// The list of packages, and the way to the project's own sources.
    pub(crate) fn own_files(
        &mut self,
        environment: Option<&Environment>,
        list: &str,
    ) -> Result<(), InstallError> {
        let is_new =
            |path: &str, text: &str| environment.is_none_or(|environment| !has_text(environment, path, text));
        if is_new(LIST, list) {
            self.text(LIST, list, false, "the environment")?;
        }
        let Some(project) = self.options.project else { return Ok(()) };
        let shown = || InstallError::Location(project.display().to_string());
        // A line that begins with `import` would be run.
        let line = project.to_str().filter(|line| line.starts_with('/') && !line.contains(['\n', '\r']));
        let line = format!("{}\n", line.ok_or_else(shown)?);
        let path = format!("{}/{PROJECT_PATH}", self.layout.site_packages());
        if is_new(&path, &line) {
            self.text(&path, &line, false, "the environment")?;
        }
        Ok(())
    }

    pub(crate) fn changes(
        self,
        environment: Option<&Environment>,
        mut removal: Removal,
    ) -> Result<Vec<EnvironmentChange>, InstallError> {
        let mut used = BTreeSet::new();
        for path in self.files.keys().chain(self.links.keys()) {
            let mut above = path.as_str();
            while let Some((parent, _)) = above.rsplit_once('/') {
                used.insert(parent.to_owned());
                above = parent;
            }
        }
        if environment.is_none() {
            let library = self.layout.site_packages();
            used.extend(
                ["bin", "include", "lib", library.trim_end_matches("/site-packages"), library]
                    .map(str::to_owned),
            );
        }
        if let Some(environment) = environment {
            removal::add_emptied(environment, &mut removal, &used)?;
        }
        let mut changes = Vec::new();
        for path in used {
            if !is_directory(environment, &removal, &path)? {
                changes.push(EnvironmentChange::MakeDirectory { path });
            }
        }
        for (path, file) in self.files {
            if is_directory(environment, &removal, &path)? {
                let first = "what is installed".to_owned();
                return Err(InstallError::Conflict { path, first, second: file.owner });
            }
            let NewFile { content, bytes, executable, .. } = file;
            removal.files.remove(&path);
            changes.push(EnvironmentChange::Write { path, content, bytes, executable });
        }
        changes.extend(self.links.into_iter().map(|(path, target)| EnvironmentChange::Link { path, target }));
        changes.extend(removal.files.into_iter().map(|path| EnvironmentChange::Remove { path }));
        changes
            .extend(removal.directories.into_iter().map(|path| EnvironmentChange::RemoveDirectory { path }));
        changes.sort_by(|one, other| (one.path(), order(one)).cmp(&(other.path(), order(other))));
        Ok(changes)
    }
}

/// The order of changes of one path.
fn order(change: &EnvironmentChange) -> u8 {
    match change {
        EnvironmentChange::Remove { .. } | EnvironmentChange::RemoveDirectory { .. } => 0,
        EnvironmentChange::MakeDirectory { .. } => 1,
        EnvironmentChange::Write { .. } | EnvironmentChange::Link { .. } => 2,
    }
}

/// Whether a directory is at a path when everything is removed that goes.
fn is_directory(
    environment: Option<&Environment>,
    removal: &Removal,
    path: &str,
) -> Result<bool, InstallError> {
    let Some(environment) = environment else { return Ok(false) };
    if removal.frees(path) {
        return Ok(false);
    }
    let at = RelativePath::new(path).map_err(|error| EnvironmentError::Files(error.into()))?;
    let parent = match environment.root.descend(&at.parent()) {
        Ok(parent) => parent,
        Err(FsError::NotFound(_)) => return Ok(false),
        // A file goes that a directory takes the place of.
        Err(FsError::NotDirectory(file)) if removal.frees(file.as_str()) => return Ok(false),
        Err(error) => return Err(EnvironmentError::from(error).into()),
    };
    let entry = parent.entry(at.name().unwrap_or_default()).map_err(EnvironmentError::from)?;
    Ok(entry.is_some_and(|entry| entry.kind == EntryKind::Directory))
}

/// Whether a file of the environment has a text already.
fn has_text(environment: &Environment, path: &str, text: &str) -> bool {
    let Ok(path) = RelativePath::new(path) else { return false };
    let Ok(Some(parent)) = removal::directory(&environment.root, &path.parent()) else { return false };
    let content = crate::environment::content(&parent, path.name().unwrap_or_default(), text.len() as u64);
    matches!(content, Ok(Some(content)) if content == text.as_bytes())
}

fn is_own_record(target: &str, dist_info: &str, layout: &Layout) -> bool {
    let inside = target.strip_prefix(layout.site_packages()).and_then(|inside| inside.strip_prefix('/'));
    let name =
        inside.and_then(|inside| inside.strip_prefix(dist_info)).and_then(|name| name.strip_prefix('/'));
    name.is_some_and(|name| {
        ["INSTALLER", "REQUESTED", "RECORD", "RECORD.jws", "RECORD.p7s", "direct_url.json"]
            .iter()
            .any(|own| own.eq_ignore_ascii_case(name))
    })
}

fn shown(path: &str) -> String {
    path.chars().take(80).flat_map(char::escape_default).collect()
}

/// For shells; the others start programs of the environment by their paths.
const ACTIVATE: &str = r#"# Use it with: . bin/activate
deactivate () {
    if [ -n "${_OLD_VIRTUAL_PATH:-}" ] ; then
        PATH="${_OLD_VIRTUAL_PATH}"
        export PATH
        unset _OLD_VIRTUAL_PATH
    fi
    unset VIRTUAL_ENV
    hash -r 2> /dev/null
    if [ ! "${1:-}" = "nondestructive" ] ; then
        unset -f deactivate
    fi
}
deactivate nondestructive
VIRTUAL_ENV="@LOCATION@"
export VIRTUAL_ENV
_OLD_VIRTUAL_PATH="$PATH"
PATH="$VIRTUAL_ENV/bin:$PATH"
export PATH
unset PYTHONHOME
hash -r 2> /dev/null
"#;
