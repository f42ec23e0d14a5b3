//! The file of personas: from YAML to what can be asked, with the place of every fault.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use globset::GlobBuilder;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use tgp_contract::{RelativePath, ToolError};
use tgp_text::LineCol;
use tgp_text::yaml::{self, YamlLimits, location};

use super::fault::{Fault, NONE, unreadable};
use super::{Filter, Persona, Test, duration};
use crate::action::{Action, AgentAction};
use crate::change::FileChangeKind;

/// The version of the file that this build reads; a file need not name it.
const VERSION: u64 = 1;
/// People write this file; one of the most personas with long prompts is smaller.
const MAX_FILE_BYTES: usize = 256 << 10;
/// Each is asked about each change.
const MAX_PERSONAS: usize = 64;
const MAX_FILTERS: usize = 64;
/// Each is looked for in up to a megabyte of text.
const MAX_CONTENTS: usize = 16;
/// What fits into a line of an event.
const MAX_NAME_BYTES: usize = 100;
const MAX_PATTERN_BYTES: usize = 1_000;
/// Memory of one compiled pattern. Repetitions of repetitions grow beyond it.
const MAX_PATTERN_MEMORY: usize = 1 << 20;
/// Groups inside of groups; no pattern that a person reads has more.
const MAX_PATTERN_DEPTH: u32 = 50;
const MAX_PROMPT_BYTES: usize = 16 << 10;
/// The names that an agent's tools are listed by.
const MAX_TOOLS: usize = 64;
/// How long an action may take where its persona does not say: longer than a tool or a query runs, and than an agent
/// needs for one file.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Turns of a model for one change of a file.
const MAX_STEPS: u64 = 1_000;
/// Arguments are flat or nearly so. A file of the largest size holds fewer values unless it is made of brackets.
const LIMITS: YamlLimits = YamlLimits { depth: 16, nodes: 20_000 };

/// The characters that make a filter a glob.
const GLOB: [char; 4] = ['*', '?', '[', '{'];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    version: Option<Spanned<u64>>,
    /// Nothing after the colon is not a list: a file that was saved by half must not be taken for one without personas.
    personas: Spanned<Option<Vec<Entry>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    filters: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    contents: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    changes: Option<Spanned<Vec<FileChangeKind>>>,
    #[serde(default)]
    cooldown: Option<Spanned<String>>,
    #[serde(default)]
    timeout: Option<Spanned<String>>,
    #[serde(default)]
    action: Option<Spanned<ActionEntry>>,
}

enum ActionEntry {
    Word(String),
    Fields(Box<ActionFields>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionFields {
    #[serde(default)]
    tool: Option<Spanned<String>>,
    #[serde(default)]
    args: Option<Map<String, Value>>,
    #[serde(default)]
    query: Option<Spanned<String>>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    inputs: Option<Map<String, Value>>,
    #[serde(default)]
    agent: Option<Spanned<AgentFields>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentFields {
    prompt: Spanned<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    tools: Option<Vec<String>>,
    #[serde(default)]
    max_steps: Option<Spanned<u64>>,
}

impl<'de> Deserialize<'de> for ActionEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ActionEntry;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("`record`, or a mapping with `tool`, `query` or `agent`")
            }

            fn visit_str<E>(self, word: &str) -> Result<ActionEntry, E> {
                Ok(ActionEntry::Word(word.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<ActionEntry, A::Error> {
                let fields = ActionFields::deserialize(MapAccessDeserializer::new(fields))?;
                Ok(ActionEntry::Fields(Box::new(fields)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

pub(super) fn read(text: &str, file_name: &str) -> Result<Vec<Persona>, ToolError> {
    let fault = |location, field: &str, message: String| Fault {
        file: file_name,
        location,
        field: field.to_owned(),
        message,
    };
    if text.len() > MAX_FILE_BYTES {
        let message = format!("the file has {} bytes, more than the {MAX_FILE_BYTES} allowed", text.len());
        return Err(fault(LineCol::START, "", message).help("keep fewer personas and shorter prompts"));
    }
    if yaml::is_empty(text) {
        return Err(fault(LineCol::START, "", "the file is empty".to_owned()).help(NONE));
    }
    let file: File = yaml::read(text, LIMITS).map_err(|error| unreadable(file_name, error))?;
    if let Some(version) = &file.version
        && version.value != VERSION
    {
        let message = format!("version {} is not known", version.value);
        return Err(fault(location(version), "version", message).help(format!("write `version: {VERSION}`")));
    }
    let Some(entries) = file.personas.value else {
        let message = "`personas` has no value".to_owned();
        return Err(fault(location(&file.personas), "personas", message).help(NONE));
    };
    if entries.len() > MAX_PERSONAS {
        let message = format!("there are {} personas, at most {MAX_PERSONAS}", entries.len());
        return Err(fault(LineCol::START, "personas", message).help("give one persona several filters"));
    }
    let mut all = Vec::with_capacity(entries.len());
    let mut names = BTreeMap::new();
    for (number, entry) in entries.into_iter().enumerate() {
        let place = location(&entry.name);
        let reader = Reader { file: file_name, at: format!("personas[{number}]") };
        let persona = reader.persona(entry)?;
        if let Some(first) = names.insert(persona.name.clone(), place.line) {
            let message = format!("`{}` is the name of the persona at line {first} already", persona.name);
            return Err(reader.fault(place, "name", message).help("give each persona a name of its own"));
        }
        all.push(persona);
    }
    Ok(all)
}

/// Reads one persona.
struct Reader<'f> {
    file: &'f str,
    /// Where in the file it is, such as `personas[0]`.
    at: String,
}

impl<'f> Reader<'f> {
    fn fault(&self, location: LineCol, field: &str, message: String) -> Fault<'f> {
        Fault { file: self.file, location, field: format!("{}.{field}", self.at), message }
    }

    fn bounded(&self, text: &Spanned<String>, field: &str, most: usize) -> Result<(), ToolError> {
        if text.value.trim().is_empty() {
            return Err(self
                .fault(location(text), field, format!("`{}` is empty", last_name(field)))
                .help("say what it is"));
        }
        if text.value.len() > most {
            let message = format!("`{}` has {} bytes, more than {most}", last_name(field), text.value.len());
            return Err(self.fault(location(text), field, message).help("make it shorter"));
        }
        Ok(())
    }

    fn persona(&self, entry: Entry) -> Result<Persona, ToolError> {
        self.bounded(&entry.name, "name", MAX_NAME_BYTES)?;
        let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' ');
        if !entry.name.value.chars().all(fits) {
            let message = format!("`{}` is not a name of a persona", entry.name.value.escape_debug());
            return Err(self
                .fault(location(&entry.name), "name", message)
                .help("use letters, digits, spaces, `-`, `_` and `.`, such as `secrets-guardian`"));
        }
        let (wanted, unwanted) = self.filters(&entry.filters)?;
        let filters = entry.filters.value.into_iter().map(|filter| filter.value).collect();
        let mut contents = Vec::new();
        let mut patterns = Vec::new();
        if let Some(list) = entry.contents {
            self.counted(list.value.len(), location(&list), "contents", MAX_CONTENTS)?;
            for (number, pattern) in list.value.into_iter().enumerate() {
                patterns.push(self.pattern(&pattern, &format!("contents[{number}]"))?);
                contents.push(pattern.value);
            }
        }
        let changes = match entry.changes {
            None => FileChangeKind::ALL.to_vec(),
            Some(list) => {
                self.counted(list.value.len(), location(&list), "changes", FileChangeKind::ALL.len())?;
                if !patterns.is_empty() && list.value.iter().all(|kind| *kind == FileChangeKind::Deleted) {
                    let message = "a file that is deleted has no content for `contents`".to_owned();
                    return Err(self
                        .fault(location(&list), "changes", message)
                        .help("leave `contents` out, or name another change besides `deleted`"));
                }
                list.value
            }
        };
        Ok(Persona {
            name: entry.name.value,
            filters,
            contents,
            changes,
            cooldown: entry.cooldown.map_or(Ok(Duration::ZERO), |text| self.length(&text, "cooldown"))?,
            timeout: entry.timeout.map_or(Ok(DEFAULT_TIMEOUT), |text| self.timeout(&text))?,
            action: entry.action.map_or(Ok(Action::Record), |action| self.action(action))?,
            wanted,
            unwanted,
            patterns,
        })
    }

    fn counted(&self, count: usize, place: LineCol, field: &str, most: usize) -> Result<(), ToolError> {
        if count == 0 {
            let help = format!("name at least one, or leave `{field}` out");
            return Err(self.fault(place, field, format!("`{field}` is empty")).help(help));
        }
        if count > most {
            let message = format!("`{field}` has {count} entries, at most {most}");
            return Err(self.fault(place, field, message).help("join some of them into one"));
        }
        Ok(())
    }

    fn filters(
        &self,
        filters: &Spanned<Vec<Spanned<String>>>,
    ) -> Result<(Vec<Filter>, Vec<Filter>), ToolError> {
        if filters.value.is_empty() {
            return Err(self
                .fault(location(filters), "filters", "`filters` is empty".to_owned())
                .help("write `filters: [\"**\"]` for every file"));
        }
        self.counted(filters.value.len(), location(filters), "filters", MAX_FILTERS)?;
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        for (number, filter) in filters.value.iter().enumerate() {
            let field = format!("filters[{number}]");
            self.bounded(filter, &field, MAX_PATTERN_BYTES)?;
            let (list, text) = match filter.value.strip_prefix('!') {
                Some(rest) => (&mut unwanted, rest),
                None => (&mut wanted, filter.value.as_str()),
            };
            let wrong = |message: String| self.fault(location(filter), &field, message);
            if text.is_empty() {
                return Err(wrong("a filter of only `!` excludes nothing".to_owned())
                    .help("write what is excluded after it"));
            }
            self.beginning(filter, text, &field)?;
            let test = if text.contains(GLOB) {
                let glob = GlobBuilder::new(text).literal_separator(true).build().map_err(|error| {
                    wrong(format!("`{}` is not a glob: {}", text.escape_debug(), error.kind()))
                        .help("correct the glob; `*` stays within one name, `**` goes through all")
                })?;
                let matcher = glob.compile_matcher();
                if text.contains('/') { Test::Path(matcher) } else { Test::Name(matcher) }
            } else {
                Test::Part(text.to_owned())
            };
            list.push(Filter { text: filter.value.clone(), test });
        }
        Ok((wanted, unwanted))
    }

    /// A path begins with neither `/` nor `./`, so a filter that does would never fit. A part of a path may.
    fn beginning(&self, filter: &Spanned<String>, text: &str, field: &str) -> Result<(), ToolError> {
        let is_absolute = text.starts_with('/') && text.contains(GLOB);
        if !is_absolute && !text.starts_with("./") {
            return Ok(());
        }
        let mut rest = text;
        while let Some(next) = rest.strip_prefix("./").or_else(|| rest.strip_prefix('/')) {
            rest = next;
        }
        let not = if filter.value.starts_with('!') { "!" } else { "" };
        let help = if rest.is_empty() {
            "write `**` for every file".to_owned()
        } else {
            format!("write `{not}{}`: paths are below the project", rest.escape_debug())
        };
        let message = format!("`{}` fits no file", filter.value.escape_debug());
        Err(self.fault(location(filter), field, message).help(help))
    }

    fn pattern(&self, pattern: &Spanned<String>, field: &str) -> Result<Regex, ToolError> {
        self.bounded(pattern, field, MAX_PATTERN_BYTES)?;
        let built = RegexBuilder::new(&pattern.value)
            .size_limit(MAX_PATTERN_MEMORY)
            .dfa_size_limit(MAX_PATTERN_MEMORY)
            .nest_limit(MAX_PATTERN_DEPTH)
            .build();
        built.map_err(|error| {
            if let regex::Error::CompiledTooBig(_) = error {
                let message = format!("`{}` is too large a pattern", pattern.value.escape_debug());
                return self
                    .fault(location(pattern), field, message)
                    .help("repeat less often in `{…}`, or use several shorter patterns");
            }
            // The engine draws a picture of several lines; the last one says what is wrong.
            let said = error.to_string();
            let said = said.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            let message = format!("`{}` is not a regular expression: {said}", pattern.value.escape_debug());
            self.fault(location(pattern), field, message)
                .help("correct the pattern; a literal `.`, `(` or `[` needs a backslash")
        })
    }

    fn length(&self, text: &Spanned<String>, field: &str) -> Result<Duration, ToolError> {
        duration::read(&text.value).map_err(|error| {
            self.fault(location(text), field, error.to_string())
                .help("write a whole number with `ms`, `s`, `m` or `h`, at most `24h`")
        })
    }

    fn timeout(&self, text: &Spanned<String>) -> Result<Duration, ToolError> {
        let timeout = self.length(text, "timeout")?;
        if timeout.is_zero() {
            return Err(self
                .fault(location(text), "timeout", "no action ends in no time".to_owned())
                .help("write how long it may take, such as `10m`"));
        }
        Ok(timeout)
    }

    fn action(&self, entry: Spanned<ActionEntry>) -> Result<Action, ToolError> {
        let place = location(&entry);
        let fault = |message: String| self.fault(place, "action", message);
        let fields = match entry.value {
            ActionEntry::Word(word) if word == "record" => return Ok(Action::Record),
            ActionEntry::Word(word) => {
                return Err(fault(format!("`{}` is not an action", word.escape_debug()))
                    .help("write `record`, or a mapping with `tool`, `query` or `agent`"));
            }
            ActionEntry::Fields(fields) => *fields,
        };
        let belongs = |field: &str, to: &str| {
            fault(format!("`{field}` has a meaning only with `{to}`"))
                .help(format!("remove `{field}`, or name a `{to}`"))
        };
        let ActionFields { tool, args, query, name, inputs, agent } = fields;
        if args.is_some() && tool.is_none() {
            return Err(belongs("args", "tool"));
        }
        if (name.is_some() || inputs.is_some()) && query.is_none() {
            return Err(belongs(if name.is_some() { "name" } else { "inputs" }, "query"));
        }
        match (tool, query, agent) {
            (Some(tool), None, None) => {
                let path = self.path(&tool, "action.tool")?;
                Ok(Action::Tool { path, args: args.unwrap_or_default() })
            }
            (None, Some(query), None) => {
                let file = self.path(&query, "action.query")?;
                Ok(Action::Query { file, name, inputs: inputs.unwrap_or_default() })
            }
            (None, None, Some(agent)) => self.agent(agent.value),
            (None, None, None) => {
                Err(fault("the action names nothing to do".to_owned())
                    .help("add `tool:`, `query:` or `agent:`"))
            }
            _ => Err(fault("the action names more than one thing to do".to_owned())
                .help("keep one of `tool`, `query` and `agent`; two personas can have the same filters")),
        }
    }

    fn path(&self, text: &Spanned<String>, field: &str) -> Result<String, ToolError> {
        self.bounded(text, field, MAX_PATTERN_BYTES)?;
        match RelativePath::new(&text.value) {
            Ok(path) if !path.is_root() => Ok(path.into()),
            Ok(_) => Err(self
                .fault(location(text), field, "it names the project itself".to_owned())
                .help("name a file below the project")),
            Err(error) => Err(self
                .fault(location(text), field, error.to_string())
                .help("name a file below the project, such as `tools/notify.ts`")),
        }
    }

    fn agent(&self, fields: AgentFields) -> Result<Action, ToolError> {
        self.bounded(&fields.prompt, "action.agent.prompt", MAX_PROMPT_BYTES)?;
        if let Some(steps) = &fields.max_steps
            && !(1..=MAX_STEPS).contains(&steps.value)
        {
            let message = format!("`max_steps` is {}, not between 1 and {MAX_STEPS}", steps.value);
            return Err(self
                .fault(location(steps), "action.agent.max_steps", message)
                .help("write a number of turns"));
        }
        if fields.tools.as_ref().is_some_and(|tools| tools.len() > MAX_TOOLS) {
            let message = format!("`tools` has more than {MAX_TOOLS} entries");
            return Err(self
                .fault(location(&fields.prompt), "action.agent.tools", message)
                .help("give the agent fewer tools"));
        }
        Ok(Action::Agent(AgentAction {
            prompt: fields.prompt.value,
            model: fields.model,
            tools: fields.tools,
            max_steps: fields.max_steps.map(|steps| steps.value),
        }))
    }
}

/// `filters[1]` of `personas[0].filters[1]`.
fn last_name(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}
