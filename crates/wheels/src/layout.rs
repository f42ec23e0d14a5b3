//! Where the files of a wheel go in an environment, and what no wheel may bring.

use crate::Name;

/// The list of installed packages that the kernel keeps in an environment.
pub(crate) const LIST: &str = "packages.txt";
/// Puts the project itself on the path of its environment.
pub(crate) const PROJECT_PATH: &str = "_project.pth";
/// The settings of an environment.
pub(crate) const SETTINGS: &str = "pyvenv.cfg";

/// The directories of an environment for one version of Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    library: String,
    site_packages: String,
}

/// A distribution whose files are placed.
pub(crate) struct Placement<'a> {
    pub(crate) name: &'a Name,
    /// `six-1.17.0.dist-info`.
    pub(crate) dist_info: &'a str,
    /// `six-1.17.0.data`.
    pub(crate) data: &'a str,
}

/// Where a file goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Relative to the environment.
    Path(String),
    /// The same for a program, whose first line is changed.
    Script(String),
    /// It is not installed: it would run whenever Python starts, or in the place of other sources.
    LeftOut,
}

impl Layout {
    pub(crate) fn new(python: (u64, u64)) -> Self {
        let library = format!("lib/python{}.{}", python.0, python.1);
        let site_packages = format!("{library}/site-packages");
        Self { library, site_packages }
    }

    pub(crate) fn site_packages(&self) -> &str {
        &self.site_packages
    }

    /// Where a file of a wheel goes.
    pub(crate) fn destination(&self, path: &str, of: &Placement<'_>) -> Result<Destination, &'static str> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if !first.to_lowercase().ends_with(".data") || rest.is_empty() {
            return self.judged(format!("{}/{path}", self.site_packages), of);
        }
        if first != of.data {
            return Err("is in the data of another package");
        }
        let (scheme, inside) = rest.split_once('/').ok_or("is not in a directory of its data")?;
        match scheme {
            "purelib" | "platlib" => self.judged(format!("{}/{inside}", self.site_packages), of),
            "scripts" if inside.contains('/') => Err("is a program in a directory"),
            "scripts" => match self.judged(format!("bin/{inside}"), of)? {
                Destination::Path(path) => Ok(Destination::Script(path)),
                other => Ok(other),
            },
            "headers" => {
                let version = self.library.strip_prefix("lib/").unwrap_or_default();
                self.judged(format!("include/site/{version}/{}/{inside}", of.name), of)
            }
            "data" => self.judged(inside.to_owned(), of),
            _ => Err("is in an unknown directory of its data"),
        }
    }

    /// Judges a place in the environment, however it was named.
    pub(crate) fn judged(&self, path: String, of: &Placement<'_>) -> Result<Destination, &'static str> {
        let lower = path.to_lowercase();
        let parts: Vec<&str> = lower.split('/').collect();
        match parts.as_slice() {
            [SETTINGS | LIST | "lib64", ..] => return Err("is a file of the environment itself"),
            [top, ..] if top.starts_with('.') => return Err("is hidden at the top of the environment"),
            ["bin", program] => of.may_bring_program(program)?,
            ["bin" | "lib" | "include" | "share"] | ["bin", ..] => {
                return Err("is in the place of a directory");
            }
            ["lib", ..] => match lower.strip_prefix(self.site_packages.as_str()) {
                Some(inside) if inside.starts_with('/') => {
                    let inside: Vec<&str> = inside.trim_start_matches('/').split('/').collect();
                    let is_left_out = of.judge_module(&inside)?;
                    // Names of packages and of directories differ by case on Linux, and the layout is in lower case.
                    if !path.starts_with(&format!("{}/", self.site_packages)) {
                        return Err("is not in the directory of packages");
                    }
                    if let [first, ..] = inside.as_slice()
                        && first.ends_with(".dist-info")
                        && !path.starts_with(&format!("{}/{}/", self.site_packages, of.dist_info))
                    {
                        return Err("is in what is known of another package");
                    }
                    if is_left_out {
                        return Ok(Destination::LeftOut);
                    }
                }
                _ => return Err("is not in the directory of packages"),
            },
            _ => {}
        }
        Ok(Destination::Path(path))
    }
}

impl Placement<'_> {
    fn may_bring_program(&self, program: &str) -> Result<(), &'static str> {
        if is_of_environment(program) {
            return Err("is a program of the environment itself");
        }
        // Python reads its settings beside the program first.
        if [".cfg", ".txt", "._pth", ".pth", ".ini", ".toml"].iter().any(|ending| program.ends_with(ending)) {
            return Err("is a file of settings, and not a program");
        }
        let is_pip = program.strip_prefix("pip").is_some_and(is_version_suffix);
        if is_pip && self.name.as_str() != "pip" {
            return Err("is a program of pip");
        }
        Ok(())
    }

    /// Judges a file below the directory of packages, in lower case. Returns whether it is left out.
    fn judge_module(&self, inside: &[&str]) -> Result<bool, &'static str> {
        let (Some(first), is_top) = (inside.first(), inside.len() == 1) else { return Ok(false) };
        let stem = first.split('.').next().unwrap_or_default();
        // The last one is imported by the first one of Debian's Python.
        if matches!(stem, "sitecustomize" | "usercustomize" | "apport_python_hook") {
            return Err("would run whenever Python starts");
        }
        if stem == "pip" && !first.ends_with(".dist-info") && self.name.as_str() != "pip" {
            return Err("is a file of pip");
        }
        if first.ends_with(".egg-info") || first.ends_with(".egg-link") || first.ends_with(".egg") {
            return Err("is in what is known of another package");
        }
        if is_top && first.ends_with(".dist-info") {
            return Err("is in the place of a directory");
        }
        let name = inside.last().copied().unwrap_or_default();
        let is_compiled = inside.contains(&"__pycache__") || name.ends_with(".pyc") || name.ends_with(".pyo");
        Ok(is_compiled || (is_top && (name.ends_with(".pth") || name.ends_with(".start"))))
    }
}

/// Whether a program belongs to the environment itself: no wheel brings it, and it is removed with none.
pub(crate) fn is_of_environment(program: &str) -> bool {
    let program = program.to_lowercase();
    program.starts_with("activate")
        || program.starts_with("deactivate")
        || ["python", "pythonw", "pypy"]
            .iter()
            .any(|name| program.strip_prefix(name).is_some_and(is_version_suffix))
}

/// Whether what follows the name of a program only says its version: `3`, `3.11`, or an ending.
fn is_version_suffix(rest: &str) -> bool {
    let rest = rest.strip_suffix(".exe").unwrap_or(rest);
    rest.chars().all(|letter| letter.is_ascii_digit() || matches!(letter, '.' | 't' | '-'))
}

/// A path of a RECORD, which is relative to the directory of packages, as one that is relative to the environment; none where
/// it leads out.
pub(crate) fn in_environment(path: &str, site_packages: &str) -> Option<String> {
    if path.starts_with('/') || path.contains(['\\', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = site_packages.split('/').collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The same in the other direction.
pub(crate) fn in_record(path: &str, site_packages: &str) -> String {
    match path.strip_prefix(site_packages).and_then(|inside| inside.strip_prefix('/')) {
        Some(inside) => inside.to_owned(),
        None => format!("../../../{path}"),
    }
}
