//! T1: a model asks for tools, and the tools answer it.

use futures_util::StreamExt;
use serde_json::{Value, json};
use tgp_agent::{AgentEvent, Ending};
use tgp_contract::{
    Block, CallContext, ChatOptions, Code, EventStream, Message, ModelTool, Role, StreamEvent, ToolCaller,
    ToolName, ToolResult,
};

use super::{Case, Running, t1_files};
use crate::conversation::{Reader, call, context, converse, end, say, wants};
use crate::fault::{Expecting, Fault, holds, same};
use crate::world::World;

pub(super) const CASES: &[Case] = &[
    Case { id: "t1.loop", title: "a call is asked for, made, and answered to the model", run: tool_loop },
    Case {
        id: "t1.malformed-arguments",
        title: "arguments that do not fit are EVALIDATION, and nothing is executed",
        run: malformed_arguments,
    },
    Case {
        id: "t1.dry-run-mutators",
        title: "Write, Edit and Bash preview the same twice and change nothing",
        run: dry_run_mutators,
    },
    Case {
        id: "t1.expected-hash",
        title: "a file that has not the expected SHA-256 is ECONFLICT and stays as it is",
        run: t1_files::expected_hash,
    },
    Case {
        id: "t1.inside-the-project",
        title: "no path and no link leads a file tool out of the project",
        run: t1_files::inside_the_project,
    },
    Case { id: "t1.backpressure", title: "a slow reader gets every event in its order", run: backpressure },
];

/// Events of one turn that are read at most.
const MAX_EVENTS: usize = 10_000;
const NOTES: &str = "notes.md";

/// What was read of a stream until its end.
async fn drain(stream: &mut EventStream) -> Result<Vec<StreamEvent>, Fault> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
        if events.len() > MAX_EVENTS {
            return Err(Fault::new("a turn that ends", format!("{MAX_EVENTS} events and no end")));
        }
    }
    Ok(events)
}

fn request(text: &str, tools: Vec<ModelTool>) -> ChatOptions {
    let blocks = vec![Block::Text { text: text.to_owned() }];
    ChatOptions {
        model: "test-1".to_owned(),
        system: String::new(),
        messages: vec![Message { role: Role::User, blocks }],
        tools,
        max_output_tokens: None,
        temperature: None,
        turn: 0,
    }
}

fn echo() -> Result<ModelTool, Fault> {
    let name = ToolName::new("Echo").map_err(|error| Fault::new("a name for a tool", error.to_string()))?;
    let input_schema = json!({
        "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"],
        "additionalProperties": false,
    });
    Ok(ModelTool { name, description: "Say the text again.".to_owned(), input_schema })
}

/// Whether tools have one of this name.
fn has(tools: &dyn ToolCaller, name: &str) -> bool {
    tools
        .definitions()
        .iter()
        .any(|tool| tool.name.as_str() == name || tool.aliases.iter().any(|alias| alias == name))
}

fn tool_loop(world: &World) -> Running<'_> {
    Box::pin(async move {
        // The model alone: it calls Echo when it is offered, and ends.
        let turn = vec![wants("Echo", "1", json!({ "text": "hello" })), end()];
        let model = world.model(&[turn]).await?;
        let mut stream =
            model.chat(request("hello", vec![echo()?])).await.expecting("a turn of the model")?;
        let events = drain(&mut stream).await?;
        let called = events.iter().find_map(|event| match event {
            StreamEvent::ToolCall { tool_name, arguments, call_id } => Some((tool_name, arguments, call_id)),
            _ => None,
        });
        let Some((name, arguments, call_id)) = called else {
            return Err(Fault::new("a tool_call of Echo, which was offered", format!("{events:?}")));
        };
        same("the tool that was called", name.as_str(), "Echo")?;
        same("its arguments", arguments, &json!({ "text": "hello" }))?;
        holds(!call_id.is_empty(), "a call with an id", call_id)?;
        holds(
            matches!(events.last(), Some(StreamEvent::End { .. })),
            "an end as the last event",
            events.last(),
        )?;
        let tools = world.tools()?;
        if has(tools.as_ref(), "Echo") {
            let record = call(tools.as_ref(), "Echo", arguments.clone(), context()).await;
            let data = record.result.into_result().expecting("Echo to answer")?;
            same("what Echo answers", data.get("echoed").unwrap_or(&Value::Null), &json!("hello"))?;
        }
        // Both together: what a tool answers reaches the model.
        world.workspace.write(NOTES, "the answer is 42\n")?;
        let turns = [
            vec![say("I look."), wants("Read", "c1", json!({ "path": NOTES })), end()],
            vec![say("Now I know."), end()],
        ];
        let model = world.model(&turns).await?;
        let (summary, events) = converse(model.as_ref(), tools.as_ref(), &turns, Reader::Quick).await?;
        same("the ending", &summary.ending, &Ending::Done)?;
        same("the last words", summary.answer.trim(), "Now I know.")?;
        let order = outline(&events);
        same("the order of events", &order, &vec!["text", "tool_call", "tool_result", "text"])?;
        let content = results(&events).first().and_then(|result| result.data()?.get("content").cloned());
        same("what Read answers", &content, &Some(json!("the answer is 42\n")))
    })
}

/// The kinds of events that the contract orders, with pieces of one text taken together.
fn outline(events: &[AgentEvent]) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for event in events {
        let kind = match event {
            AgentEvent::Text { .. } => "text",
            AgentEvent::ToolCall { .. } => "tool_call",
            AgentEvent::ToolResult { .. } => "tool_result",
            AgentEvent::Error { .. } => "error",
            _ => continue,
        };
        if kind != "text" || kinds.last() != Some(&"text") {
            kinds.push(kind);
        }
    }
    kinds
}

fn results(events: &[AgentEvent]) -> Vec<&ToolResult> {
    events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolResult { result, .. } => Some(result),
            _ => None,
        })
        .collect()
}

fn malformed_arguments(world: &World) -> Running<'_> {
    Box::pin(async move {
        let tools = world.tools()?;
        world.workspace.write(NOTES, "one\ntwo\n")?;
        let before = world.workspace.picture()?;
        let bad: [(&str, Value); 7] = [
            ("Write", json!("{\"path\": \"a.md\", \"content\": ")),
            ("Write", json!({ "path": "a.md" })),
            ("Write", json!({ "path": "a.md", "content": "x", "sudo": true })),
            ("Write", json!({ "path": 7, "content": "x" })),
            ("Write", json!([])),
            ("Edit", json!({ "path": NOTES, "search": "two" })),
            ("Bash", json!({ "command": ["touch", "a.md"] })),
        ];
        // Straight to the tools.
        for (tool, arguments) in &bad {
            let record = call(tools.as_ref(), tool, arguments.clone(), context()).await;
            let expected = format!("EVALIDATION for {tool} {arguments}");
            let is_refused = record.result.error().is_some_and(|error| error.code == Code::Validation);
            holds(is_refused, expected, &record.result)?;
        }
        same("the files after calls that do not fit", &names(&world.workspace.picture()?), &names(&before))?;
        // And through a model, which is told what was wrong.
        let calls = bad
            .iter()
            .zip(1..)
            .map(|((tool, arguments), number)| wants(tool, &format!("c{number}"), arguments.clone()));
        let turns = [calls.chain([end()]).collect(), vec![say("I see."), end()]];
        let model = world.model(&turns).await?;
        let (summary, events) = converse(model.as_ref(), tools.as_ref(), &turns, Reader::Quick).await?;
        same("the ending", &summary.ending, &Ending::Done)?;
        let codes: Vec<Option<Code>> =
            results(&events).iter().map(|result| result.error().map(|error| error.code)).collect();
        same("the codes of all results", &codes, &vec![Some(Code::Validation); bad.len()])?;
        holds(world.workspace.picture()? == before, "not one byte to change", "a file that was written")
    })
}

fn names(picture: &std::collections::BTreeMap<String, Vec<u8>>) -> Vec<&str> {
    picture.keys().map(String::as_str).collect()
}

fn dry_run_mutators(world: &World) -> Running<'_> {
    Box::pin(async move {
        let tools = world.tools()?;
        world.workspace.write(NOTES, "one\ntwo\n")?;
        let before = world.workspace.picture()?;
        let mut mutators = vec![
            ("Write", json!({ "path": NOTES, "content": "one\n2\n" })),
            ("Edit", json!({ "path": NOTES, "search": "two", "replace": "2" })),
        ];
        if world.no_commands.is_none() {
            mutators.push(("Bash", json!({ "command": format!("sed -i s/two/2/ {NOTES}") })));
        }
        for (tool, arguments) in mutators {
            let mut previews = Vec::new();
            for _ in 0..2 {
                let dry = CallContext { dry_run: true, ..context() };
                let record = call(tools.as_ref(), tool, arguments.clone(), dry).await;
                let mut data = record.result.into_result().expecting(&format!("a preview of {tool}"))?;
                // How long it took is not part of what it would do.
                data.as_object_mut().map(|fields| fields.remove("durationMs"));
                previews.push(data);
            }
            same(
                &format!("the second preview of {tool}"),
                previews.get(1).unwrap_or(&Value::Null),
                previews.first().unwrap_or(&Value::Null),
            )?;
            let shown = previews.first().map(Value::to_string).unwrap_or_default();
            let is_difference = shown.contains("-two") && shown.contains("+2");
            holds(is_difference, format!("a preview of {tool} with the lines -two and +2"), &shown)?;
            let is_same = world.workspace.picture()? == before;
            holds(is_same, format!("no file to change in a dry run of {tool}"), world.workspace.read(NOTES))?;
        }
        // The same call without the flag is what the preview has promised.
        let edit = json!({ "path": NOTES, "search": "two", "replace": "2" });
        let record = call(tools.as_ref(), "Edit", edit, context()).await;
        record.result.into_result().expecting("Edit to do what its preview says")?;
        same("the file after Edit", &world.workspace.read(NOTES), &Some("one\n2\n".to_owned()))?;
        match &world.no_commands {
            None => Ok(()),
            Some(reason) => {
                Err(Fault::unable(format!("Write and Edit hold, but Bash was not tried: {reason}")))
            }
        }
    })
}

fn backpressure(world: &World) -> Running<'_> {
    Box::pin(async move {
        // One long turn, read as slowly as can be: nothing is lost, and nothing overtakes.
        let pieces: Vec<String> = (0..200).map(|number| format!("{number} ")).collect();
        let mut turn: Vec<StreamEvent> = pieces.iter().map(say).collect();
        turn.push(wants("Read", "c1", json!({ "path": NOTES })));
        turn.push(end());
        let turns = [turn];
        let model = world.model(&turns).await?;
        let task = tgp_relay_fakes::ScriptedModel::task(&turns);
        let mut stream = model.chat(request(&task, Vec::new())).await.expecting("a turn of the model")?;
        let (mut text, mut later) = (String::new(), Vec::new());
        let mut number = 0;
        while let Some(event) = stream.next().await {
            tokio::task::yield_now().await;
            if number % 50 == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
            number += 1;
            match event {
                StreamEvent::Text { value } if later.is_empty() => text.push_str(&value),
                StreamEvent::Usage(_) => {}
                StreamEvent::ToolCall { .. } => later.push("tool_call"),
                StreamEvent::End { .. } => later.push("end"),
                other => return Err(Fault::new("text, then the call, then the end", format!("{other:?}"))),
            }
            holds(number <= MAX_EVENTS, "a turn that ends", number)?;
        }
        same("the pieces of text in their order", &text, &pieces.concat())?;
        same("what comes after the text", &later, &vec!["tool_call", "end"])?;
        // A whole conversation with a reader that has room for one event.
        world.workspace.write(NOTES, "old")?;
        let mut turns = Vec::new();
        for number in 0..10 {
            turns.push(vec![
                say(format!("turn {number}")),
                wants("Write", "w", json!({ "path": NOTES, "content": number.to_string() })),
                wants("Read", "r", json!({ "path": NOTES })),
                end(),
            ]);
        }
        turns.push(vec![say("the end"), end()]);
        let model = world.model(&turns).await?;
        let tools = world.tools()?;
        let (_, events) = converse(model.as_ref(), tools.as_ref(), &turns, Reader::Slow).await?;
        let told: Vec<String> = events.iter().filter_map(line).collect();
        let mut expected = Vec::new();
        for number in 0..10 {
            expected.push(format!("turn {number}"));
            expected.extend(["call Write".to_owned(), "result Write".to_owned(), "call Read".to_owned()]);
            expected.push(format!("result Read {number}"));
        }
        expected.push("the end".to_owned());
        same("the events of the conversation", &told, &expected)
    })
}

/// An event as a line, where its order is promised.
fn line(event: &AgentEvent) -> Option<String> {
    match event {
        AgentEvent::Text { value } => Some(value.clone()),
        AgentEvent::ToolCall { tool_name, .. } => Some(format!("call {tool_name}")),
        AgentEvent::ToolResult { tool_name, result, .. } => {
            let content = result.data().and_then(|data| data.get("content")).and_then(Value::as_str);
            Some(match (content, result.error()) {
                (Some(content), _) => format!("result {tool_name} {content}"),
                (None, Some(error)) => format!("result {tool_name} {}", error.code),
                (None, None) => format!("result {tool_name}"),
            })
        }
        AgentEvent::Error { error } => Some(format!("error {error}")),
        _ => None,
    }
}
