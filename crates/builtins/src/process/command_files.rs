//! The files of the project that a command line names. An approval is for what they hold: `sh run.sh` runs the script as it is
//! then, not as it was shown.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tgp_contract::{Access, Entry, EntryKind, FileFilter, RelativePath, Root, ToolError, canonical};
use tgp_router::files::ProjectFiles;
use tgp_router::{ApprovedSnapshot, FileSnapshot, Invocation, Preview};
use tgp_text::head;

/// Files of one command that are hashed, and their bytes. Beyond them an approval holds for one call.
const MAX_FILES: usize = 32;
const MAX_BYTES: u64 = 16 << 20;
/// Names that one command line can mean.
const MAX_NAMES: usize = 100_000;
/// Bytes of a file that a person is shown: its first lines.
const SHOWN_BYTES: usize = 1024;
/// What separates words for a shell, an assignment or an option from its value.
const SEPARATORS: [char; 15] = [' ', '\t', '\n', ';', '|', '&', '<', '>', '(', ')', '{', '}', '=', '`', ','];
/// Programs that run what a file of this name says, without its name on the command line.
const IMPLIED: [(&str, &[&str]); 9] = [
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("npm", &["package.json"]),
    ("npx", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("bun", &["package.json"]),
    ("rake", &["Rakefile", "rakefile"]),
];
/// Endings that interpreters add to the name of a module.
const ENDINGS: [&str; 7] = ["", ".py", ".js", ".mjs", ".cjs", ".ts", "/__main__.py"];

/// The files that a command line names, as they are now.
pub(super) struct CommandFiles {
    found: Vec<FileSnapshot>,
    shown: Vec<Value>,
    /// Why not all of them are bound to an approval.
    cut: Option<String>,
}

impl CommandFiles {
    /// Reads the files that `command` names when it starts in `directory`. What the caller may not read no command sees.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn read(
        command: &str,
        directory: &RelativePath,
        project: &str,
        files: &ProjectFiles,
        filter: Option<&FileFilter>,
    ) -> Result<Self, ToolError> {
        let mut named = Self { found: Vec::new(), shown: Vec::new(), cut: None };
        let mut bytes = 0;
        let (names, are_all) = candidates(command, directory, project);
        if !are_all {
            named.cut = Some(
                "the command line is too long to find the files that it names; this approval holds for this call only"
                    .to_owned(),
            );
        }
        for path in names {
            let is_file = |entry: &Entry| entry.kind == EntryKind::File;
            let entry = |path: &RelativePath| files.entry(path).ok().flatten().filter(is_file);
            let found = entry(&path).or_else(|| entry(&linked(project, &path)?));
            let Some(Entry { path, size, .. }) = found else { continue };
            let is_shown = filter.is_none_or(|filter| filter(Root::Project, &path, Access::Read));
            if !is_shown || named.found.iter().any(|file| file.path == path) {
                continue;
            }
            bytes += size;
            if named.found.len() >= MAX_FILES || bytes > MAX_BYTES {
                named.cut = Some(format!(
                    "the command names more than {MAX_FILES} files or {} MB; this approval holds for this call only",
                    MAX_BYTES >> 20
                ));
                break;
            }
            let content = files.read(&path)?;
            let sha256 = canonical::sha256_hex(&content);
            let text = String::from_utf8_lossy(&content);
            let first = head(&text, SHOWN_BYTES);
            let mut shown = json!({ "path": path, "sha256": sha256, "begins": first });
            if let (true, Some(fields)) = (first.len() < text.len(), shown.as_object_mut()) {
                fields.insert("beginsTruncated".to_owned(), json!(true));
            }
            named.shown.push(shown);
            named.found.push(FileSnapshot { root: Root::Project, path, sha256: Some(sha256) });
        }
        Ok(named)
    }

    /// Returns what a person is shown before the command runs. Nothing where it names no file.
    pub(super) fn preview(self, invocation: &Invocation<'_>) -> Preview {
        if self.found.is_empty() && self.cut.is_none() {
            return Preview::default();
        }
        let mut data = json!({ "files": self.shown });
        if let (Some(cut), Some(fields)) = (self.cut, data.as_object_mut()) {
            fields.insert("cut".to_owned(), json!(cut));
            // Another call has another number, so that no earlier answer covers it.
            let call = format!("{}-{}", std::process::id(), invocation.serial());
            fields.insert("onlyForCall".to_owned(), json!(call));
        }
        Preview { data: Some(data), found: self.found, missing: None }
    }

    /// Sees that the files are those that a person has agreed to.
    ///
    /// # Errors
    /// `ECONFLICT` for a file that has changed since; it is asked again.
    pub(super) fn check(&self, agreement: &ApprovedSnapshot) -> Result<(), ToolError> {
        let check = |file: &FileSnapshot| agreement.check_hash(file.root, &file.path, file.sha256.as_deref());
        self.found.iter().try_for_each(check)
    }
}

/// Returns the file of the project that a link leads to.
fn linked(project: &str, path: &RelativePath) -> Option<RelativePath> {
    let link = Path::new(project).join(path.as_str());
    link.symlink_metadata().ok()?;
    let (place, project) = (link.canonicalize().ok()?, Path::new(project).canonicalize().ok()?);
    RelativePath::new(place.strip_prefix(project).ok()?.to_str()?).ok()
}

/// Returns every path of the project that a word of the command line can mean, relative to the directories that it starts in
/// and changes to; and whether these are all.
fn candidates(command: &str, directory: &RelativePath, project: &str) -> (BTreeSet<RelativePath>, bool) {
    let plain: String = command.chars().filter(|letter| !matches!(letter, '"' | '\'' | '\\')).collect();
    let words: Vec<&str> = plain.split(SEPARATORS).filter(|word| !word.is_empty()).collect();
    let mut bases = vec![directory.as_str().to_owned()];
    for pair in words.windows(2) {
        // `make -C`, `npm --prefix` and others go there, too.
        if let [word, folder] = pair
            && ["cd", "pushd", "-C", "--prefix", "--directory", "--cwd"].contains(word)
        {
            let last = bases.last().cloned().unwrap_or_default();
            bases.extend(inside(&last, folder, project));
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (number, word) in words.iter().enumerate() {
        names.extend(ENDINGS.map(|ending| format!("{word}{ending}")));
        let program = word.rsplit('/').next().unwrap_or(word);
        let implied = IMPLIED.iter().filter(|(name, _)| *name == program);
        names.extend(implied.flat_map(|(_, files)| files.iter().map(ToString::to_string)));
        if *word == "-m"
            && let Some(module) = words.get(number + 1)
        {
            let path = module.replace('.', "/");
            names.extend(["", "/__main__", "/__init__"].map(|end| format!("{path}{end}.py")));
            // Python runs the packages around it first.
            let outer = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
            names.extend(outer.map(|package| format!("{package}/__init__.py")));
        }
        // `-ffile` and `@file`.
        names.extend(word.strip_prefix("-f").into_iter().chain(word.strip_prefix('@')).map(str::to_owned));
    }
    let all = bases.iter().flat_map(|base| names.iter().map(move |name| (base, name)));
    let mut looked_at = 0;
    let paths = all.take(MAX_NAMES).inspect(|_| looked_at += 1);
    let paths = paths.filter_map(|(base, name)| RelativePath::new(&inside(base, name, project)?).ok());
    let paths = paths.filter(|path| !path.is_root()).collect();
    (paths, looked_at < MAX_NAMES)
}

/// Returns the path of a word below the project; nothing where it leads out.
fn inside(base: &str, word: &str, project: &str) -> Option<String> {
    let (base, word) = match word.strip_prefix('/') {
        Some(_) => ("", word.strip_prefix(project)?),
        None => (base, word),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(word.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use tgp_contract::RelativePath;

    use super::candidates;

    fn names(command: &str, directory: &str) -> Vec<String> {
        let directory = RelativePath::new(directory).unwrap();
        candidates(command, &directory, "/p").0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_command_names_files_in_many_ways() {
        for (command, directory, file) in [
            ("sh run.sh", "", "run.sh"),
            ("./build --fast", "", "build"),
            ("sh 'run.sh'", "", "run.sh"),
            ("sh ru\\n.sh", "", "run.sh"),
            (". ./env.sh && true", "", "env.sh"),
            ("sh < run.sh", "", "run.sh"),
            ("cat run.sh|sh", "", "run.sh"),
            ("cd sub && sh run.sh", "", "sub/run.sh"),
            ("cd sub; cd deep; ./x", "", "sub/deep/x"),
            ("sh ../run.sh", "sub", "run.sh"),
            ("python3 -m pkg.tool", "", "pkg/tool.py"),
            ("python3 -m pkg.deep.tool", "", "pkg/__init__.py"),
            ("python3 -m pkg.deep.tool", "", "pkg/deep/__init__.py"),
            ("python3 pkg", "", "pkg/__main__.py"),
            ("node server", "", "server.js"),
            ("make test", "", "Makefile"),
            ("make -C lib", "", "lib/Makefile"),
            ("make -fother.mk", "", "other.mk"),
            ("npm --prefix web run build", "", "web/package.json"),
            ("node --config=conf/a.mjs", "", "conf/a.mjs"),
            ("sh /p/run.sh", "sub", "run.sh"),
            ("env A=b bash -c 'sh run.sh'", "", "run.sh"),
        ] {
            assert!(names(command, directory).iter().any(|name| name == file), "{command}: {file}");
        }
    }

    #[test]
    fn what_leads_out_names_no_file() {
        for command in ["sh ../x", "sh /etc/passwd", "cd .. && sh x", "sh /pq/x"] {
            let names = names(command, "");
            let leads_out = |name: &String| name.split('/').any(|part| part == ".." || part == "etc");
            assert!(!names.iter().any(leads_out), "{names:?}");
        }
        assert!(!names("sh ../x", "").iter().any(|name| name == "x"));
    }
}
