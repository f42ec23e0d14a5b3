//! T1: what tools that read and change files promise of the files that they may touch.

use serde_json::{Value, json};
use tgp_contract::{CallContext, CallRecord, Code, canonical};

use super::Running;
use crate::conversation::{call, context};
use crate::fault::{Expecting, Fault, holds, same};
use crate::world::World;

const NOTES: &str = "notes.md";
const OTHER: &str = "other.md";
/// What no tool of the project may read.
const OUTSIDE: &str = "what is outside stays outside\n";

async fn made(world: &World, tool: &str, arguments: Value, dry_run: bool) -> Result<CallRecord, Fault> {
    let tools = world.tools()?;
    Ok(call(tools.as_ref(), tool, arguments, CallContext { dry_run, ..context() }).await)
}

/// Arguments of each tool that changes the note, which has the text `one`, and what the note is afterwards.
fn changes() -> [(&'static str, Value, Option<&'static str>); 4] {
    [
        ("Write", json!({ "path": NOTES, "content": "two\n" }), Some("two\n")),
        ("Edit", json!({ "path": NOTES, "search": "one", "replace": "two" }), Some("two\n")),
        ("Edit", json!({ "path": NOTES, "edits": [{ "search": "one", "replace": "2" }] }), Some("2\n")),
        ("fs_delete", json!({ "path": NOTES }), None),
    ]
}

/// The arguments with the hash that the file is expected to have.
fn expecting(arguments: &Value, hash: &str) -> Value {
    let mut arguments = arguments.clone();
    arguments.as_object_mut().map(|fields| fields.insert("expected_sha256".to_owned(), json!(hash)));
    arguments
}

pub(super) fn expected_hash(world: &World) -> Running<'_> {
    Box::pin(async move {
        for (tool, arguments, after) in changes() {
            world.workspace.write(NOTES, "one\n")?;
            let read = made(world, "Read", json!({ "path": NOTES }), false).await?;
            let data = read.result.into_result().expecting("the note to be read")?;
            let hash = canonical::sha256_hex(b"one\n");
            same("the `sha256` that Read gives", data.get("sha256").unwrap_or(&Value::Null), &json!(hash))?;
            let before = world.workspace.picture()?;
            let stale = expecting(&arguments, &canonical::sha256_hex(b"zero\n"));
            for dry_run in [true, false] {
                let record = made(world, tool, stale.clone(), dry_run).await?;
                let is_refused = record.result.error().is_some_and(|error| error.code == Code::Conflict);
                holds(is_refused, format!("ECONFLICT for {tool} {stale}"), &record.result)?;
                let is_same = world.workspace.picture()? == before;
                holds(
                    is_same,
                    format!("the note to stay after {tool} {stale}"),
                    world.workspace.read(NOTES),
                )?;
            }
            let right = expecting(&arguments, &hash);
            let record = made(world, tool, right.clone(), false).await?;
            record.result.into_result().expecting(&format!("{tool} {right} to be done"))?;
            let expected = after.map(str::to_owned);
            same(&format!("the note after {tool} {right}"), &world.workspace.read(NOTES), &expected)?;
        }
        // A file that is not there has no hash at all.
        let absent = json!({ "path": OTHER, "content": "", "expected_sha256": canonical::sha256_hex(b"") });
        let record = made(world, "Write", absent.clone(), false).await?;
        let is_refused = record.result.error().is_some_and(|error| error.code == Code::Conflict);
        holds(
            is_refused,
            format!("ECONFLICT for Write {absent} where there is no such file"),
            &record.result,
        )?;
        same("the file that was not to be made", &world.workspace.read(OTHER), &None)
    })
}

pub(super) fn inside_the_project(world: &World) -> Running<'_> {
    Box::pin(async move {
        let outside = world.workspace.beside("outside");
        let folder = outside.join("folder");
        std::fs::create_dir_all(&folder).expecting("a folder outside of the project")?;
        for name in ["secret.md", "folder/secret.md"] {
            std::fs::write(outside.join(name), OUTSIDE).expecting("a file outside of the project")?;
        }
        world.workspace.write("src/a.md", "inside\n")?;
        world.workspace.link("file-link.md", &outside.join("secret.md"))?;
        world.workspace.link("new-link.md", &outside.join("new.md"))?;
        world.workspace.link("folder-link", &folder)?;
        world.workspace.link("up-link", std::path::Path::new(".."))?;
        let before = world.workspace.picture()?;
        let absolute = outside.join("secret.md").display().to_string();
        for path in [
            "../outside/secret.md",
            "src/../../outside/secret.md",
            "./src/./../../outside/secret.md",
            &absolute,
            "file-link.md",
            "folder-link/secret.md",
            "up-link/outside/secret.md",
            // Where nothing is yet.
            "../outside/new.md",
            "new-link.md",
            "folder-link/new.md",
        ] {
            for (tool, arguments) in [
                ("Read", json!({ "path": path })),
                ("Write", json!({ "path": path, "content": "changed\n" })),
                ("Edit", json!({ "path": path, "search": "outside", "replace": "changed", "all": true })),
                ("fs_delete", json!({ "path": path })),
            ] {
                // A link itself is a file of the project, and may be removed as one.
                if tool == "fs_delete" && path.ends_with("link.md") {
                    continue;
                }
                for dry_run in [true, false] {
                    let record = made(world, tool, arguments.clone(), dry_run).await?;
                    let is_refused = record.result.error().is_some_and(|error| error.code != Code::Internal);
                    holds(is_refused, format!("{tool} {arguments} to be refused"), &record.result)?;
                    let told = serde_json::to_string(&record.result).unwrap_or_default();
                    let has_told = told.contains("what is outside stays");
                    holds(!has_told, format!("nothing of the file in the refusal of {tool} {path}"), &told)?;
                }
                for name in ["secret.md", "folder/secret.md"] {
                    let now = std::fs::read_to_string(outside.join(name)).ok();
                    same(&format!("{name} outside after {tool} {path}"), &now, &Some(OUTSIDE.to_owned()))?;
                }
                for name in ["new.md", "folder/new.md"] {
                    let is_absent = !outside.join(name).exists();
                    holds(is_absent, format!("no file to be made outside by {tool} {path}"), name)?;
                }
                let is_same = world.workspace.picture()? == before;
                holds(is_same, format!("the project to stay as it is after {tool} {path}"), "other files")?;
            }
        }
        // Who refuses everything has not understood the question.
        let record = made(world, "Read", json!({ "path": "./src/a.md" }), false).await?;
        let data = record.result.into_result().expecting("a file of the project to be read")?;
        same("what is read", data.get("content").unwrap_or(&Value::Null), &json!("inside\n"))
    })
}
