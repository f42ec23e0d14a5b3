//! What a failed run means, in terms of the tool's own TypeScript.

use std::collections::BTreeMap;

use tgp_compiler::{ModuleGraph, ToolShape};
use tgp_contract::{Code, Finding, Severity, SourceLocation, ToolError};
use tgp_sandbox::{CompileFailure, RunError, RunErrorKind, StackSample};

use super::answered::AnsweredErrors;

/// Logs that the compile worker failed at a source. What the engine refuses is not a failure of the worker.
pub(super) fn log_worker(id: &str, failure: &CompileFailure) {
    if !matches!(failure, CompileFailure::Refused(_)) {
        tracing::warn!(target: "worker", tool = id, "compile worker failed: {failure}");
    }
}

/// A source that killed or stalled the compiler, as a finding at its first line.
pub(super) fn crash_finding(id: &str, failure: &CompileFailure) -> Finding {
    let place = SourceLocation { file: id.to_owned(), line: 1, column: 1 };
    Finding {
        end: place.clone(),
        place,
        rule: "syntax".to_owned(),
        severity: Severity::Error,
        message: failure.to_string(),
        reason: "a source must be small and flat enough to be parsed safely".to_owned(),
        fix: "flatten the nesting or split the source into several tools".to_owned(),
    }
}

pub(super) fn explain(error: &RunError, graph: &ModuleGraph, answered: &AnsweredErrors) -> ToolError {
    let carried = carried_code(error).filter(|code| answered.has(*code));
    let known =
        error.code.as_deref().and_then(|code| answered.find(code, &error.message)).unwrap_or_default();
    let code = carried.unwrap_or_else(|| error.code());
    let frames = map_stack(&error.stack, graph);
    let busiest = busiest_line(error, graph);
    let message = match (&error.kind, error.name.as_str()) {
        (RunErrorKind::CpuTime | RunErrorKind::WallTime, _) => match &busiest {
            Some(line) => format!("{}; {line}", error.message),
            None => error.message.clone(),
        },
        (RunErrorKind::Thrown, name) if !name.is_empty() && name != "Error" => {
            format!("{name}: {}", error.message)
        }
        _ => error.message.clone(),
    };
    let message = match &known.thrown_at {
        Some(place) => format!("{message} (thrown in {place})"),
        None => message,
    };
    let usual = || carried.map_or_else(|| help(error.kind), help_of_carried).to_owned();
    let mut tool_error = ToolError::new(code, message).help(known.help.unwrap_or_else(usual));
    tool_error.details.extend(known.details);
    let place =
        busiest.map(|line| line.place).or_else(|| frames.iter().find_map(|frame| frame.place.clone()));
    if let Some(place) = place {
        tool_error = tool_error.place(&place);
    }
    let stack: Vec<String> = frames.iter().map(Frame::to_string).collect();
    if !stack.is_empty() {
        tool_error = tool_error.detail("stack", stack);
    }
    tool_error
}

/// Samples that are needed before a line is called the one where the time was spent.
const LEAST_SAMPLES: u32 = 5;

/// The line where a stopped run has spent most of its time.
struct BusiestLine {
    place: SourceLocation,
    /// How many samples were taken there, of how many; nothing when there were too few to say.
    samples: Option<(u32, u32)>,
    /// The run did nothing but wait for a call that it had made here.
    waits: bool,
}

impl std::fmt::Display for BusiestLine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SourceLocation { file, line, .. } = &self.place;
        match self.samples {
            _ if self.waits => write!(formatter, "it was waiting for the call at {file}:{line}"),
            Some((here, all)) => {
                let share =
                    if here.saturating_mul(2) > all { "most of the time was spent" } else { "it was often" };
                write!(formatter, "{share} in {file}:{line} ({here} of {all} samples)")
            }
            None => write!(formatter, "it was stopped at {file}:{line}"),
        }
    }
}

/// Where the time of a run went that a limit has stopped.
fn busiest_line(error: &RunError, graph: &ModuleGraph) -> Option<BusiestLine> {
    if !matches!(error.kind, RunErrorKind::CpuTime | RunErrorKind::WallTime) {
        return None;
    }
    let stopped = first_place(&error.stack, graph);
    if let Some(place) =
        stopped.clone().filter(|_| error.kind == RunErrorKind::WallTime && error.stop.is_waiting)
    {
        return Some(BusiestLine { place, samples: None, waits: true });
    }
    let mut lines = BTreeMap::<(String, u32), (SourceLocation, u32)>::new();
    let mut all = 0_u32;
    for StackSample { stack, count } in &error.stop.samples {
        all = all.saturating_add(*count);
        if let Some(place) = sampled_place(stack, graph) {
            let key = (place.file.clone(), place.line);
            let (_, here) = lines.entry(key).or_insert((place, 0));
            *here = here.saturating_add(*count);
        }
    }
    // Of equals the first, so that the same run gives the same message.
    let busiest = lines.into_values().reduce(|best, line| if line.1 > best.1 { line } else { best });
    match busiest {
        Some((place, here)) if all >= LEAST_SAMPLES => {
            Some(BusiestLine { place, samples: Some((here, all)), waits: false })
        }
        _ => {
            let place = sampled_place(&error.stack, graph)?;
            Some(BusiestLine { place, samples: None, waits: false })
        }
    }
}

/// Codes of calls that a tool makes, and what to do when the tool lets such an error through.
const CARRIED: [(Code, &str); 15] = [
    (
        Code::Security,
        "a tool reaches only fs.allowedDirs, fs.readDirs and allowedFetchUrls of the configuration, which people change",
    ),
    (Code::Capability, "the tool is not at fault; `tgp doctor` shows what this machine lacks"),
    (Code::Config, "the tool is not at fault; a person has to correct what the message names"),
    (Code::NotFound, "correct the name that the tool passes, or create what is missing before you run it"),
    (Code::Validation, "correct the arguments of the call that the message names"),
    (Code::Permission, "leave the call out, or ask a person to grant what it needs"),
    (Code::Policy, "find a way that the rules allow; only a person can change a rule"),
    (Code::State, "`tgp state show` says what the tests have to show first"),
    (Code::Approval, "ask a person to approve the call that the tool makes, then run the tool again"),
    (
        Code::Fetch,
        "check the address and whether allowedFetchUrls permits it; catch the error if it may happen",
    ),
    (
        Code::Upstream,
        "correct the call where the server refuses it, or have a person look at the server with `tgp upstream test`",
    ),
    (Code::Pin, "the tool is not at fault; a person has to look at what the server has changed"),
    (
        Code::Sql,
        "correct the statement or its params; nothing that this run changed was kept, except in a database without transactions",
    ),
    (Code::Compile, "check the inner tool with check_tool (`tgp check`), and correct it first"),
    (Code::Runtime, "read the place and the logs, patch the tool, and check it again"),
];

/// An error of the bridge that the tool let through keeps its own code; a made-up one does not count.
fn carried_code(error: &RunError) -> Option<Code> {
    let text = error.code.as_deref()?;
    CARRIED.iter().map(|(code, _)| *code).find(|code| code.as_str() == text)
}

fn help_of_carried(code: Code) -> &'static str {
    let known = CARRIED.iter().find(|(carried, _)| *carried == code);
    known.map_or_else(|| help(RunErrorKind::Thrown), |(_, help)| help)
}

fn help(kind: RunErrorKind) -> &'static str {
    match kind {
        RunErrorKind::Memory => {
            "work on smaller pieces; or ask for more with `limits.memoryMb` (`tgp exec --memory-mb`), or raise \
             sandbox.memoryMb in tgp.config.ts"
        }
        RunErrorKind::CpuTime => {
            "look for a loop that does not end; if the work is that large, ask for more with `limits.cpuMs` \
             (`tgp exec --cpu-ms`), or raise sandbox.cpuMs in tgp.config.ts"
        }
        RunErrorKind::WallTime => {
            "look for a wait that does not end; or ask for more with `limits.wallMs` (`tgp exec --wall-ms`), or raise \
             sandbox.wallMs in tgp.config.ts"
        }
        RunErrorKind::Thrown => "read the place and the logs, patch the tool, and check it again",
        RunErrorKind::Cap => "return, log or call less; the caps are in the sandbox section of tgp.config.ts",
        RunErrorKind::NeverSettles => "make sure that every promise the tool awaits is resolved",
        RunErrorKind::BadProgram | RunErrorKind::Crashed => {
            "run it again, on less data if it works on much; if it stays, please report the tool"
        }
    }
}

/// A log line whose stack frames, if it shows an error, are places of the TypeScript.
pub(super) fn map_log(text: &str, graph: &ModuleGraph) -> String {
    if !text.contains("\n    at ") && !text.starts_with("    at ") {
        return text.to_owned();
    }
    let map = |line: &str| match (line.trim_start().starts_with("at "), map_frame(line.trim(), graph)) {
        (true, Some(frame)) => Some(format!("    {frame}")),
        // A frame that is not the tool's own is of no use to its author.
        (true, None) => None,
        (false, _) => Some(line.to_owned()),
    };
    text.lines().filter_map(map).collect::<Vec<_>>().join("\n")
}

/// A module that the tool asks for and cannot have, as a finding at the import.
pub(super) fn import_finding(id: &str, error: &ToolError) -> Finding {
    let elsewhere = || SourceLocation { file: id.to_owned(), line: 1, column: 1 };
    let place = error.place_of().filter(|place| place.file == id).unwrap_or_else(elsewhere);
    let message = error.message.strip_prefix(&format!("{place}: ")).unwrap_or(&error.message).to_owned();
    Finding {
        end: place.clone(),
        place,
        rule: "unresolved-import".to_owned(),
        severity: Severity::Error,
        message,
        reason: "a tool whose imports are not there cannot run".to_owned(),
        fix: error.help_of().unwrap_or("correct the import").to_owned(),
    }
}

struct Frame {
    function: String,
    place: Option<SourceLocation>,
}

impl std::fmt::Display for Frame {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Some(place) => write!(formatter, "at {} ({place})", self.function),
            None => write!(formatter, "at {}", self.function),
        }
    }
}

/// The frames of the tool's own modules, in places of its TypeScript.
fn map_stack(stack: &str, graph: &ModuleGraph) -> Vec<Frame> {
    stack.lines().filter_map(|line| map_frame(line.trim(), graph)).collect()
}

/// Where the tool's own code was, in its TypeScript.
pub(super) fn first_place(stack: &str, graph: &ModuleGraph) -> Option<SourceLocation> {
    map_stack(stack, graph).into_iter().find_map(|frame| frame.place)
}

/// Where a sample was taken. What a tool calls is exact. In its own code the engine notes a place only for what can fail,
/// so that a loop which only counts is found by the place before it, and a script without any by its beginning.
fn sampled_place(stack: &str, graph: &ModuleGraph) -> Option<SourceLocation> {
    let first = EngineFrame::read(stack.lines().next()?.trim())
        .and_then(|frame| Some((frame.module, graph.modules.get(frame.module)?)));
    let place = first_place(stack, graph);
    let Some((id, module)) = first else { return place };
    let is_script = matches!(module.shape, ToolShape::ReturnScript | ToolShape::ExpressionScript);
    let beginning = || SourceLocation { file: id.to_owned(), line: 1, column: 1 };
    let place = place.or_else(|| is_script.then(beginning))?;
    let (line, column) = match place.file == id {
        true => module.loops.busy_place(place.line, place.column),
        false => (place.line, place.column),
    };
    Some(SourceLocation { line, column, ..place })
}

/// One line of the engine's stack: `at function (module:line:column)` or `at module:line:column`.
struct EngineFrame<'s> {
    function: &'s str,
    module: &'s str,
    line: u32,
    column: u32,
}

impl<'s> EngineFrame<'s> {
    fn read(line: &'s str) -> Option<Self> {
        let rest = line.strip_prefix("at ")?;
        let (function, location) = match rest.rsplit_once(" (") {
            Some((function, location)) => (function, location.strip_suffix(')')?),
            None => ("<anonymous>", rest),
        };
        let (location, column) = location.rsplit_once(':')?;
        let (module, line) = location.rsplit_once(':')?;
        Some(Self { function, module, line: line.parse().ok()?, column: column.parse().ok()? })
    }
}

fn map_frame(line: &str, graph: &ModuleGraph) -> Option<Frame> {
    let frame = EngineFrame::read(line)?;
    let module = graph.modules.get(frame.module)?;
    let (line, column) = module.map.original(frame.line, frame.column)?;
    Some(Frame {
        function: frame.function.to_owned(),
        place: Some(SourceLocation { file: frame.module.to_owned(), line, column }),
    })
}
