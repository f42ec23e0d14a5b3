//! From the syntax tree to one SQL statement.
//!
//! Each clause becomes a common table expression over the one before it. A variable is one column, a node or a
//! relationship two: its row and its id. Nothing of the query's text gets into the SQL: names and literals are bound.

mod aggregates;
mod anchors;
mod calls;
mod ends;
mod explain;
mod expression;
mod graph_calls;
mod joins;
mod lists;
mod matching;
mod operators;
mod pattern;
mod projection;
mod query;
mod scope;
mod search;
mod subqueries;
mod var_length;
mod visible;
mod vocabulary;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use open_cypher::Span;
use tgp_contract::{Code, ToolError};

use super::QueryLimits;
use super::error::{CypherError, CypherResult, Phase};
use super::spelling::Spelling;
use super::syntax;
use super::value::Value;

/// Compiled queries that are kept: an agent asks the same few questions with other parameters.
const KEPT: usize = 128;

/// The stack of the thread that compiles. The depth of a query is capped; this is what that depth may need.
const STACK: usize = 64 << 20;

pub(crate) use explain::Step;
pub(super) use explain::rows as explained;
pub(crate) use visible::position;
use vocabulary::ExpectedValue;

/// What has to be bound to a place of the SQL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bind {
    /// The moment that the query sees.
    Moment,
    Value(Value),
    Parameter(String),
    /// A parameter that SKIP or LIMIT takes.
    Count {
        clause: &'static str,
        name: String,
    },
    /// The moment of a revision that the query names.
    Revision(String),
    /// The same, named by a parameter.
    RevisionParameter(String),
    /// The nodes that are hidden at the moment that another of these is.
    Hidden(Box<Bind>),
}

/// A query that can be run any number of times.
#[derive(Debug)]
pub(crate) struct Program {
    pub sql: String,
    pub binds: Vec<Bind>,
    pub columns: Vec<String>,
    /// Where the query uses the SQL functions that may refuse a value.
    pub sites: Vec<(String, Span)>,
    /// For each of `binds` where the query first has it, if it has a place.
    pub places: Vec<Option<Span>>,
    /// What is given instead of rows, where the query asks for its plan.
    pub explained: Option<Vec<Step>>,
    /// How long it may take, where the query says so.
    pub time: Option<Duration>,
    /// Parameters that only have some values.
    pub expected: Vec<ExpectedValue>,
}

struct Kept {
    query: String,
    hops: u32,
    vocabulary: bool,
    hides: bool,
    program: Arc<Program>,
}

static PROGRAMS: LazyLock<Mutex<VecDeque<Kept>>> = LazyLock::new(Mutex::default);

/// Compiles a query, or takes it from those that were compiled before. `hides` when some nodes may not be seen.
pub(crate) fn program(query: &str, limits: &QueryLimits, hides: bool) -> Result<Arc<Program>, ToolError> {
    let QueryLimits { hops, vocabulary, .. } = *limits;
    {
        let mut kept = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &Kept| {
            known.hops == hops
                && known.vocabulary == vocabulary
                && known.hides == hides
                && known.query == query
        };
        if let Some(at) = kept.iter().position(is_same)
            && let Some(known) = kept.remove(at)
        {
            let program = Arc::clone(&known.program);
            kept.push_back(known);
            return Ok(program);
        }
    }
    let compiled = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || compiled(query, hops, vocabulary, hides))
            .map_err(|error| ToolError::new(Code::Runtime, format!("no thread for the compiler: {error}")))?
            .join()
            .map_err(|_| ToolError::new(Code::Runtime, "the query made the compiler fail"))
    })?;
    let program = Arc::new(compiled.map_err(|refusal| refusal.into_error(query, Phase::Compile))?);
    let mut kept = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= KEPT {
        kept.pop_front();
    }
    let query = query.to_owned();
    kept.push_back(Kept { query, hops, vocabulary, hides, program: Arc::clone(&program) });
    Ok(program)
}

/// The tree of a query; a wrong name in it is compared with the functions that there are.
pub(super) fn parse(query: &str) -> CypherResult<syntax::Parsed> {
    syntax::parse(query, calls::function_names)
}

fn compiled(query: &str, hops: u32, vocabulary: bool, hides: bool) -> CypherResult<Program> {
    let parsed = parse(query)?;
    let spelling = &parsed.spelling;
    let mut compiler = Compiler {
        query,
        source: &spelling.text,
        spelling,
        hops,
        vocabulary,
        binds: vec![Bind::Moment],
        places: vec![None],
        sites: Vec::new(),
        names: 0,
        rows: Rows::Bag,
        hidden: None,
        steps: Vec::new(),
        level: 0,
        expected: RefCell::default(),
    };
    if hides {
        compiler.hidden = Some(compiler.bind(Bind::Hidden(Box::new(Bind::Moment))));
    }
    let back = |span: Span| spelling.original_span(span);
    let answer = compiler.regular(&parsed.tree, &scope::Scope::default()).map_err(|mut refusal| {
        refusal.span = refusal.span.map(back);
        refusal
    })?;
    let Compiler { binds, places, sites, steps, expected, .. } = compiler;
    let expected = expected.into_inner();
    let expected = expected.into_iter().map(|value| value.moved(back)).collect();
    let sites = sites.into_iter().map(|(name, span)| (name, back(span))).collect();
    let places = places.into_iter().map(|span| span.map(back)).collect();
    let explained = parsed.explain.then_some(steps);
    let columns = if explained.is_some() { explain::columns() } else { answer.columns };
    Ok(Program { sql: answer.sql, binds, columns, sites, places, explained, time: parsed.time, expected })
}

/// What one compilation knows.
pub(super) struct Compiler<'q> {
    /// The query as it was written.
    query: &'q str,
    /// The text that the tree is of.
    source: &'q str,
    spelling: &'q Spelling,
    /// The cap of variable lengths.
    hops: u32,
    /// Whether only the names of the code graph are taken.
    vocabulary: bool,
    binds: Vec<Bind>,
    places: Vec<Option<Span>>,
    sites: Vec<(String, Span)>,
    /// How many names were given, so that none is given twice.
    names: usize,
    /// What the pattern that is being compiled is for.
    rows: Rows,
    /// The place of the hidden nodes of the query's moment, where there are any.
    hidden: Option<String>,
    /// What the query does, in order.
    steps: Vec<Step>,
    /// How many subqueries are around what is being compiled.
    level: usize,
    /// Parameters that are compared with properties that have a fixed list of values.
    expected: RefCell<Vec<ExpectedValue>>,
}

/// Whether it matters how often a row comes out of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    Bag,
    /// Only whether it comes: for EXISTS and DISTINCT. Then a variable length asks what can be reached, which is quick,
    /// and not for all ways to it, of which there may be more than atoms in the world.
    Set,
}

impl<'q> Compiler<'q> {
    /// A name that nothing else has.
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// A place in the SQL for something that is bound.
    fn bind(&mut self, bind: Bind) -> String {
        let at = match self.binds.iter().position(|known| *known == bind) {
            Some(at) => at,
            None => {
                self.binds.push(bind);
                self.places.push(None);
                self.binds.len() - 1
            }
        };
        format!("?{}", at + 1)
    }

    /// As `bind`, for something that may be refused when it is bound.
    fn bind_at(&mut self, bind: Bind, span: Span) -> String {
        let known = self.binds.len();
        let text = self.bind(bind);
        if self.binds.len() > known
            && let Some(place) = self.places.last_mut()
        {
            *place = Some(span);
        }
        text
    }

    /// What every alias of a node or a relationship must satisfy at the moment of the query.
    fn sight(&self) -> visible::VisibleAt {
        visible::VisibleAt { moment: visible::NOW.to_owned(), hidden: self.hidden.clone() }
    }

    /// The same at another moment, which is bound.
    fn sight_at(&mut self, moment: Bind, span: Span) -> visible::VisibleAt {
        let at = self.bind_at(moment.clone(), span);
        let hides = self.hidden.is_some();
        let hidden = hides.then(|| self.bind_at(Bind::Hidden(Box::new(moment)), span));
        visible::VisibleAt { moment: at, hidden }
    }

    /// Remembers where the query uses an SQL function.
    fn site(&mut self, function: &str, span: Span) {
        if !self.sites.iter().any(|(known, at)| *at == span && known == function) {
            self.sites.push((function.to_owned(), span));
        }
    }

    /// Compiles a part for which other rows matter than for what is around it.
    fn for_rows<T>(&mut self, rows: Rows, part: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.rows, rows);
        let done = part(self);
        self.rows = before;
        done
    }

    fn text(&mut self, text: &str) -> String {
        self.bind(Bind::Value(Value::Text(text.to_owned())))
    }

    fn literal(&mut self, value: Value) -> String {
        self.bind(Bind::Value(value))
    }

    /// The query's own words.
    fn words(&self, span: Span) -> &'q str {
        self.spelling.original_span(span).text(self.query).unwrap_or("")
    }

    /// The words without spaces and comments, to compare two expressions.
    fn spelling(&self, span: Span) -> String {
        let words = self.words(span);
        let tokens = open_cypher::lex(words).tokens.into_iter().filter(|token| !token.is_trivia());
        tokens.filter_map(|token| token.text(words)).collect::<Vec<_>>().join(" ")
    }

    /// Refuses what is not in the scope, with the nearest name that is.
    fn undefined(&self, name: &str, span: Span, scope: &scope::Scope) -> Box<CypherError> {
        let refusal = CypherError::new("UndefinedVariable", span, format!("`{name}` is not defined"));
        match tgp_text::nearest(name, scope.names()) {
            Some(near) => refusal.help(format!("did you mean `{near}`?")),
            None => refusal.help("bind it by MATCH, WITH or UNWIND before it is used"),
        }
    }
}
