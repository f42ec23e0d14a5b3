//! The embedded store, copied to a server: batch by batch, each of which can be written any number of times.
//!
//! The server's moments are the store's. While a copy is under way, no reader sees it: new rows begin after the last
//! moment that the server admits to, and rows that end do so after it. Only when everything is there, its last moment
//! is moved on. A copy that was interrupted is simply made again.

use rusqlite::Connection as Database;
use tgp_contract::{Code, ToolError};
use tokio::sync::mpsc;

use super::connection::{Access, Connection};
use super::facts::{self, Batches, EdgeRow, Ended, NodeRow, Span, TOOL};
use super::failure::Failure;
use super::options::BoltOptions;
use super::pack::Packed;
use super::values;
use tgp_graph::mirroring::{GraphError, prepare as prepare_store};

/// Rows of one statement: enough that the way to the server does not matter, and little enough for any server's memory.
const BATCH: usize = 1000;
/// Batches that wait for the server while the store is read.
const QUEUE: usize = 4;
/// The form of what is written; a server with another one is not ours to change.
const FORM: i64 = 2;
/// Property names that are looked for, beside the key of a row.
const INDEXED: [&str; 3] = ["path", "name", "sha"];

/// The state of a server.
#[derive(Debug, Default, PartialEq, Eq)]
struct Standing {
    upto: i64,
    digest: String,
    form: Option<i64>,
}

/// Something to write.
enum Batch {
    Nodes(String, Vec<NodeRow>),
    EndedNodes(String, Vec<Ended>),
    /// By type and the labels of both ends.
    Edges([String; 3], Vec<EdgeRow>),
    /// By type and the label of the first end.
    EndedEdges([String; 2], Vec<Ended>),
}

/// What is said at the end.
struct Closing {
    moments: Vec<(i64, String)>,
    last: i64,
    digest: String,
    tools: Vec<String>,
}

/// Brings a server up to date with a store that `open` opens for reading.
pub(super) async fn mirror(
    connection: &mut Connection,
    options: &BoltOptions,
    open: impl FnOnce() -> Result<Database, GraphError> + Send + 'static,
) -> Result<(), Failure> {
    let database = options.database.as_deref();
    prepare(connection, database, &["TgpGraph", "TgpMoment"]).await?;
    let standing = standing(connection, options).await?;
    let (sender, mut batches) = mpsc::channel(QUEUE);
    let (announce, announced) = tokio::sync::oneshot::channel();
    let reader = tokio::task::spawn_blocking(move || {
        let store = open()?;
        read(&store, &standing, announce, &sender)
    });
    // The store says which labels there are before it gives rows; if it says nothing, it has failed and says why below.
    if let Ok(labels) = announced.await {
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        prepare(connection, database, &labels).await?;
        while let Some(batch) = batches.recv().await {
            write(connection, options, batch).await?;
        }
    }
    let read =
        reader.await.map_err(|error| Failure::Protocol(format!("reading the store was cut off: {error}")))?;
    match read.map_err(ToolError::from)? {
        Some(closing) => close(connection, options, closing).await,
        None => Ok(()),
    }
}

/// Without an index each row of a batch is looked for among all.
async fn prepare(
    connection: &mut Connection,
    database: Option<&str>,
    labels: &[&str],
) -> Result<(), Failure> {
    for label in labels {
        let own: &[&str] = match *label {
            "TgpGraph" => &["name"],
            "TgpMoment" => &["commit", "number"],
            _ => &["_key"],
        };
        let others = if label.starts_with("Tgp") { [].as_slice() } else { &INDEXED };
        for property in own.iter().chain(others) {
            let name = format!("tgp_{label}_{property}").to_lowercase();
            let statement =
                format!("CREATE INDEX `{name}` IF NOT EXISTS FOR (n:`{label}`) ON (n.`{property}`)");
            connection.run_alone(&statement, database).await?;
        }
    }
    Ok(())
}

async fn standing(connection: &mut Connection, options: &BoltOptions) -> Result<Standing, Failure> {
    connection.begin(Access::Read, options.database.as_deref(), options.write_time).await?;
    let statement = "MATCH (g:TgpGraph {name: 'tgp'}) RETURN g.upto, g.digest, g.form";
    let (_, page) = connection.run(statement, Vec::new(), BATCH).await?;
    connection.roll_back().await?;
    let Some(row) = page.rows.first() else { return Ok(Standing::default()) };
    match row.as_slice() {
        [upto, digest, form] => Ok(Standing {
            upto: upto.as_integer().unwrap_or_default(),
            digest: digest.as_text().unwrap_or_default().to_owned(),
            form: form.as_integer(),
        }),
        _ => Err(Failure::Protocol("a row has other columns than were asked for".to_owned())),
    }
}

/// Reads what the server lacks. Nothing when it lacks nothing.
fn read(
    store: &Database,
    standing: &Standing,
    announce: tokio::sync::oneshot::Sender<Vec<String>>,
    sender: &mpsc::Sender<Batch>,
) -> Result<Option<Closing>, GraphError> {
    // One transaction, so that all of it is about one state of the store.
    prepare_store(store)?;
    let store = store.unchecked_transaction()?;
    let moments = facts::moments(&store)?;
    let known = moments.iter().filter(|(number, _)| *number <= standing.upto);
    let is_ours = standing.form.is_none_or(|form| form == FORM) && facts::digest(known) == standing.digest;
    if standing.form.is_some() && !is_ours {
        return Err(foreign().into());
    }
    let Some(last) = moments.last().map(|(number, _)| *number) else { return Ok(None) };
    let span = Span { after: standing.upto, last };
    let send = |batch: Batch| {
        let gone = || ToolError::new(Code::Fetch, "the graph server took no more").help("try again");
        sender.blocking_send(batch).map_err(|_| GraphError::from(gone()))
    };
    let _ = announce.send(facts::labels(&store)?);
    let tools = send_nodes(&store, span, send)?;
    send_edges(&store, span, send)?;
    let digest = facts::digest(moments.iter());
    let moments = moments.into_iter().filter(|(number, _)| *number > standing.upto).collect();
    Ok(Some(Closing { moments, last, digest, tools }))
}

/// Returns the keys of all tools.
fn send_nodes(
    store: &Database,
    span: Span,
    send: impl Fn(Batch) -> Result<(), GraphError>,
) -> Result<Vec<String>, GraphError> {
    let mut tools = Vec::new();
    let mut batches = Batches::new(BATCH);
    facts::nodes(store, span, |row| {
        if row.label == TOOL {
            tools.push(row.key.clone());
        }
        match batches.add(row.label.clone(), row) {
            Some((label, rows)) => send(Batch::Nodes(label, rows)),
            None => Ok(()),
        }
    })?;
    for (label, rows) in batches.rest() {
        send(Batch::Nodes(label, rows))?;
    }
    let mut batches = Batches::new(BATCH);
    facts::ended_nodes(store, span, |row| match batches.add(row.kind.clone(), row) {
        Some((label, rows)) => send(Batch::EndedNodes(label, rows)),
        None => Ok(()),
    })?;
    for (label, rows) in batches.rest() {
        send(Batch::EndedNodes(label, rows))?;
    }
    Ok(tools)
}

fn send_edges(
    store: &Database,
    span: Span,
    send: impl Fn(Batch) -> Result<(), GraphError>,
) -> Result<(), GraphError> {
    let mut batches = Batches::new(BATCH);
    let mut ended = Batches::new(BATCH);
    let kind = |row: &EdgeRow| [row.kind.clone(), row.from.label.clone(), row.to.label.clone()];
    facts::edges(
        store,
        span,
        |row| match batches.add(kind(&row), row) {
            Some((kind, rows)) => send(Batch::Edges(kind, rows)),
            None => Ok(()),
        },
        |row| {
            let from = row.from.as_ref().map(|from| from.label.clone()).unwrap_or_default();
            match ended.add([row.kind.clone(), from], row) {
                Some((kind, rows)) => send(Batch::EndedEdges(kind, rows)),
                None => Ok(()),
            }
        },
    )?;
    for row in facts::renames(store, span)? {
        if let Some((kind, rows)) = batches.add(kind(&row), row) {
            send(Batch::Edges(kind, rows))?;
        }
    }
    for (kind, rows) in batches.rest() {
        send(Batch::Edges(kind, rows))?;
    }
    for (kind, rows) in ended.rest() {
        send(Batch::EndedEdges(kind, rows))?;
    }
    Ok(())
}

fn foreign() -> ToolError {
    ToolError::new(
        Code::Conflict,
        "the graph on the server was written from another store, or by another version",
    )
    .help("name a database of its own for this project, or empty that one and ingest again")
}

async fn write(connection: &mut Connection, options: &BoltOptions, batch: Batch) -> Result<(), Failure> {
    let (statement, rows) = match batch {
        Batch::Nodes(label, rows) => (
            format!("UNWIND $rows AS row MERGE (n:`{label}` {{_key: row.key}}) SET n = row.all"),
            rows.into_iter().map(node).collect::<Vec<_>>(),
        ),
        Batch::EndedNodes(label, rows) => (
            format!("UNWIND $rows AS row MATCH (n:`{label}` {{_key: row.key}}) SET n._until = row.until"),
            rows.into_iter().map(ended).collect(),
        ),
        Batch::Edges([kind, from, to], rows) => (
            format!(
                "UNWIND $rows AS row MATCH (a:`{from}` {{_key: row.from}}) MATCH (b:`{to}` {{_key: row.to}}) \
                 MERGE (a)-[r:`{kind}` {{_key: row.key}}]->(b) SET r = row.all"
            ),
            rows.into_iter().map(edge).collect(),
        ),
        Batch::EndedEdges([kind, from], rows) => (
            format!(
                "UNWIND $rows AS row MATCH (a:`{from}` {{_key: row.from}})-[r:`{kind}` {{_key: row.key}}]->() \
                 SET r._until = row.until"
            ),
            rows.into_iter().map(ended).collect(),
        ),
    };
    let rows = vec![("rows".to_owned(), Packed::List(rows))];
    connection.begin(Access::Write, options.database.as_deref(), options.write_time).await?;
    connection.run(&statement, rows, BATCH).await?;
    connection.commit().await
}

async fn close(connection: &mut Connection, options: &BoltOptions, closing: Closing) -> Result<(), Failure> {
    connection.begin(Access::Write, options.database.as_deref(), options.write_time).await?;
    for moments in closing.moments.chunks(BATCH) {
        let rows = moments.iter().map(|(number, commit)| {
            map([("number", Packed::Integer(*number)), ("commit", Packed::text(commit))])
        });
        let rows = vec![("rows".to_owned(), Packed::List(rows.collect()))];
        let statement =
            "UNWIND $rows AS row MERGE (m:TgpMoment {commit: row.commit}) SET m.number = row.number";
        connection.run(statement, rows, BATCH).await?;
    }
    let keys = Packed::List(closing.tools.into_iter().map(Packed::Text).collect());
    let forget = "MATCH (n:Tool) WHERE n._key IS NOT NULL AND NOT n._key IN $keys DETACH DELETE n";
    connection.run(forget, vec![("keys".to_owned(), keys)], BATCH).await?;
    let standing = vec![
        ("upto".to_owned(), Packed::Integer(closing.last)),
        ("digest".to_owned(), Packed::text(closing.digest)),
        ("form".to_owned(), Packed::Integer(FORM)),
    ];
    let statement = "MERGE (g:TgpGraph {name: 'tgp'}) SET g.upto = $upto, g.digest = $digest, g.form = $form";
    connection.run(statement, standing, BATCH).await?;
    connection.commit().await
}

fn map<const N: usize>(entries: [(&str, Packed); N]) -> Packed {
    Packed::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn properties(row: &serde_json::Map<String, serde_json::Value>) -> Vec<(String, Packed)> {
    // A name that begins with `_` would hide what the mirror itself writes.
    let shown = row.iter().filter(|(key, _)| !key.starts_with('_'));
    shown.filter_map(|(key, value)| Some((key.clone(), values::property(value)?))).collect()
}

fn node(row: NodeRow) -> Packed {
    let mut all = properties(&row.properties);
    all.extend([
        ("_key".to_owned(), Packed::text(&row.key)),
        ("_id".to_owned(), Packed::Integer(row.id)),
        ("_since".to_owned(), Packed::Integer(row.since)),
        ("_until".to_owned(), Packed::Integer(row.until)),
        ("_ghost".to_owned(), Packed::Boolean(row.ghost)),
    ]);
    map([("key", Packed::Text(row.key)), ("all", Packed::Map(all))])
}

fn edge(row: EdgeRow) -> Packed {
    let mut all = properties(&row.properties);
    all.extend([
        ("_key".to_owned(), Packed::text(&row.key)),
        ("_id".to_owned(), Packed::Integer(row.id)),
        ("_from".to_owned(), Packed::Integer(row.from.id)),
        ("_to".to_owned(), Packed::Integer(row.to.id)),
        ("_since".to_owned(), Packed::Integer(row.since)),
        ("_until".to_owned(), Packed::Integer(row.until)),
    ]);
    map([
        ("key", Packed::Text(row.key)),
        ("from", Packed::Text(row.from.key)),
        ("to", Packed::Text(row.to.key)),
        ("all", Packed::Map(all)),
    ])
}

fn ended(row: Ended) -> Packed {
    let from = row.from.map_or(Packed::Null, |from| Packed::Text(from.key));
    map([("key", Packed::Text(row.key)), ("from", from), ("until", Packed::Integer(row.until))])
}
