//! Options that steps share: when, how often, how long, and what if it fails.

use std::time::Duration;

use super::arguments::ParsedArgs;
use super::scope::CheckContext;
use crate::QueryType;
use crate::plan::{Budget, ExpressionForm, OnError, Options};
use crate::suggest::hint;
use crate::syntax::text::Span;
use crate::syntax::tree::{Arguments, Expr, ExprForm};
use crate::types::union;

/// What steps with an effect take in addition to their own options.
pub(super) const EFFECT: [&str; 6] = ["after", "retry", "timeout", "on_error", "default", "cache"];

/// What steps take that hold others.
pub(super) const AROUND: [&str; 4] = ["after", "timeout", "on_error", "default"];

/// Attempts after the first. What has not worked by then does not.
const MAX_RETRY: i64 = 10;

/// A day. Longer runs make no sense, and every clock below can represent it.
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Turns of an agent.
const MAX_TURNS: i64 = 1_000;

/// Items of a `map`, or steps of a run, at the same time.
const MAX_PARALLEL: i64 = 64;

/// Calls of one run.
const MAX_CALLS: i64 = 1_000_000;

/// Tokens of one run; far beyond any real budget, and far from overflow.
const MAX_TOKENS: i64 = 1_000_000_000_000;

const BUDGETS: [&str; 4] = ["tokens", "calls", "time", "parallel"];

impl CheckContext<'_> {
    /// A whole number that is written out.
    pub fn number(&mut self, given: &ParsedArgs<'_>, name: &str, least: i64, most: i64) -> Option<u64> {
        let expr = given.get(name)?;
        self.number_in(expr, name, least, most)
    }

    fn number_in(&mut self, expr: &Expr, name: &str, least: i64, most: i64) -> Option<u64> {
        if let ExprForm::Int(value) = expr.form
            && (least..=most).contains(&value)
        {
            return u64::try_from(value).ok();
        }
        let (kind, message) = match expr.form {
            ExprForm::Int(value) => {
                ("out-of-range", format!("`{name}` goes from {least} to {most}, this is {value}"))
            }
            _ => ("wrong-type", format!("`{name}` is a whole number that is written out")),
        };
        self.tell(expr.span, kind, message, &format!("write a number from {least} to {most}"));
        None
    }

    fn duration(&mut self, expr: &Expr, name: &str) -> Option<Duration> {
        match expr.form {
            ExprForm::Duration(value) if !value.is_zero() && value <= MAX_TIME => Some(value),
            ExprForm::Duration(_) => {
                self.tell(
                    expr.span,
                    "out-of-range",
                    format!("`{name}` goes from 1ms to 24h"),
                    "write a duration between them",
                );
                None
            }
            _ => {
                let message = format!("`{name}` is a duration that is written out");
                self.tell(expr.span, "wrong-type", message, "durations are `500ms`, `30s`, `5m` and `2h`");
                None
            }
        }
    }

    pub fn temperature(&mut self, given: &ParsedArgs<'_>) -> Option<f64> {
        let expr = given.get("temperature")?;
        let value = match expr.form {
            ExprForm::Float(value) => Some(value),
            ExprForm::Int(value) => i32::try_from(value).ok().map(f64::from),
            _ => {
                self.tell(
                    expr.span,
                    "wrong-type",
                    "`temperature` is a number that is written out",
                    "write a number from 0 to 2",
                );
                return None;
            }
        };
        let found = value.filter(|value| (0.0..=2.0).contains(value));
        if found.is_none() {
            self.tell(
                expr.span,
                "out-of-range",
                "`temperature` goes from 0 to 2",
                "write a number between them",
            );
        }
        found
    }

    pub fn max_steps(&mut self, given: &ParsedArgs<'_>) -> Option<u64> {
        self.number(given, "max_steps", 1, MAX_TURNS)
    }

    pub fn concurrency(&mut self, given: &ParsedArgs<'_>) -> Option<usize> {
        let found = self.number(given, "concurrency", 1, MAX_PARALLEL)?;
        usize::try_from(found).ok()
    }

    fn flag(&mut self, given: &ParsedArgs<'_>, name: &str) -> Option<(bool, Span)> {
        let expr = given.get(name)?;
        if let ExprForm::Bool(value) = expr.form {
            return Some((value, expr.span));
        }
        self.tell(
            expr.span,
            "wrong-type",
            format!("`{name}` is `true` or `false`, written out"),
            "write one of them",
        );
        None
    }

    /// The options of a step, and what its type becomes by them. `changes` says why nothing of it can be cached.
    pub fn options(
        &mut self,
        given: &ParsedArgs<'_>,
        ty: QueryType,
        changes: Option<String>,
    ) -> (Options, QueryType) {
        let retry = self.number(given, "retry", 0, MAX_RETRY).and_then(|retry| u32::try_from(retry).ok());
        let timeout = given.get("timeout").and_then(|expr| self.duration(expr, "timeout"));
        let (on_error, ty) = self.on_error(given, ty);
        let mut cache = false;
        if let Some((wanted, span)) = self.flag(given, "cache") {
            cache = wanted;
            if let (true, Some(changes)) = (wanted, changes) {
                let message = format!("a step that may change something is not cached: {changes}");
                self.tell(span, "cached-change", message, "leave `cache` out");
            }
        }
        (Options { retry: retry.unwrap_or(0), timeout, on_error, cache }, ty)
    }

    fn on_error(&mut self, given: &ParsedArgs<'_>, ty: QueryType) -> (OnError, QueryType) {
        let default = given.get("default").map(|expr| (expr, self.infer(expr)));
        let word = given.get("on_error");
        let said = word.and_then(|expr| match &expr.form {
            ExprForm::Name(name) => Some(name.as_str()),
            _ => None,
        });
        let found = match (word, said) {
            (None, _) => OnError::Fail,
            (Some(_), Some("fail")) => OnError::Fail,
            (Some(_), Some("skip")) => OnError::Skip,
            (Some(expr), Some("default")) => match &default {
                Some((_, typed)) => OnError::Default(typed.expression.clone()),
                None => {
                    self.tell(
                        expr.span,
                        "missing-default",
                        "`on_error: default` needs a `default`",
                        "add `default: …` behind it",
                    );
                    OnError::Fail
                }
            },
            (Some(expr), said) => {
                let problem =
                    self.problem(expr.span, "unknown-option", "`on_error` is `fail`, `skip` or `default`");
                let quoted =
                    matches!(expr.form, ExprForm::Text(_)).then(|| "write it without quotes".to_owned());
                let help = said.and_then(|said| hint(said, ["fail", "skip", "default"])).or(quoted);
                self.findings.add(problem.maybe_help(help));
                return (OnError::Fail, ty);
            }
        };
        if let (Some((expr, _)), false) = (&default, matches!(found, OnError::Default(_))) {
            self.tell(
                expr.span,
                "unused-default",
                "`default` is used with `on_error: default` only",
                "add `on_error: default`, or leave it out",
            );
        }
        let ty = match &found {
            OnError::Fail => ty,
            OnError::Skip => ty.nullable(),
            OnError::Default(_) => union([ty, default.map_or(QueryType::Any, |(_, typed)| typed.ty)]),
        };
        (found, ty)
    }

    /// Reports names in `after` that are not steps.
    pub fn after(&mut self, given: &ParsedArgs<'_>) {
        let Some(expr) = given.get("after") else { return };
        let names: Vec<&Expr> = match &expr.form {
            ExprForm::List(items) => items.iter().collect(),
            _ => vec![expr],
        };
        for expr in names {
            let ExprForm::Name(name) = &expr.form else {
                self.tell(
                    expr.span,
                    "wrong-type",
                    "`after` names steps",
                    "write `after: step` or `after: [a, b]`",
                );
                continue;
            };
            match self.find(name).map(|found| found.form) {
                Some(ExpressionForm::Step { .. }) => {}
                Some(_) => self.tell(
                    expr.span,
                    "unknown-step",
                    format!("`{name}` is an item, not a step"),
                    "`after` names steps",
                ),
                None => {
                    let problem = self.unknown_step(name, expr.span);
                    self.findings.add(problem);
                }
            }
        }
    }

    pub fn budget(&mut self, arguments: Option<&Arguments>) -> Budget {
        let mut budget = Budget::default();
        let mut seen: Vec<&str> = Vec::new();
        for argument in arguments.into_iter().flat_map(|arguments| &arguments.items) {
            let Some(name) = &argument.name else {
                self.tell(
                    argument.span,
                    "unknown-option",
                    "a budget has names",
                    "write `budget(tokens: 50000, calls: 40, time: 10m, parallel: 4)`",
                );
                continue;
            };
            if seen.contains(&name.text.as_str()) {
                self.tell(
                    name.span,
                    "duplicate-name",
                    format!("`{}` is there twice", name.text),
                    "leave one of them out",
                );
                continue;
            }
            seen.push(&name.text);
            let value = &argument.value;
            match name.text.as_str() {
                "tokens" => budget.tokens = self.number_in(value, "tokens", 1, MAX_TOKENS),
                "calls" => budget.calls = self.number_in(value, "calls", 1, MAX_CALLS),
                "time" => budget.time = self.duration(value, "time"),
                "parallel" => {
                    let found = self.number_in(value, "parallel", 1, MAX_PARALLEL);
                    budget.parallel = found.and_then(|found| usize::try_from(found).ok());
                }
                other => {
                    let problem =
                        self.problem(name.span, "unknown-option", format!("there is no budget `{other}`"));
                    self.findings.add(problem.maybe_help(hint(other, BUDGETS)));
                }
            }
        }
        budget
    }
}
