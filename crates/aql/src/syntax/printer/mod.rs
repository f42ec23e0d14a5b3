//! From a tree to text: one way to write everything, with the comments where they were.
//!
//! What was written over several lines stays so; what was written in one line and does not fit goes over several.
//! A comment is kept before the line it preceded, or at the end of the line it ended; one from the middle of an
//! expression goes behind it.

mod values;

use super::Unit;
use super::text::{Span, Text};
use super::token::Comment;
use super::tree::{Argument, Arguments, Body, Input, Item, PlanBlock, Query, Step};

/// Where a line should end.
const WIDTH: usize = 100;

const INDENTATION: &str = "  ";

pub(crate) fn print(unit: &Unit) -> String {
    let mut printer = Printer {
        source: &unit.text,
        comments: &unit.comments,
        next: 0,
        written: String::new(),
        level: 0,
        last: 0,
        first: true,
        flat: false,
    };
    for (at, item) in unit.file.items.iter().enumerate() {
        let span = item.span();
        let before = at.checked_sub(1).and_then(|at| unit.file.items.get(at));
        let imports = matches!((before, item), (Some(Item::Import(_)), Item::Import(_)));
        let apart = if before.is_some() && !imports { BlankLine::Always } else { BlankLine::AsWritten };
        printer.begin_apart(span.start, apart);
        match item {
            Item::Import(import) => {
                printer.put("import ");
                printer.raw(import.path.span);
            }
            Item::Type(item) => {
                printer.put("type ");
                printer.put(&item.name.text);
                let record = matches!(item.ty.form, super::tree::TypeForm::Record(_));
                printer.put(if record || !item.equals { " " } else { " = " });
                printer.type_expr(&item.ty);
            }
            Item::Query(query) => printer.query(query),
        }
        let next = unit.file.items.get(at + 1).map_or(usize::MAX, |item| item.span().start);
        printer.end(span.end, next);
    }
    printer.flush(usize::MAX, BlankLine::AsWritten);
    if !printer.written.is_empty() {
        printer.written.push('\n');
    }
    printer.written
}

/// Whether an empty line precedes something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlankLine {
    AsWritten,
    Always,
}

/// What surrounds and separates the items.
struct Brackets {
    open: &'static str,
    /// Inside of them, in one line.
    blank: &'static str,
    /// After each item that has its own line.
    separator: &'static str,
    close: &'static str,
}

const PARENTHESES: Brackets = Brackets { open: "(", blank: "", separator: ",", close: ")" };
const SQUARE: Brackets = Brackets { open: "[", blank: "", separator: ",", close: "]" };
const BRACES: Brackets = Brackets { open: "{", blank: " ", separator: "", close: "}" };

struct Printer<'a> {
    source: &'a Text,
    comments: &'a [Comment],
    /// The first comment that was not written yet.
    next: usize,
    written: String,
    level: usize,
    /// Where in the source the last thing of this container ended.
    last: usize,
    /// Whether nothing of this container was written yet.
    first: bool,
    /// Whether everything has to be on one line.
    flat: bool,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.written.push_str(text);
    }

    /// As it was written.
    fn raw(&mut self, span: Span) {
        self.written.push_str(self.source.slice(span));
    }

    fn line(&mut self) {
        if !self.written.is_empty() {
            self.written.push('\n');
        }
        for _ in 0..self.level {
            self.written.push_str(INDENTATION);
        }
    }

    fn column(&self) -> usize {
        let start = self.written.rfind('\n').map_or(0, |at| at + 1);
        self.written.get(start..).unwrap_or_default().chars().count()
    }

    fn has_comment(&self, span: Span) -> bool {
        let at = self.comments.partition_point(|comment| comment.span.start < span.start);
        self.comments.get(at).is_some_and(|comment| span.holds(comment.span.start))
    }

    /// A new line for what is at `start` in the source, with an empty one before it where there was one.
    fn fresh_line(&mut self, start: usize, apart: BlankLine) {
        let between = self.source.slice(Span::new(self.last, start));
        let empty = apart == BlankLine::Always || between.matches('\n').count() > 1;
        if empty && !self.first {
            self.written.push('\n');
        }
        self.first = false;
        self.line();
    }

    /// Writes the comments before `until`, each on its own line.
    fn flush(&mut self, until: usize, mut apart: BlankLine) -> bool {
        let mut any = false;
        while let Some(comment) = self.comments.get(self.next).filter(|comment| comment.span.start < until) {
            self.fresh_line(comment.span.start, apart);
            self.raw(comment.span);
            self.last = self.last.max(comment.span.end);
            self.next += 1;
            apart = BlankLine::AsWritten;
            any = true;
        }
        any
    }

    fn begin(&mut self, start: usize) {
        self.begin_apart(start, BlankLine::AsWritten);
    }

    fn begin_apart(&mut self, start: usize, apart: BlankLine) {
        // Comments belong to what they precede, so the empty line comes before them.
        let apart = if self.flush(start, apart) { BlankLine::AsWritten } else { apart };
        self.fresh_line(start, apart);
    }

    /// Writes the comment that follows something on its line.
    fn end(&mut self, end: usize, next: usize) {
        self.last = self.last.max(end);
        let Some(comment) = self.comments.get(self.next) else { return };
        let start = comment.span.start;
        let same_line =
            start >= end && start < next && !self.source.slice(Span::new(end, start)).contains('\n');
        if same_line {
            self.put(" ");
            self.raw(comment.span);
            self.last = comment.span.end;
            self.next += 1;
        }
    }

    /// Things in brackets: in one line if they were written so and fit, else each on its own line.
    fn bracketed<T>(
        &mut self,
        brackets: &Brackets,
        span: Span,
        things: &[T],
        span_of: impl Fn(&T) -> Span,
        one: impl Fn(&mut Self, &T),
    ) {
        let until = things.first().map_or(span.start, |first| span_of(first).start);
        let open = self.has_comment(span) || self.source.slice(Span::new(span.start, until)).contains('\n');
        if things.is_empty() && !open {
            self.put(brackets.open);
            self.put(brackets.close);
        } else if self.flat {
            self.in_line(brackets, things, open, one);
        } else if let Some(flat) = self.fitting(|printer| printer.in_line(brackets, things, open, &one)) {
            self.put(&flat);
        } else {
            self.expanded(brackets, span, things, span_of, one);
        }
    }

    /// Things in brackets, in this line. A line break in what is written says that it cannot be done.
    fn in_line<T>(&mut self, brackets: &Brackets, things: &[T], open: bool, one: impl Fn(&mut Self, &T)) {
        if open {
            self.written.push('\n');
            return;
        }
        self.put(brackets.open);
        self.put(brackets.blank);
        for (at, thing) in things.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            one(self, thing);
            // It does not fit any more, so the rest need not be known.
            if self.written.len() > WIDTH * 4 {
                self.written.push('\n');
                return;
            }
        }
        self.put(brackets.blank);
        self.put(brackets.close);
    }

    /// What `print` writes without a line break, if it fits into this line.
    fn fitting(&self, print: impl FnOnce(&mut Self)) -> Option<String> {
        let mut flat = Printer {
            source: self.source,
            comments: self.comments,
            next: self.next,
            written: String::new(),
            level: self.level,
            last: self.last,
            first: true,
            flat: true,
        };
        print(&mut flat);
        let fits = !flat.written.contains('\n') && self.column() + flat.written.chars().count() <= WIDTH;
        fits.then_some(flat.written)
    }

    /// Things in brackets, each on its own line.
    fn expanded<T>(
        &mut self,
        brackets: &Brackets,
        span: Span,
        things: &[T],
        span_of: impl Fn(&T) -> Span,
        one: impl Fn(&mut Self, &T),
    ) {
        self.put(brackets.open);
        let outer = (self.last, self.first);
        (self.last, self.first) = (span.start, true);
        self.level += 1;
        for (at, thing) in things.iter().enumerate() {
            let place = span_of(thing);
            self.begin(place.start);
            one(self, thing);
            self.put(brackets.separator);
            let next = things.get(at + 1).map_or(span.end, |next| span_of(next).start);
            self.end(place.end, next);
        }
        self.flush(span.end, BlankLine::AsWritten);
        self.level -= 1;
        (self.last, self.first) = outer;
        self.line();
        self.put(brackets.close);
    }

    fn query(&mut self, query: &Query) {
        self.put("query ");
        self.put(&query.name.text);
        if let Some(span) = query.inputs_span
            && (!query.inputs.is_empty() || self.has_comment(span))
        {
            self.bracketed(&PARENTHESES, span, &query.inputs, |input| input.span, Printer::input);
        }
        if let Some(budget) = &query.budget {
            self.put(" budget");
            self.arguments(budget);
        }
        self.put(" ");
        self.block(&query.body);
    }

    fn input(&mut self, input: &Input) {
        self.put("$");
        self.put(&input.name.text);
        self.put(": ");
        self.type_expr(&input.ty);
        if let Some(default) = &input.default {
            self.put(" = ");
            self.expression(default);
        }
    }

    fn arguments(&mut self, arguments: &Arguments) {
        self.bracketed(&PARENTHESES, arguments.span, &arguments.items, |item| item.span, Printer::argument);
    }

    fn argument(&mut self, argument: &Argument) {
        if let Some(name) = &argument.name {
            self.put(&name.text);
            self.put(": ");
        }
        if let Some(item) = &argument.item {
            self.put(&item.text);
            self.put(" in ");
        }
        self.expression(&argument.value);
    }

    fn block(&mut self, block: &PlanBlock) {
        if block.steps.is_empty() && block.returned.is_none() && !self.has_comment(block.span) {
            self.put("{}");
            return;
        }
        enum JournalLine<'a> {
            Step(&'a Step),
            Return(&'a super::tree::Return),
        }
        let steps = block.steps.iter().map(JournalLine::Step);
        let lines: Vec<JournalLine<'_>> =
            steps.chain(block.returned.iter().map(JournalLine::Return)).collect();
        let span = |line: &JournalLine<'_>| match line {
            JournalLine::Step(step) => step.span,
            JournalLine::Return(returned) => returned.span,
        };
        self.expanded(&BRACES, block.span, &lines, span, |printer, line| match line {
            JournalLine::Step(step) => printer.step(step),
            JournalLine::Return(returned) => {
                printer.put("return ");
                printer.expression(&returned.value);
            }
        });
    }

    fn step(&mut self, step: &Step) {
        self.put(&step.name.text);
        self.put(": ");
        self.put(&step.kind.text);
        if let Some(arguments) = &step.arguments {
            self.arguments(arguments);
        }
        if let Some(ty) = &step.ty {
            self.put(" as ");
            self.type_expr(ty);
        }
        match &step.body {
            Some(Body::Object(object)) => {
                self.put(" ");
                self.object(object);
            }
            Some(Body::Block(block)) => {
                self.put(" ");
                self.block(block);
            }
            None => {}
        }
        if let Some(otherwise) = &step.otherwise {
            self.put(" else ");
            self.block(otherwise);
        }
    }
}
