//! `pyproject.toml`: what a project depends on, and an edit that keeps its format and its comments.

use std::str::FromStr;

use pep440_rs::VersionSpecifiers;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use crate::{ManifestError, Name, Requirement};

/// Largest manifest.
const MAX_BYTES: usize = 1 << 20;
/// Most requirements of all lists.
const MAX_REQUIREMENTS: usize = 5000;
/// Groups that take in groups, and extras that take in extras.
const MAX_DEPTH: usize = 16;

/// A list of requirements in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyList {
    /// `[project].dependencies`.
    Project,
    /// A group of `[dependency-groups]`, such as `dev`.
    Group(&'static str),
}

/// A manifest with `[project]`.
#[derive(Clone, Debug)]
pub struct PyProject {
    document: DocumentMut,
    name: Option<Name>,
    requires_python: Option<VersionSpecifiers>,
}

impl PyProject {
    /// # Errors
    /// For a manifest that cannot be read, and for one whose dependencies are kept in a table of another manager.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        if text.len() > MAX_BYTES {
            return Err(ManifestError::TooLarge(MAX_BYTES));
        }
        let syntax = |error: toml_edit::TomlError| ManifestError::Syntax(error.message().to_owned());
        let document = DocumentMut::from_str(text).map_err(syntax)?;
        let mut manifest = Self { document, name: None, requires_python: None };
        manifest.refuse_others()?;
        if let Some(project) = manifest.project()? {
            let text = |name: &str| text_of(project, "project", name);
            let name = text("name")?.map(Name::new).transpose();
            let python = text("requires-python")?.map(VersionSpecifiers::from_str).transpose();
            let (name, python) = (
                name.map_err(|error| field("project.name", error.to_string()))?,
                python.map_err(|error| field("project.requires-python", error.to_string()))?,
            );
            (manifest.name, manifest.requires_python) = (name, python);
        }
        Ok(manifest)
    }

    /// Whether it has `[project]`: without it, it only holds settings of tools.
    #[must_use]
    pub fn has_project(&self) -> bool {
        self.document.contains_key("project")
    }

    /// The project's own name.
    #[must_use]
    pub fn name(&self) -> Option<&Name> {
        self.name.as_ref()
    }

    /// Versions of Python that the project runs on.
    #[must_use]
    pub fn requires_python(&self) -> Option<&VersionSpecifiers> {
        self.requires_python.as_ref()
    }

    /// What the project needs to run. A requirement of the project itself with extras means what these extras list.
    ///
    /// # Errors
    /// For what is not a list of requirements.
    pub fn dependencies(&self) -> Result<Vec<Requirement>, ManifestError> {
        let Some(project) = self.project()? else { return Ok(Vec::new()) };
        let mut found = Found::default();
        for requirement in list(project.get("dependencies"), "project.dependencies")? {
            self.expand(requirement, &mut found, 0)?;
        }
        Ok(found.requirements)
    }

    /// What an extra of the project lists.
    ///
    /// # Errors
    /// For what is not a list of requirements.
    pub fn extra(&self, name: &Name) -> Result<Vec<Requirement>, ManifestError> {
        let mut found = Found::default();
        self.extra_into(name, &mut found, 0)?;
        Ok(found.requirements)
    }

    /// What a group of `[dependency-groups]` lists; none where there is no such group.
    ///
    /// # Errors
    /// For what is not a list of requirements or groups.
    pub fn group(&self, name: &str) -> Result<Option<Vec<Requirement>>, ManifestError> {
        let wanted = Name::new(name).map_err(|error| field("dependency-groups", error.to_string()))?;
        let mut found = Found::default();
        Ok(self.group_into(&wanted, &mut found, 0)?.then_some(found.requirements))
    }

    fn project(&self) -> Result<Option<&dyn TableLike>, ManifestError> {
        table(self.document.get("project"), "project")
    }

    fn refuse_others(&self) -> Result<(), ManifestError> {
        let unsupported = |why: &str| Err(ManifestError::Unsupported(why.to_owned()));
        let tool = table(self.document.get("tool"), "tool")?;
        let of_tool = |name: &str, key: &str| {
            let tool = tool.and_then(|tool| tool.get(name)).and_then(Item::as_table_like);
            tool.is_some_and(|tool| tool.contains_key(key))
        };
        if of_tool("poetry", "dependencies") || of_tool("poetry", "group") {
            return unsupported(
                "its dependencies are in tables of Poetry (`[tool.poetry]`), which Poetry installs",
            );
        }
        if of_tool("uv", "sources") || of_tool("uv", "workspace") {
            return unsupported("it names other sources of packages (`[tool.uv]`), which uv installs");
        }
        if of_tool("pdm", "dev-dependencies") || of_tool("pdm", "source") {
            return unsupported("its dependencies are in tables of PDM (`[tool.pdm]`), which PDM installs");
        }
        let Some(project) = self.project()? else { return Ok(()) };
        let dynamic = project.get("dynamic").and_then(Item::as_array);
        let is_dynamic =
            dynamic.is_some_and(|list| list.iter().any(|name| name.as_str() == Some("dependencies")));
        if is_dynamic {
            return unsupported(
                "its dependencies are computed by its build (`dynamic`), and nothing is built",
            );
        }
        Ok(())
    }

    fn expand(&self, requirement: Requirement, found: &mut Found, depth: usize) -> Result<(), ManifestError> {
        found.step()?;
        if Some(requirement.name()) != self.name() {
            found.requirements.push(requirement);
            return Ok(());
        }
        for extra in requirement.extras() {
            let start = found.requirements.len();
            self.extra_into(extra, found, depth + 1)?;
            let added: Vec<Requirement> =
                found.requirements.drain(start..).map(|inner| inner.under(&requirement)).collect();
            found.requirements.extend(added);
        }
        Ok(())
    }

    fn extra_into(&self, name: &Name, found: &mut Found, depth: usize) -> Result<(), ManifestError> {
        const EXTRAS: &str = "project.optional-dependencies";
        found.step()?;
        if depth > MAX_DEPTH {
            return Err(field(EXTRAS, format!("`{name}` takes in extras more than {MAX_DEPTH} deep")));
        }
        let extras = self.project()?.and_then(|project| project.get("optional-dependencies"));
        let extras = table(extras, EXTRAS)?;
        let same = |(key, _): &(&str, &Item)| Name::new(key).is_ok_and(|key| key == *name);
        let Some((key, item)) = extras.and_then(|extras| extras.iter().find(same)) else {
            return Err(field(EXTRAS, format!("it has no extra `{name}`")));
        };
        for requirement in list(Some(item), &format!("{EXTRAS}.{key}"))? {
            self.expand(requirement, found, depth)?;
        }
        Ok(())
    }

    fn group_into(&self, name: &Name, found: &mut Found, depth: usize) -> Result<bool, ManifestError> {
        const GROUPS: &str = "dependency-groups";
        found.step()?;
        if depth > MAX_DEPTH {
            return Err(field(GROUPS, format!("`{name}` takes in groups more than {MAX_DEPTH} deep")));
        }
        let groups = table(self.document.get(GROUPS), GROUPS)?;
        let same = |(key, _): &(&str, &Item)| Name::new(key).is_ok_and(|key| key == *name);
        let Some((key, item)) = groups.and_then(|groups| groups.iter().find(same)) else { return Ok(false) };
        let at = format!("{GROUPS}.{key}");
        let entries = item.as_array().ok_or_else(|| field(&at, "expected a list".to_owned()))?;
        for entry in entries {
            let included = entry.as_inline_table().and_then(|table| table.get("include-group"));
            match (entry.as_str(), included.and_then(Value::as_str)) {
                (Some(text), _) => self.expand(requirement(text, &at)?, found, depth)?,
                (None, Some(other)) => {
                    let other = Name::new(other).map_err(|error| field(&at, error.to_string()))?;
                    if !self.group_into(&other, found, depth + 1)? {
                        return Err(field(&at, format!("there is no group `{other}`")));
                    }
                }
                (None, None) => return Err(field(&at, "expected a requirement or a group".to_owned())),
            }
        }
        Ok(true)
    }

    /// Whether a list names a package itself.
    ///
    /// # Errors
    /// For what is not a list of requirements.
    pub fn lists(&self, of: DependencyList, name: &Name) -> Result<bool, ManifestError> {
        Ok(match self.array(of)? {
            Some(array) => array.iter().any(|entry| is_of(entry, name)),
            None => false,
        })
    }

    /// Adds a requirement, or puts it in the place of the one with this name.
    ///
    /// # Errors
    /// For a package that is listed more than once, and for what is not a list.
    pub fn set(&mut self, of: DependencyList, requirement: &Requirement) -> Result<(), ManifestError> {
        let at = of.field();
        if self.array(of)?.is_none() {
            self.make(of)?;
        }
        let array = self.array_mut(of).ok_or_else(|| field(&at, "expected a list".to_owned()))?;
        let same: Vec<usize> = array
            .iter()
            .enumerate()
            .filter(|(_, entry)| is_of(entry, requirement.name()))
            .map(|(at, _)| at)
            .collect();
        match same.as_slice() {
            [] => push(array, requirement.to_string()),
            [place] => {
                // The entry keeps what is around it.
                array.replace(*place, requirement.to_string());
            }
            _ => return Err(field(&at, format!("`{}` is listed more than once", requirement.name()))),
        }
        Ok(())
    }

    fn array(&self, of: DependencyList) -> Result<Option<&Array>, ManifestError> {
        let at = of.field();
        let (table_name, key) = of.place();
        let item = table(self.document.get(table_name), table_name)?.and_then(|table| table.get(key));
        item.map(|item| item.as_array().ok_or_else(|| field(&at, "expected a list".to_owned()))).transpose()
    }

    fn array_mut(&mut self, of: DependencyList) -> Option<&mut Array> {
        let (table, key) = of.place();
        self.document.get_mut(table)?.as_table_like_mut()?.get_mut(key)?.as_array_mut()
    }

    fn make(&mut self, of: DependencyList) -> Result<(), ManifestError> {
        let (table, key) = of.place();
        let item = self.document.entry(table).or_insert_with(|| Item::Table(Table::new()));
        let table = item.as_table_like_mut().ok_or_else(|| field(table, "expected a table".to_owned()))?;
        table.insert(key, toml_edit::value(Array::new()));
        Ok(())
    }

    /// The text of the manifest.
    #[must_use]
    pub fn text(&self) -> String {
        self.document.to_string()
    }
}

/// Requirements of lists that take in each other.
#[derive(Default)]
struct Found {
    requirements: Vec<Requirement>,
    steps: usize,
}

impl Found {
    /// Lists that take in others twice, which take in others twice, end here.
    fn step(&mut self) -> Result<(), ManifestError> {
        self.steps += 1;
        if self.steps > MAX_REQUIREMENTS {
            return Err(field(
                "project",
                format!("more than {MAX_REQUIREMENTS} requirements, groups and extras"),
            ));
        }
        Ok(())
    }
}

impl DependencyList {
    fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::Project => ("project", "dependencies"),
            Self::Group(name) => ("dependency-groups", name),
        }
    }

    fn field(self) -> String {
        let (table, key) = self.place();
        format!("{table}.{key}")
    }
}

fn field(name: &str, problem: String) -> ManifestError {
    ManifestError::Field { field: name.to_owned(), problem }
}

fn table<'a>(item: Option<&'a Item>, name: &str) -> Result<Option<&'a dyn TableLike>, ManifestError> {
    let Some(item) = item else { return Ok(None) };
    item.as_table_like().map(Some).ok_or_else(|| field(name, "expected a table".to_owned()))
}

fn text_of<'a>(table: &'a dyn TableLike, of: &str, name: &str) -> Result<Option<&'a str>, ManifestError> {
    let Some(item) = table.get(name) else { return Ok(None) };
    let text = item.as_str().ok_or_else(|| field(&format!("{of}.{name}"), "expected a text".to_owned()))?;
    Ok(Some(text))
}

fn requirement(text: &str, at: &str) -> Result<Requirement, ManifestError> {
    let shown: String = text.chars().take(120).collect();
    Requirement::parse(text).map_err(|error| field(at, format!("`{}`: {error}", shown.escape_default())))
}

fn list(item: Option<&Item>, at: &str) -> Result<Vec<Requirement>, ManifestError> {
    let Some(item) = item else { return Ok(Vec::new()) };
    let entries = item.as_array().ok_or_else(|| field(at, "expected a list".to_owned()))?;
    if entries.len() > MAX_REQUIREMENTS {
        return Err(field(at, format!("more than {MAX_REQUIREMENTS} requirements")));
    }
    let one = |entry: &Value| {
        let text = entry.as_str().ok_or_else(|| field(at, "expected a requirement".to_owned()))?;
        requirement(text, at)
    };
    entries.iter().map(one).collect()
}

fn is_of(entry: &Value, name: &Name) -> bool {
    let listed = entry.as_str().and_then(|text| Requirement::parse(text).ok());
    listed.is_some_and(|listed| listed.name() == name)
}

/// Adds an entry in the format of the one before it. A comment after the last entry stays with it.
fn push(array: &mut Array, text: String) {
    let before = |value: &Value| value.decor().prefix().and_then(|prefix| prefix.as_str()).map(str::to_owned);
    let Some(prefix) = array.iter().last().map(before) else {
        array.push(text);
        return;
    };
    let prefix = prefix.unwrap_or_default();
    if !prefix.contains('\n') {
        array.push(text);
        return;
    }
    let indent = prefix.rsplit('\n').next().unwrap_or_default().to_owned();
    let trailing = array.trailing().as_str().unwrap_or_default().to_owned();
    let kept = trailing.rfind('\n').map_or(trailing.as_str(), |end| trailing.get(..end).unwrap_or_default());
    let prefix = if kept.contains('#') { format!("{kept}\n{indent}") } else { format!("\n{indent}") };
    let end = trailing.rsplit('\n').next().filter(|_| trailing.contains('\n')).unwrap_or_default();
    array.set_trailing(format!("\n{end}"));
    let mut value = Value::from(text);
    *value.decor_mut() = toml_edit::Decor::new(prefix, "");
    array.push_formatted(value);
}
