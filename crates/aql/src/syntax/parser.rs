//! From tokens to a tree, by recursive descent. After a mistake it continues with the next step, so that all are
//! found.

use tgp_text::nearest;

use super::recovery::declared;
use super::text::{Span, Text};
use super::token::{Token, TokenKind};
use super::tree::{
    Argument, Arguments, Body, File, Import, Input, Item, Name, ParseCompleteness, PlanBlock, Query, Return,
    Step, TypeItem, UnparsedNames,
};
use crate::QueryProblem;
use crate::problem::Findings;
use crate::suggest::listed;

/// Blocks, types and expressions inside of each other. It bounds the stack of all code that walks the tree.
pub(crate) const MAX_DEPTH: usize = 64;

/// Steps of one file. A plan of more is not a plan, and everything behind is linear in it at least.
pub(crate) const MAX_STEPS: usize = 1_000;

pub(crate) const KINDS: [&str; 9] =
    ["agent", "tool", "exec", "graph", "sql", "merge", "map", "when", "query"];

/// A problem was reported; a caller that can continues after it.
pub(crate) struct ErrorReported;

pub(crate) type Parsed<T> = Result<T, ErrorReported>;

pub(crate) struct Parser<'a> {
    pub source: &'a Text,
    pub tokens: &'a [Token],
    pub at: usize,
    pub depth: usize,
    pub steps: usize,
    /// How often something was wrong, whether or not it was reported here.
    pub told: usize,
    pub findings: &'a mut Findings,
}

pub(crate) fn file(source: &Text, tokens: &[Token], findings: &mut Findings) -> File {
    let mut parser = Parser { source, tokens, at: 0, depth: 0, steps: 0, told: 0, findings };
    let (mut items, mut blind) = (Vec::new(), false);
    while !parser.at_end() {
        let (before, told) = (parser.at, parser.told);
        match parser.item() {
            Ok(item) if parser.told == told || matches!(item, Item::Query(_)) => items.push(item),
            // What it declares has a name that can be kept, unless it is an import.
            Ok(item) => blind |= matches!(item, Item::Import(_)),
            Err(ErrorReported) => {
                blind |= !parser.declares(before);
                parser.skip_item(before);
                // A bracket that closes nothing belongs to what ended too early.
                if parser.closes_more(before) && !matches!(items.last(), Some(Item::Import(_))) {
                    items.pop();
                }
            }
        }
    }
    let lost = if parser.told > 0 { declared(tokens) } else { Vec::new() };
    File { items, lost, blind }
}

/// Follows the last token, where there should be an end and is none.
const END: TokenKind = TokenKind::End;

impl Parser<'_> {
    pub fn kind(&self) -> &TokenKind {
        self.kind_at(0)
    }

    pub fn kind_at(&self, ahead: usize) -> &TokenKind {
        self.tokens.get(self.at + ahead).map_or(&END, |token| &token.kind)
    }

    pub fn span(&self) -> Span {
        let end = self.source.text.len();
        self.tokens.get(self.at).or(self.tokens.last()).map_or(Span::new(end, end), |token| token.span)
    }

    /// Where the token before this one ended.
    pub fn behind(&self) -> Span {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.map_or(self.span(), |token| Span::new(token.span.end, token.span.end))
    }

    pub fn begins_line(&self) -> bool {
        self.begins_line_at(0)
    }

    pub fn begins_line_at(&self, ahead: usize) -> bool {
        self.tokens.get(self.at + ahead).is_none_or(|token| token.begins_line)
    }

    pub fn at_end(&self) -> bool {
        matches!(self.kind(), TokenKind::End)
    }

    pub fn advance(&mut self) {
        if !self.at_end() {
            self.at += 1;
        }
    }

    pub fn is(&self, symbol: &str) -> bool {
        self.is_at(0, symbol)
    }

    pub fn is_at(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.kind_at(ahead), TokenKind::Symbol(found) if *found == symbol)
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(), TokenKind::Name(name) if name == word)
    }

    pub fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    /// The current token, for a message.
    pub fn found(&self) -> String {
        match self.kind() {
            TokenKind::Name(name) => format!("`{}`", name.chars().take(60).collect::<String>()),
            TokenKind::Input(name) => format!("`${}`", name.chars().take(60).collect::<String>()),
            TokenKind::Text(_) => "a text".to_owned(),
            TokenKind::Int(_) | TokenKind::Float(_) => "a number".to_owned(),
            TokenKind::Duration(_) => "a duration".to_owned(),
            TokenKind::Symbol(symbol) => format!("`{symbol}`"),
            TokenKind::Wrong => "something else".to_owned(),
            TokenKind::End => "the end".to_owned(),
        }
    }

    pub fn tell(&mut self, problem: QueryProblem) -> ErrorReported {
        self.told += 1;
        self.findings.add(problem);
        ErrorReported
    }

    /// Reports what is missing here. Nothing more is reported for something already reported as wrong.
    pub fn expected(&mut self, wanted: &str, help: &str) -> ErrorReported {
        if matches!(self.kind(), TokenKind::Wrong) {
            self.told += 1;
            return ErrorReported;
        }
        let message = format!("{wanted} is expected here, not {}", self.found());
        let span = if self.at_end() { self.behind() } else { self.span() };
        let problem = self.source.problem(span, "unexpected-word", message);
        self.tell(if help.is_empty() { problem } else { problem.help(help) })
    }

    pub fn expect(&mut self, symbol: &'static str, help: &str) -> Parsed<Span> {
        let span = self.span();
        if self.eat(symbol) { Ok(span) } else { Err(self.missing(&format!("`{symbol}`"), help)) }
    }

    /// Reports what is missing after the last token, which may be on another line than this one.
    fn missing(&mut self, wanted: &str, help: &str) -> ErrorReported {
        if !self.begins_line() || matches!(self.kind(), TokenKind::Wrong) {
            return self.expected(wanted, help);
        }
        let message = format!("{wanted} is expected here, not {}", self.found());
        let problem = self.source.problem(self.behind(), "unexpected-word", message);
        self.tell(if help.is_empty() { problem } else { problem.help(help) })
    }

    pub fn name(&mut self, what: &str, help: &str) -> Parsed<Name> {
        let span = self.span();
        if let TokenKind::Name(text) = self.kind()
            && !self.begins_item()
        {
            let text = text.clone();
            self.advance();
            return Ok(Name { text, span });
        }
        Err(self.expected(what, help))
    }

    /// One level deeper, as long as there is room.
    pub fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("this is more than {MAX_DEPTH} levels deep");
            let problem = self.source.problem(self.span(), "too-deep", message);
            return Err(self.tell(problem.help("give the inner part a step or a type of its own")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn item(&mut self) -> Parsed<Item> {
        let start = self.span();
        if self.is_word("import") {
            self.advance();
            let TokenKind::Text(literal) = self.kind().clone() else {
                return Err(self.expected("the path of a file", "write `import \"./other.aql\"`"));
            };
            let path = self.text(literal)?;
            let span = start.to(path.span);
            return Ok(Item::Import(Import { path, span }));
        }
        if self.is_word("type") {
            self.advance();
            let name = self.name("the name of the type", "write `type Name { field: String }`")?;
            let equals = self.eat("=");
            if !equals && !self.is("{") {
                return Err(self.expected(
                    "`=` or `{`",
                    "write `type Name { field: String }` or `type Name = [String]`",
                ));
            }
            let ty = self.type_expr()?;
            let span = start.to(self.behind());
            return Ok(Item::Type(TypeItem { name, ty, equals, span }));
        }
        if self.is_word("query") {
            return self.query(start).map(|query| Item::Query(Box::new(query)));
        }
        if matches!(self.kind(), TokenKind::Wrong) {
            self.told += 1;
            return Err(ErrorReported);
        }
        let found = self.found();
        let word = if let TokenKind::Name(word) = self.kind() { word.clone() } else { String::new() };
        let help = match nearest(&word, ["import", "type", "query"]) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "a file holds `import`, `type` and `query`".to_owned(),
        };
        let message = format!("{found} begins nothing that a file can hold");
        Err(self.tell(self.source.problem(self.span(), "unknown-word", message).help(help)))
    }

    fn query(&mut self, start: Span) -> Parsed<Query> {
        self.advance();
        let name = self.name("the name of the query", "write `query Name { … }`")?;
        let mut inputs = Vec::new();
        let mut inputs_span = None;
        let told = self.told;
        if self.is("(") {
            let open = self.span();
            self.advance();
            self.separated(")", |parser| {
                inputs.push(parser.input()?);
                Ok(())
            })?;
            inputs_span = Some(open.to(self.behind()));
        }
        let mut budget = None;
        if self.is_word("budget") {
            self.advance();
            if !self.is("(") {
                return Err(self.expected("`(`", "write `budget(tokens: 50000, time: 10m)`"));
            }
            let told = self.told;
            budget = Some(self.arguments("budget")?).filter(|_| self.told == told);
        }
        if !self.is("{") {
            return Err(self.expected("`{`", "write the steps of a query in braces"));
        }
        let head = self.told;
        let body = self.block()?;
        let span = start.to(body.span);
        let whole = match (head > told, self.told > head) {
            (true, _) => ParseCompleteness::Inputs,
            (false, true) => ParseCompleteness::Block,
            (false, false) => ParseCompleteness::Yes,
        };
        Ok(Query { name, inputs, inputs_span, budget, body, whole, span })
    }

    fn input(&mut self) -> Parsed<Input> {
        let start = self.span();
        let TokenKind::Input(text) = self.kind() else {
            return Err(self.expected("an input", "write `$name: Type`"));
        };
        let name = Name { text: text.clone(), span: start };
        self.advance();
        self.expect(":", "every input has a type: `$name: String`")?;
        let ty = self.type_expr()?;
        let default = if self.eat("=") { Some(self.expression()?) } else { None };
        Ok(Input { name, ty, default, span: start.to(self.behind()) })
    }

    /// Things with a comma or the end of a line between them, up to `close`, which is taken. A thing that is wrong is
    /// passed.
    pub fn separated(
        &mut self,
        close: &'static str,
        mut one: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<()> {
        loop {
            if self.eat(close) {
                return Ok(());
            }
            if self.begins_item() {
                return Err(self.missing(&format!("`{close}`"), ""));
            }
            let before = self.at;
            if one(self).is_err() {
                self.skip(|parser| parser.is(",") || parser.begins_line() && parser.at > before);
            }
            if self.eat(",") || self.is(close) || self.at > before && self.begins_line() && !self.at_end() {
                if self.at == before {
                    self.advance();
                }
                continue;
            }
            let told = self.missing(&format!("`,` or `{close}`"), "");
            // What begins another thing lacks nothing but the comma.
            if self.at == before
                || matches!(self.kind(), TokenKind::Symbol(_) | TokenKind::Wrong | TokenKind::End)
            {
                return Err(told);
            }
        }
    }

    /// Steps in braces.
    pub fn block(&mut self) -> Parsed<PlanBlock> {
        let start = self.expect("{", "")?;
        self.deeper(|parser| {
            let mut steps: Vec<Step> = Vec::new();
            let mut returned: Option<Return> = None;
            let (mut lost, mut broken) = (UnparsedNames::default(), false);
            // Where another query begins, this block was never closed.
            while !parser.is("}") && !parser.at_end() && !parser.begins_item() {
                let before = parser.at;
                let returns = parser.is_word("return") && !parser.is_at(1, ":");
                let parsed = if returns {
                    parser.returned(&mut returned)
                } else {
                    parser.step_after(&returned, &mut steps)
                };
                if parsed.is_err() {
                    broken = true;
                    // It may be the rest of what precedes it.
                    let same_line = !parser.line_begins(before);
                    let lacks_body = |step: &Step| step.body.is_none() && step.kind.text != "merge";
                    match (&mut returned, steps.last_mut()) {
                        (Some(returned), _) => returned.broken = true,
                        (None, Some(step)) if same_line || lacks_body(step) => step.lose(),
                        _ => {}
                    }
                    parser.skip_step(before, &mut lost);
                } else if steps.last().is_some_and(|step| step.broken) {
                    parser.names_since(before, &mut lost);
                }
                parser.eat(",");
            }
            parser.close(start, "this block is never closed")?;
            Ok(PlanBlock { steps, returned, lost, broken, span: start.to(parser.behind()) })
        })
    }

    fn returned(&mut self, returned: &mut Option<Return>) -> Parsed<()> {
        let start = self.span();
        self.advance();
        let told = self.told;
        let value = self.expression()?;
        let span = start.to(value.span);
        if let Some(first) = returned {
            let problem = self.source.problem(span, "duplicate-return", "a block returns once");
            let first = self.source.range(first.span);
            return Err(self.tell(
                problem.label(first, "the first one").help("put them into one object: `return { a, … }`"),
            ));
        }
        *returned = Some(Return { value, broken: self.told > told, span });
        Ok(())
    }

    fn step_after(&mut self, returned: &Option<Return>, steps: &mut Vec<Step>) -> Parsed<()> {
        let step = self.step()?;
        if let Some(returned) = returned {
            let (place, end) = self.source.range(returned.span);
            let problem = self.source.problem(
                step.name.span,
                "step-after-return",
                "`return` is the last line of a block",
            );
            self.findings.add(problem.label((place, end), "it returns here").help("move the step before it"));
        }
        steps.push(step);
        Ok(())
    }

    fn step(&mut self) -> Parsed<Step> {
        let name = self.name("a step", "write `name: kind(…) { … }`")?;
        self.steps += 1;
        if self.steps == MAX_STEPS + 1 {
            let message = format!("a file has at most {MAX_STEPS} steps");
            self.findings.add(
                self.source
                    .problem(name.span, "too-many-steps", message)
                    .help("put some of them into a file of its own and import it"),
            );
        }
        self.expect(":", "a step is written `name: kind(…) { … }`")?;
        let told = self.told;
        let mut kind = self.name("the kind of the step", &format!("there are {}", listed(KINDS)))?;
        if !KINDS.contains(&kind.text.as_str()) {
            let near = nearest(&kind.text, KINDS);
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", listed(KINDS)),
            };
            let message = format!("`{}` is not a kind of step", kind.text);
            let told = self.tell(self.source.problem(kind.span, "unknown-kind", message).help(help));
            // What follows is read as if it were the one that was meant.
            kind.text = near.ok_or(told)?.to_owned();
        }
        let before = self.told;
        let arguments = if self.is("(") { Some(self.arguments(&kind.text)?) } else { None };
        let arguments = arguments.filter(|_| self.told == before);
        let mut ty = None;
        if self.is_word("as") && !self.is_at(1, ":") {
            self.advance();
            ty = Some(self.type_expr()?);
        }
        let mut body = None;
        let mut otherwise = None;
        let mut broken = self.told > told;
        if self.is("{") {
            body = Some(if matches!(kind.text.as_str(), "map" | "when") {
                Body::Block(self.block()?)
            } else {
                Body::Object(self.object()?)
            });
            if matches!(body, Some(Body::Object(_))) && self.told > before {
                body = None;
                broken = true;
            }
            if self.is_word("else") && !self.is_at(1, ":") {
                if kind.text != "when" {
                    let message = format!("`{}` has no `else`", kind.text);
                    return Err(self.tell(
                        self.source
                            .problem(self.span(), "unexpected-else", message)
                            .help("only `when` has one"),
                    ));
                }
                self.advance();
                if !self.is("{") {
                    return Err(self.expected(
                        "`{`",
                        "write `else { … }`; another condition is another `when` inside of it",
                    ));
                }
                otherwise = Some(self.block()?);
            }
        }
        let span = name.span.to(self.behind());
        Ok(Step { name, kind, arguments, ty, body, otherwise, broken, span })
    }

    /// The arguments in parentheses after a step kind.
    pub fn arguments(&mut self, kind: &str) -> Parsed<Arguments> {
        let start = self.expect("(", "")?;
        let mut items = Vec::new();
        self.separated(")", |parser| {
            items.push(parser.argument(kind)?);
            Ok(())
        })?;
        Ok(Arguments { items, span: start.to(self.behind()) })
    }

    fn argument(&mut self, kind: &str) -> Parsed<Argument> {
        let start = self.span();
        let word = |parser: &mut Self| parser.name("a name", "");
        let named = matches!(self.kind(), TokenKind::Name(_));
        let (mut name, mut item) = (None, None);
        if named && self.is_at(1, ":") {
            name = Some(word(self)?);
            self.advance();
        } else if named && kind == "map" && matches!(self.kind_at(1), TokenKind::Name(next) if next == "in") {
            item = Some(word(self)?);
            self.advance();
        }
        let value = self.expression()?;
        Ok(Argument { name, item, span: start.to(value.span), value })
    }
}
