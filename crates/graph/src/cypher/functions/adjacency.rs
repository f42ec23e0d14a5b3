//! Relationships of some types in memory, for questions that visit each node once: what can be reached, which nodes are in
//! a cycle, the shortest paths.
//!
//! `cy_graph` is an aggregate over the visible relationships and gives a number; the other functions take it. The graphs
//! live on the thread that runs the statement and are dropped when the statement ends.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use rusqlite::Connection;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::Value as Sql;

use crate::cypher::error::met;
use crate::cypher::execute::{late, made};

/// Relationships that one statement may hold in memory, about 300 MB.
const MAX_EDGES: usize = 4_000_000;

/// Paths between one pair of nodes: there may be more than could ever be read.
const MAX_PATHS: usize = 10_000;

/// Steps between two looks at the clock.
const STEPS: usize = 4_096;

/// No distance.
const FAR: u32 = u32::MAX;

thread_local! {
    static GRAPHS: RefCell<Vec<Adjacency>> = const { RefCell::new(Vec::new()) };
}

/// Forgets all graphs of this thread.
pub(crate) fn forget() {
    GRAPHS.with_borrow_mut(Vec::clear);
}

/// One relationship, with its nodes as places in [`Adjacency::nodes`].
#[derive(Clone, Copy)]
struct Edge {
    row: i64,
    id: i64,
    from: usize,
    to: usize,
}

/// A graph.
#[derive(Default)]
struct Adjacency {
    /// Row and id of each node.
    nodes: Vec<(i64, i64)>,
    places: HashMap<i64, usize>,
    edges: Vec<Edge>,
    /// For each node the edges that leave it.
    out: Vec<Vec<usize>>,
    /// For each node the edges that arrive, where they may be walked backwards.
    back: Vec<Vec<usize>>,
    components: Option<Components>,
    /// The last search: queries ask about one node after the other.
    last: Option<Search>,
    /// Relationships for which there is room beside the graphs that there are.
    room: usize,
}

/// Which nodes reach each other.
struct Components {
    of: Vec<usize>,
    /// Whether a node of it reaches itself.
    cyclic: Vec<bool>,
}

/// All nodes by their distance from one.
struct Search {
    from: usize,
    most: u32,
    /// The least number of relationships, at least one, on a way there.
    distance: Vec<u32>,
    /// The edges by which each node is reached at that distance.
    arrivals: Vec<Vec<usize>>,
}

impl Adjacency {
    fn node(&mut self, id: i64, row: i64) -> usize {
        *self.places.entry(id).or_insert_with(|| {
            self.nodes.push((row, id));
            self.out.push(Vec::new());
            self.back.push(Vec::new());
            self.nodes.len() - 1
        })
    }

    fn add(&mut self, [row, id, source, source_row, target, target_row]: [i64; 6], both: bool) {
        let (from, to) = (self.node(source, source_row), self.node(target, target_row));
        let at = self.edges.len();
        self.edges.push(Edge { row, id, from, to });
        if let Some(out) = self.out.get_mut(from) {
            out.push(at);
        }
        if let Some(back) = self.back.get_mut(to).filter(|_| both && from != to) {
            back.push(at);
        }
    }

    /// The edges from a node, with the node behind each.
    fn steps(&self, node: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let of = |edges: &'_ [Vec<usize>]| edges.get(node).map(Vec::as_slice).unwrap_or_default().to_vec();
        let (out, back) = (of(&self.out), of(&self.back));
        let forward = out.into_iter().filter_map(|at| Some((at, self.edges.get(at)?.to)));
        let backward = back.into_iter().filter_map(|at| Some((at, self.edges.get(at)?.from)));
        forward.chain(backward)
    }

    /// Visits the nodes by their distance. The search from a node may come back to it.
    fn search(&mut self, from: usize, most: u32) -> rusqlite::Result<()> {
        if self.last.as_ref().is_some_and(|last| last.from == from && last.most == most) {
            return Ok(());
        }
        let mut distance = vec![FAR; self.nodes.len()];
        let mut arrivals = vec![Vec::new(); self.nodes.len()];
        let mut next = VecDeque::from([(from, 0_u32)]);
        let mut count = 0_usize;
        while let Some((node, depth)) = next.pop_front() {
            if depth >= most {
                break;
            }
            for (edge, to) in self.steps(node) {
                count += 1;
                if count.is_multiple_of(STEPS) {
                    late()?;
                }
                let (Some(known), Some(arrived)) = (distance.get_mut(to), arrivals.get_mut(to)) else {
                    continue;
                };
                if *known == FAR {
                    *known = depth + 1;
                    // What follows the first node again was found already.
                    if to != from {
                        next.push_back((to, depth + 1));
                    }
                }
                if *known == depth + 1 {
                    arrived.push(edge);
                }
            }
        }
        self.last = Some(Search { from, most, distance, arrivals });
        Ok(())
    }

    /// The shortest ways from one node to another: the edges of each, and where each edge leads.
    fn shortest(&mut self, question: &Shortest) -> rusqlite::Result<Vec<Vec<(usize, usize)>>> {
        if question.least == 0 && question.from == question.to {
            return Ok(vec![Vec::new()]);
        }
        let (Some(from), Some(to)) =
            (self.places.get(&question.from).copied(), self.places.get(&question.to).copied())
        else {
            return Ok(Vec::new());
        };
        // Against the arrows a way could go back on the relationship that it came by.
        if from == to && question.both {
            return Ok(Vec::new());
        }
        self.search(from, question.most)?;
        let Some(found) = &self.last else { return Ok(Vec::new()) };
        let length = found.distance.get(to).copied().unwrap_or(FAR);
        if length == FAR {
            return Ok(Vec::new());
        }
        // From the end to the beginning; each of these is a node and the way from there to the end.
        let mut open: Vec<(usize, Vec<(usize, usize)>)> = vec![(to, Vec::new())];
        let mut done = Vec::new();
        while let Some((node, way)) = open.pop() {
            if way.len() as u64 == u64::from(length) {
                done.push(way.into_iter().rev().collect());
                if !question.all {
                    return Ok(done);
                }
                if done.len() >= MAX_PATHS {
                    let message = format!("there are more than {MAX_PATHS} shortest paths between two nodes");
                    return Err(met("LimitExceeded", message));
                }
                late()?;
                continue;
            }
            for edge in found.arrivals.get(node).into_iter().flatten() {
                let Some(known) = self.edges.get(*edge) else { continue };
                // Walked backwards, it leaves the node that it is reached by.
                let before = if known.to == node { known.from } else { known.to };
                let mut longer = way.clone();
                longer.push((*edge, node));
                open.push((before, longer));
                if !question.all {
                    break;
                }
            }
        }
        Ok(done)
    }

    /// Nodes that reach each other, by Tarjan's algorithm with a stack of its own.
    fn components(&mut self) -> rusqlite::Result<()> {
        if self.components.is_some() {
            return Ok(());
        }
        let size = self.nodes.len();
        let mut walk = Tarjan::new(size);
        for root in 0..size {
            if walk.is_new(root) {
                walk.visit_all(root, |node| self.steps(node).map(|(_, to)| to).collect())?;
            }
        }
        let mut cyclic: Vec<bool> = walk.sizes.iter().map(|size| *size > 1).collect();
        for edge in self.edges.iter().filter(|edge| edge.from == edge.to) {
            if let Some(slot) = walk.of.get(edge.from).and_then(|at| cyclic.get_mut(*at)) {
                *slot = true;
            }
        }
        self.components = Some(Components { of: walk.of, cyclic });
        Ok(())
    }

    fn component(&self, id: i64) -> Option<(usize, bool)> {
        let components = self.components.as_ref()?;
        let at = *components.of.get(*self.places.get(&id)?)?;
        Some((at, components.cyclic.get(at).copied().unwrap_or(false)))
    }
}

/// The state of the search for components.
struct Tarjan {
    number: Vec<usize>,
    low: Vec<usize>,
    waiting: Vec<usize>,
    is_waiting: Vec<bool>,
    of: Vec<usize>,
    sizes: Vec<usize>,
    next: usize,
}

impl Tarjan {
    /// The number of a node that was not visited, and of one that is in no component yet.
    const NONE: usize = usize::MAX;

    fn new(size: usize) -> Self {
        Self {
            number: vec![Self::NONE; size],
            low: vec![0; size],
            waiting: Vec::new(),
            is_waiting: vec![false; size],
            of: vec![Self::NONE; size],
            sizes: Vec::new(),
            next: 0,
        }
    }

    fn is_new(&self, node: usize) -> bool {
        self.number.get(node) == Some(&Self::NONE)
    }

    fn visit(&mut self, node: usize) {
        if let (Some(number), Some(low), Some(waiting)) =
            (self.number.get_mut(node), self.low.get_mut(node), self.is_waiting.get_mut(node))
        {
            (*number, *low, *waiting) = (self.next, self.next, true);
        }
        self.next += 1;
        self.waiting.push(node);
    }

    fn lower(&mut self, node: usize, to: usize) {
        if let Some(low) = self.low.get_mut(node) {
            *low = (*low).min(to);
        }
    }

    fn visit_all(&mut self, root: usize, targets: impl Fn(usize) -> Vec<usize>) -> rusqlite::Result<()> {
        let mut path = vec![(root, targets(root), 0_usize)];
        self.visit(root);
        while let Some((node, ahead, at)) = path.last_mut() {
            let (node, to) = (*node, ahead.get(*at).copied());
            *at += 1;
            match to {
                Some(to) if self.is_new(to) => {
                    if self.next.is_multiple_of(STEPS) {
                        late()?;
                    }
                    self.visit(to);
                    path.push((to, targets(to), 0));
                }
                Some(to) => {
                    if self.is_waiting.get(to) == Some(&true) {
                        self.lower(node, self.number.get(to).copied().unwrap_or(Self::NONE));
                    }
                }
                None => {
                    path.pop();
                    let low = self.low.get(node).copied().unwrap_or(0);
                    if let Some((before, ..)) = path.last() {
                        let before = *before;
                        self.lower(before, low);
                    }
                    if self.number.get(node) == Some(&low) {
                        self.close(node);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the nodes of a component off the stack.
    fn close(&mut self, root: usize) {
        let mut size = 0;
        while let Some(node) = self.waiting.pop() {
            size += 1;
            if let (Some(waiting), Some(of)) = (self.is_waiting.get_mut(node), self.of.get_mut(node)) {
                (*waiting, *of) = (false, self.sizes.len());
            }
            if node == root {
                break;
            }
        }
        self.sizes.push(size);
    }
}

/// What `cy_shortest` is asked.
struct Shortest {
    from: i64,
    to: i64,
    least: i64,
    most: u32,
    /// All of them, and not only one.
    all: bool,
    /// Whether relationships are walked in both directions.
    both: bool,
}

/// `cy_graph(row, id, source, source_row, target, target_row, both)`.
struct Loading;

impl Aggregate<Adjacency, Sql> for Loading {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Adjacency> {
        let held: usize = GRAPHS.with_borrow(|graphs| graphs.iter().map(|graph| graph.edges.len()).sum());
        Ok(Adjacency { room: MAX_EDGES.saturating_sub(held), ..Adjacency::default() })
    }

    fn step(&self, context: &mut Context<'_>, graph: &mut Adjacency) -> rusqlite::Result<()> {
        if graph.edges.len() >= graph.room {
            let message = format!("the paths are over more than {MAX_EDGES} relationships");
            return Err(met("LimitExceeded", message));
        }
        let mut values = [0; 6];
        for (at, value) in values.iter_mut().enumerate() {
            *value = context.get(at)?;
        }
        graph.add(values, context.get::<i64>(6)? != 0);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, graph: Option<Adjacency>) -> rusqlite::Result<Sql> {
        GRAPHS.with_borrow_mut(|graphs| {
            graphs.push(graph.unwrap_or_default());
            Ok(Sql::Integer(i64::try_from(graphs.len() - 1).unwrap_or(i64::MAX)))
        })
    }
}

/// What an answer about one of the graphs needs.
fn with<T>(
    context: &Context<'_>,
    ask: impl FnOnce(&mut Adjacency) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let at = usize::try_from(context.get::<i64>(0)?).unwrap_or(usize::MAX);
    GRAPHS.with_borrow_mut(|graphs| match graphs.get_mut(at) {
        Some(graph) => ask(graph),
        None => Err(met("InvalidArgumentValue", "the relationships of a path are not loaded")),
    })
}

fn add(
    connection: &Connection,
    name: &str,
    arity: i32,
    run: fn(&Context<'_>) -> rusqlite::Result<Sql>,
) -> rusqlite::Result<()> {
    // Not deterministic: a number means another graph in the next statement.
    connection
        .create_scalar_function(name, arity, FunctionFlags::SQLITE_UTF8, move |context| made(run(context)?))
}

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    connection.create_aggregate_function("cy_graph", 7, FunctionFlags::SQLITE_UTF8, Loading)?;
    // Whether a node reaches itself, by at most so many relationships; any number when that is null.
    add(connection, "cy_cyclic", 3, |context| {
        let (id, most): (Option<i64>, Option<i64>) = (context.get(1)?, context.get(2)?);
        let Some(id) = id else { return Ok(Sql::Null) };
        with(context, |graph| {
            graph.components()?;
            let mut found = graph.component(id).is_some_and(|(_, cyclic)| cyclic);
            if let (true, Some(most), Some(from)) = (found, most, graph.places.get(&id).copied()) {
                graph.search(from, u32::try_from(most).unwrap_or(FAR))?;
                let distance = graph.last.as_ref().and_then(|search| search.distance.get(from).copied());
                found = distance.is_some_and(|distance| distance != FAR);
            }
            Ok(Sql::Integer(i64::from(found)))
        })
    })?;
    // Whether two nodes reach each other.
    add(connection, "cy_together", 3, |context| {
        let (one, other): (i64, i64) = (context.get(1)?, context.get(2)?);
        with(context, |graph| {
            graph.components()?;
            let part = |id: i64| graph.component(id).map(|(at, _)| at);
            Ok(Sql::Integer(i64::from(part(one).is_some() && part(one) == part(other))))
        })
    })?;
    // Whether one node reaches another, by at least and at most so many relationships.
    add(connection, "cy_reaches", 5, |context| {
        let (from, to): (Option<i64>, Option<i64>) = (context.get(1)?, context.get(2)?);
        let (least, most): (i64, Option<i64>) = (context.get(3)?, context.get(4)?);
        let (Some(from), Some(to)) = (from, to) else { return Ok(Sql::Null) };
        if least == 0 && from == to {
            return Ok(Sql::Integer(1));
        }
        with(context, |graph| {
            let (Some(from), Some(to)) = (graph.places.get(&from).copied(), graph.places.get(&to).copied())
            else {
                return Ok(Sql::Integer(0));
            };
            graph.search(from, most.map_or(FAR, |most| u32::try_from(most).unwrap_or(FAR)))?;
            let distance = graph.last.as_ref().and_then(|search| search.distance.get(to).copied());
            Ok(Sql::Integer(i64::from(distance.is_some_and(|distance| distance != FAR))))
        })
    })?;
    // The shortest paths as trails, each the digits of its bytes: (graph, from, to, least, most, all, both).
    add(connection, "cy_shortest", 7, |context| {
        let (from, to): (Option<i64>, Option<i64>) = (context.get(1)?, context.get(2)?);
        let (Some(from), Some(to)) = (from, to) else { return Ok(Sql::Text("[]".to_owned())) };
        let most: Option<i64> = context.get(4)?;
        let question = Shortest {
            from,
            to,
            least: context.get(3)?,
            most: most.map_or(FAR, |most| u32::try_from(most).unwrap_or(FAR)),
            all: context.get::<i64>(5)? != 0,
            both: context.get::<i64>(6)? != 0,
        };
        with(context, |graph| {
            let ways = graph.shortest(&question)?;
            let trails: Vec<String> = ways.iter().map(|way| format!("\"{}\"", graph.trail(way))).collect();
            Ok(Sql::Text(format!("[{}]", trails.join(","))))
        })
    })
}

impl Adjacency {
    /// A way as `cy_trail` reads it, in digits.
    fn trail(&self, way: &[(usize, usize)]) -> String {
        let mut text = String::with_capacity(way.len() * 64);
        for (edge, node) in way {
            let (Some(edge), Some((row, id))) = (self.edges.get(*edge), self.nodes.get(*node)) else {
                continue;
            };
            for number in [edge.row, edge.id, *row, *id] {
                for byte in number.to_le_bytes() {
                    text.push_str(&format!("{byte:02x}"));
                }
            }
        }
        text
    }
}
