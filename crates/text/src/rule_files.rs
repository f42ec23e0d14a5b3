//! The names of rule files: those that are read, and those that only look like one.
//!
//! Loading, the check for files that are not read, the protection of paths and the pages ask here. A path is relative
//! to the project, with the tool repository at `.tgp`. A rule file with a name that is nearly right would be a gate that
//! is silently not there, so such a name stops every call with an effect.

use crate::{edit_distance, fold_name};

/// What a rule file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RulePurpose {
    /// The configuration of the project.
    Config,
    /// Rules of the policy gate.
    Policy,
    /// What the Guardian checks.
    Invariants,
    /// The personas of the valve.
    Personas,
}

impl RulePurpose {
    /// Every purpose.
    pub const ALL: [Self; 4] = [Self::Config, Self::Policy, Self::Invariants, Self::Personas];

    /// Returns the paths that are read for this purpose. A project has at most one of them.
    #[must_use]
    pub const fn paths(self) -> &'static [&'static str] {
        match self {
            Self::Config => &["tgp.config.ts", "tgp.config.js", "tgp.config.json"],
            Self::Policy => &["tgp.policy.yaml", "tgp.policy.yml"],
            Self::Invariants => &[".sage/invariants.yml", ".sage/invariants.yaml"],
            Self::Personas => &[".sage/valve.yml", ".sage/valve.yaml"],
        }
    }

    /// Returns the words of messages for such a file.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Config => "a configuration",
            Self::Policy => "a file of rules",
            Self::Invariants => "a file of invariants",
            Self::Personas => "a file of personas",
        }
    }
}

/// A path that is, or looks like, that of a rule file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleFile {
    pub purpose: RulePurpose,
    /// False for a name that only looks like one: the file would be ignored.
    pub is_read: bool,
}

impl RuleFile {
    const fn near(purpose: RulePurpose) -> Self {
        Self { purpose, is_read: false }
    }
}

/// The tool repository, and the directory of rules in it.
const TOOLS: &str = ".tgp";
const RULES: &str = "policy";
/// The directory of invariants and personas.
const CHRONICLES: &str = ".sage";

/// How names of ours begin, as typed and with two keys swapped or one typed twice. Other wrong letters make other words:
/// `tap.config.js` is the configuration of another program.
const PREFIXES: [&str; 6] = ["tgp", "tpg", "gtp", "ttgp", "tggp", "tgpp"];

/// What comes after the prefix, and how many edits still look like it in data and in scripts. Words that are near to others
/// of everyday use have no edits.
const WORDS: [(&str, RulePurpose, usize, usize); 14] = [
    ("policy", RulePurpose::Policy, 2, 1),
    ("policies", RulePurpose::Policy, 2, 1),
    ("rules", RulePurpose::Policy, 0, 0),
    ("rule", RulePurpose::Policy, 0, 0),
    ("config", RulePurpose::Config, 2, 1),
    ("configs", RulePurpose::Config, 1, 1),
    ("configuration", RulePurpose::Config, 2, 2),
    ("conf", RulePurpose::Config, 0, 0),
    ("invariants", RulePurpose::Invariants, 2, 1),
    ("invariant", RulePurpose::Invariants, 1, 1),
    ("personas", RulePurpose::Personas, 1, 1),
    ("persona", RulePurpose::Personas, 0, 0),
    ("valve", RulePurpose::Personas, 0, 0),
    ("valves", RulePurpose::Personas, 0, 0),
];

/// Extensions of data, besides those that are nearly `yaml`.
const DATA: [&str; 13] =
    ["yaml", "yml", "json", "json5", "jsonc", "toml", "txt", "conf", "cfg", "ini", "xml", "rego", "cue"];
/// Extensions of programs.
const SCRIPTS: [&str; 9] = ["ts", "mts", "cts", "tsx", "js", "mjs", "cjs", "jsx", "py"];
/// A part of a name that says the file is not meant to be read: types, tests, examples, copies that are set aside, and
/// chronicles.
const SET_ASIDE: [&str; 18] = [
    "d", "test", "tests", "spec", "example", "examples", "sample", "template", "dist", "bak", "backup",
    "old", "orig", "copy", "disabled", "schema", "lock", "sage",
];

/// Which kind of file an extension is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Data,
    Script,
}

fn form_of(extension: &str) -> Option<Form> {
    // `ymal`, `yamll`, `yam`: a slip of the keyboard. `xml` and `ml` are other languages.
    let is_nearly_yaml = extension.starts_with('y')
        && extension.len() <= 5
        && ["yaml", "yml"].iter().any(|right| edit_distance(extension, right) <= 1);
    if DATA.contains(&extension) || is_nearly_yaml {
        Some(Form::Data)
    } else {
        SCRIPTS.contains(&extension).then_some(Form::Script)
    }
}

/// What an editor leaves beside a file.
fn is_of_editor(name: &str) -> bool {
    name.ends_with(['~', '#']) || name.starts_with(".#") || name.starts_with('#')
}

/// A folded name without its leading separators, cut into the part that says what it is and the form of the file.
struct NameParts<'n> {
    stem: &'n str,
    form: Option<Form>,
}

impl<'n> NameParts<'n> {
    fn new(folded: &'n str) -> Option<Self> {
        let bare = folded.trim_start_matches(SEPARATORS);
        if folded.len() > MAX_NAME_BYTES
            || is_of_editor(folded)
            || bare.split('.').any(|part| SET_ASIDE.contains(&part))
        {
            return None;
        }
        let cut = |name: &'n str| name.rsplit_once('.').and_then(|(stem, end)| Some((stem, form_of(end)?)));
        let Some((mut stem, form)) = cut(bare) else { return Some(Self { stem: bare, form: None }) };
        // `tgp.policy.yaml.txt`: what a desktop makes of it.
        if let Some((inner, _)) = cut(stem) {
            stem = inner;
        }
        Some(Self { stem, form: Some(form) })
    }
}

/// What people put between the words of a name.
const SEPARATORS: [char; 4] = ['.', '-', '_', ' '];

/// No file system holds a longer name.
const MAX_NAME_BYTES: usize = 255;
/// No word of ours is nearly as long.
const MAX_WORD_BYTES: usize = 40;

fn squash(text: &str) -> String {
    text.chars().filter(|letter| !SEPARATORS.contains(letter)).collect()
}

/// The purpose that a text is a word for. `least` and `most` bound the edits that each word bears.
fn nearest_word(text: &str, form: Option<Form>, (least, most): (usize, usize)) -> Option<RulePurpose> {
    // Longer texts are no slip of these words, and the comparison is quadratic.
    if text.len() > MAX_WORD_BYTES {
        return None;
    }
    let edits = |(word, purpose, in_data, in_script): &(&str, RulePurpose, usize, usize)| {
        let allowed = match form {
            Some(Form::Data) => (*in_data).max(least),
            Some(Form::Script) => *in_script,
            None => 0,
        };
        let allowed = allowed.min(most);
        // Every call asks about its paths, and few names are near. A letter has up to four bytes.
        if text != *word && (allowed == 0 || text.len().abs_diff(word.len()) > 3 * allowed) {
            return None;
        }
        let edits = edit_distance(text, word);
        (edits <= allowed).then_some((edits, *purpose))
    };
    WORDS.iter().filter_map(edits).min().map(|(_, purpose)| purpose)
}

/// The purpose of a name without separators that begins as ours do.
fn prefixed_word(squashed: &str, form: Option<Form>) -> Option<RulePurpose> {
    let by_prefix = PREFIXES.iter().find_map(|prefix| {
        let most = if *prefix == "tgp" { 2 } else { 1 };
        nearest_word(squashed.strip_prefix(prefix)?, form, (0, most))
    });
    by_prefix.or_else(|| {
        // Letters of other scripts that look like ours.
        let is_candidate = !squashed.is_ascii() && squashed.len() <= MAX_WORD_BYTES;
        let looks = |word: &str| edit_distance(squashed, &format!("tgp{word}")) <= 2;
        WORDS.iter().filter(|_| is_candidate).find(|(word, ..)| looks(word)).map(|(_, purpose, ..)| *purpose)
    })
}

/// The purpose that a name in the project's own directory looks like: `tgp-policy.yaml`, `TGP.config.mjs`, `.tgp.polcy.yml`.
fn looks_like_ours(folded: &str) -> Option<RulePurpose> {
    let bare = folded.trim_start_matches(SEPARATORS);
    if !bare.starts_with(|letter: char| matches!(letter, 't' | 'g') || !letter.is_ascii()) {
        return None;
    }
    let NameParts { stem, form } = NameParts::new(folded)?;
    if stem == "tgp" && bare.starts_with("tgp.y") {
        return Some(RulePurpose::Config);
    }
    // Without an extension a directory or a program of that name is as likely, unless a dot says otherwise.
    if form.is_none() && !stem.contains('.') {
        return None;
    }
    // `tgp.policy.local.yaml` looks like a part of the rules.
    let beginnings = stem.match_indices('.').filter(|_| form.is_some()).filter_map(|(at, _)| stem.get(..at));
    std::iter::once(stem).chain(beginnings).find_map(|stem| prefixed_word(&squash(stem), form))
}

/// The purpose of a name in a directory that is ours, where no prefix is needed.
fn looks_like_bare(folded: &str, edits: (usize, usize)) -> Option<RulePurpose> {
    looks_like_ours(folded).or_else(|| {
        let NameParts { stem, form } = NameParts::new(folded)?;
        let purpose = nearest_word(&squash(stem), form, edits)?;
        // `.tgp/config` and the directory `.sage/rules` may be anything; `.sage/invariants` is not.
        (form.is_some() || matches!(purpose, RulePurpose::Invariants | RulePurpose::Personas))
            .then_some(purpose)
    })
}

/// Returns whether a name in the directory of rules is that of a rule, of `true` for one that is read, or looks like one.
#[must_use]
pub fn looks_like_rule(name: &str) -> Option<bool> {
    let ends_as = |name: &str, end: &str| name.strip_suffix(end).is_some_and(|stem| !stem.is_empty());
    let is_script = ends_as(name, ".ts") && !name.ends_with(".d.ts") && !name.ends_with(".test.ts");
    let folded = fold_name(name);
    if is_of_editor(&folded) {
        return None;
    }
    if is_script || ends_as(name, ".yaml") || ends_as(name, ".yml") {
        return Some(true);
    }
    let (stem, extension) = folded.rsplit_once('.')?;
    let inner = stem.rsplit_once('.').map_or("", |(_, inner)| inner);
    let is_inner = form_of(inner).is_some();
    let looks = match extension {
        // Files of the TypeScript tools, and the upstream servers of the project.
        "json" if matches!(stem, "package" | "tsconfig" | "upstream") || inner == "schema" => false,
        "ts" => !matches!(inner, "d" | "test"),
        "js" | "mjs" | "cjs" => inner != "test",
        "txt" => is_inner,
        "py" | "conf" | "cfg" | "ini" | "xml" => false,
        other => form_of(other).is_some(),
    };
    looks.then_some(false)
}

/// Whether a name in the tool repository looks like the directory of rules, and is not.
fn is_near_directory(name: &str, folded: &str) -> bool {
    let is_near = |word: &str| folded.len() <= MAX_WORD_BYTES && edit_distance(folded, word) <= 1;
    name != RULES && !folded.contains('.') && (is_near(RULES) || is_near("policies"))
}

/// Returns what a path of the project is by its name: a rule file, one that looks like it, or `None`. What is below a path
/// that looks like one does, too.
#[must_use]
pub fn rule_file(path: &[&str]) -> Option<RuleFile> {
    let (first, rest) = path.split_first()?;
    let folded = fold_name(first);
    match (&*folded, rest) {
        (TOOLS | CHRONICLES, []) => None,
        (TOOLS, rest) => {
            in_tools(rest).map(|file| RuleFile { is_read: file.is_read && *first == TOOLS, ..file })
        }
        (CHRONICLES, [name, below @ ..]) => {
            let at = format!("{CHRONICLES}/{name}");
            let exact = RulePurpose::ALL.into_iter().find(|purpose| purpose.paths().contains(&at.as_str()));
            match exact.filter(|_| below.is_empty()) {
                Some(purpose) => Some(RuleFile { purpose, is_read: *first == CHRONICLES }),
                None => looks_like_bare(&fold_name(name), (1, 2)).map(RuleFile::near),
            }
        }
        (_, below) => {
            let exact = RulePurpose::ALL.into_iter().find(|purpose| purpose.paths().contains(first));
            match exact {
                Some(purpose) => Some(RuleFile { purpose, is_read: below.is_empty() }),
                None if matches!(&*folded, "invariants.yml" | "invariants.yaml") => {
                    Some(RuleFile::near(RulePurpose::Invariants))
                }
                None => looks_like_ours(&folded).map(RuleFile::near),
            }
        }
    }
}

/// The same below the tool repository.
fn in_tools(path: &[&str]) -> Option<RuleFile> {
    let (first, rest) = path.split_first()?;
    let folded = fold_name(first);
    match rest {
        [.., name] if *first == RULES => {
            looks_like_rule(name).map(|is_read| RuleFile { purpose: RulePurpose::Policy, is_read })
        }
        [] if *first == RULES => None,
        _ if is_near_directory(first, &folded) => Some(RuleFile::near(RulePurpose::Policy)),
        _ => looks_like_bare(&folded, (0, 1)).map(RuleFile::near),
    }
}
