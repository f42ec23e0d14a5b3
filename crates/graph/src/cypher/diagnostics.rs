//! What the parser has to say about a text, in the words of the language and with a next step.

use open_cypher::{Diagnostic, DiagnosticCode, Keyword, ParseErrors, Span, Token, TokenKind};
use tgp_text::{nearest, truncate};

use super::error::{CypherError, spot};

/// Returns the names of all functions, for suggestions.
pub(super) type KnownFunctions = fn() -> Vec<&'static str>;

/// Clauses of other dialects, of which the parser only says that a name is not expected.
const FOREIGN: [&str; 10] =
    ["FOREACH", "LOAD CSV", "USE", "SHOW", "DROP", "START", "INSERT", "FILTER", "LET", "PROFILE"];

/// Words of SQL and of other languages, and what Cypher has instead.
const INSTEAD: [(&str, &str); 16] = [
    ("SELECT", "there is no SELECT: write MATCH (f:File) RETURN f.path"),
    ("FROM", "there is no FROM: write MATCH (f:File) RETURN f.path"),
    ("LIKE", "there is no LIKE: use CONTAINS, STARTS WITH, ENDS WITH or =~ with a regular expression"),
    ("ILIKE", "there is no ILIKE: use =~ '(?i)...' with a regular expression"),
    ("GROUP", "there is no GROUP BY: the columns beside an aggregate make the groups"),
    ("HAVING", "there is no HAVING: write WITH ... WHERE ..."),
    ("BETWEEN", "there is no BETWEEN: write 1 <= x <= 9"),
    ("JOIN", "there is no JOIN: write a pattern, MATCH (a)-[:IMPORTS]->(b)"),
    ("NULLS", "there is no NULLS FIRST or LAST: order by `x IS NULL` first"),
    ("STARTSWITH", "did you mean STARTS WITH?"),
    ("ENDSWITH", "did you mean ENDS WITH?"),
    ("ORDERBY", "did you mean ORDER BY?"),
    ("&", "did you mean AND?"),
    (";", "ask one query at a time"),
    ("#", "a comment begins with //"),
    ("->", "a relationship is written --> or -[:TYPE]->"),
];

/// Words that begin a clause or a part of one: what can be meant wherever a name is not expected.
const CLAUSES: [&str; 11] =
    ["MATCH", "OPTIONAL", "WHERE", "WITH", "UNWIND", "RETURN", "ORDER", "SKIP", "LIMIT", "UNION", "DISTINCT"];

/// A shorter name is like too many words.
const SHORTEST: usize = 3;

/// How many of the things that are allowed at a place are named. More would not be read.
const MOST_EXPECTED: usize = 5;

/// How many letters of a word are quoted; a text without its closing quote extends to the end of the query.
const MOST_QUOTED: usize = 40;

/// What is allowed where a value is. They are one thing, "an expression".
const STARTS: [&str; 38] = [
    "(",
    "+",
    "-",
    "ALL",
    "ALLSHORTESTPATHS",
    "ANY",
    "CASE",
    "COLLECT",
    "COUNT",
    "EXISTS",
    "FALSE",
    "INF",
    "INFINITY",
    "MATCH",
    "NAN",
    "NONE",
    "NOT",
    "NULL",
    "PATH",
    "REDUCE",
    "RETURN",
    "SHORTESTPATH",
    "SINGLE",
    "TRIM",
    "TRUE",
    "[",
    "escaped identifier",
    "float",
    "hex integer",
    "identifier",
    "integer",
    "octal integer",
    "parameter",
    "pattern comprehension",
    "pattern expression",
    "qualified function name",
    "string",
    "{",
];

/// What can follow a value and continue it: "an operator".
const OPERATORS: [&str; 27] = [
    "%",
    "(",
    "*",
    "+",
    "-",
    ".",
    "/",
    "<",
    "<=",
    "<>",
    "=",
    "=~",
    ">",
    ">=",
    "AND",
    "CONTAINS",
    "ENDS",
    "IN",
    "IS",
    "OR",
    "STARTS",
    "XOR",
    "[",
    "^",
    "label predicate",
    "{",
    "||",
];

/// What can follow a node: the relationship, and tokens that are hardly ever meant.
const BEHIND_A_NODE: [&str; 8] = ["(", "*", "+", "-", "<", "<-", "?", "{"];

/// Clauses that are not supported: they are not suggested.
const WRITING: [&str; 8] = ["CALL", "CREATE", "DELETE", "DETACH", "MERGE", "REMOVE", "SET", "set ALL"];

/// The refusal of a text that is not a query.
pub(super) fn refused(
    source: &str,
    tokens: &[Token],
    errors: &ParseErrors,
    functions: KnownFunctions,
) -> Box<CypherError> {
    let errors: Vec<&Diagnostic> = errors.diagnostics().iter().filter(|error| error.is_error()).collect();
    let Some(first) = errors.first() else {
        return CypherError::new("UnexpectedSyntax", Span::empty(source.len()), "the query cannot be parsed");
    };
    // At one place, a bracket that does not fit says more than a word that was not expected.
    let first = errors
        .iter()
        .take_while(|error| error.primary_span.start == first.primary_span.start)
        .find(|error| error.code == DiagnosticCode::MismatchedDelimiter)
        .unwrap_or(first);
    let span = first.primary_span;
    let word = span.text(source).unwrap_or_default();
    let syntax = |message: String| CypherError::new("UnexpectedSyntax", span, message);
    match first.code {
        DiagnosticCode::InvalidNumber => {
            CypherError::new("InvalidNumberLiteral", span, format!("{} is not a number", quoted(word)))
        }
        DiagnosticCode::InvalidEscape => {
            let message = format!("{} has an escape that is not known", quoted(word));
            CypherError::new("InvalidUnicodeLiteral", span, message)
                .help(r"write \\ for a backslash; the escapes are \' \b \f \n \r \t \uXXXX and \UXXXXXXXX")
        }
        DiagnosticCode::UnterminatedString => {
            let quote = if word.starts_with('"') { '"' } else { '\'' };
            syntax(format!("the string {} is not closed", quoted(word)))
                .help(format!("add {quote} at its end; inside a string it is written \\{quote}"))
        }
        DiagnosticCode::UnterminatedIdentifier => {
            syntax("the name that begins with a backtick is not closed".to_owned())
                .help("add a backtick at its end")
        }
        DiagnosticCode::UnterminatedComment => {
            syntax("the comment is not closed".to_owned()).help("add */ at its end")
        }
        DiagnosticCode::UnclosedDelimiter => unclosed(source, span, word, &errors),
        DiagnosticCode::MismatchedDelimiter => match first.labels.first() {
            Some(opened) => {
                let open = opened.span.text(source).unwrap_or_default();
                let message =
                    format!("`{word}` does not close `{open}` of {}", spot(source, opened.span.start));
                syntax(message).help(format!("close it with `{}` before", closing(open)))
            }
            None => syntax(format!("`{word}` closes nothing")).help("remove it, or open it before"),
        },
        _ => unexpected(source, tokens, first, functions),
    }
}

/// A bracket that is still open where the query ends.
fn unclosed(source: &str, span: Span, open: &str, errors: &[&Diagnostic]) -> Box<CypherError> {
    let close = closing(open);
    // Where the parser would have taken the other bracket.
    let wanted = errors
        .iter()
        .find(|error| error.primary_span.start > span.start && expected(&error.message).contains(&close));
    let end = source.trim_end().len();
    let at = wanted.map_or(end, |error| error.primary_span.start.min(end));
    let before = wanted.and_then(|error| error.primary_span.text(source)).filter(|word| !word.is_empty());
    let help = match before {
        Some(word) => format!("add `{close}` before {} at {}", quoted(word), spot(source, at)),
        None => format!("add `{close}` at {}", spot(source, at)),
    };
    CypherError::new("UnexpectedSyntax", span, format!("`{open}` is not closed")).help(help)
}

fn closing(open: &str) -> &'static str {
    match open {
        "[" => "]",
        "{" => "}",
        _ => ")",
    }
}

/// A word that is not allowed where it is, or the end of the text.
fn unexpected(
    source: &str,
    tokens: &[Token],
    error: &Diagnostic,
    functions: KnownFunctions,
) -> Box<CypherError> {
    let span = error.primary_span;
    let at = tokens.iter().position(|token| token.span.end > span.start).unwrap_or(tokens.len());
    // The token some words before.
    let back = |count: usize| at.checked_sub(count).and_then(|at| tokens.get(at));
    let Some(token) = tokens.get(at) else {
        let message = with_expected("the query ends too early", &expected(&error.message));
        return CypherError::new("UnexpectedSyntax", Span::empty(source.trim_end().len()), message)
            .help("go on with the query, or remove what begins and does not end");
    };
    let span = if span.is_empty() { token.span } else { span };
    let word = span.text(source).unwrap_or_default();
    let upper = word.to_uppercase();
    let kind_before = |count: usize| back(count).map(|token| token.kind);
    if word == "{" && kind_before(1) == Some(TokenKind::Keyword(Keyword::Call)) {
        return CypherError::unsupported(span, "CALL");
    }
    if let Some(clause) = FOREIGN.iter().find(|clause| clause.split(' ').next() == Some(upper.as_str())) {
        return CypherError::unsupported(span, clause);
    }
    let refused = |span: Span, message: &str, help: &str| {
        CypherError::new("UnexpectedSyntax", span, message.to_owned()).help(help.to_owned())
    };
    if let Some(before) = back(1) {
        if token.kind == TokenKind::Equal && before.kind == TokenKind::Equal && before.span.end == span.start
        {
            return refused(before.span, "unexpected `==`", "use `=` to compare");
        }
        if let (TokenKind::Star, TokenKind::LeftParen, Some(name)) = (token.kind, before.kind, back(2))
            && name.kind == TokenKind::Identifier
        {
            return starred(source, name.span, span, functions);
        }
        // A word that was taken for a name because something is missing before it.
        let keyword = matches!(before.kind, TokenKind::Keyword(Keyword::Return | Keyword::Match));
        if keyword && kind_before(2).is_some_and(wants_value) {
            let name = before.text(source).unwrap_or_default();
            let message = format!("an expression is missing before `{name}`");
            return refused(before.span, &message, "add the missing condition or value");
        }
    }
    if let (TokenKind::Comma, Some(TokenKind::Keyword(Keyword::In))) = (token.kind, kind_before(3))
        && kind_before(2) == Some(TokenKind::LeftParen)
    {
        return refused(span, "unexpected `,`", "a list is written in square brackets: IN [1, 2]");
    }
    let words = expected(&error.message);
    if words == ["="] && kind_before(2) == Some(TokenKind::Keyword(Keyword::Match)) {
        let name = back(1).and_then(|token| token.text(source)).unwrap_or_default();
        let message = format!("unexpected {}", quoted(word));
        return refused(span, &message, &format!("a node is written in brackets: MATCH ({name})"));
    }
    let limited = tokens.iter().take(at).any(|token| {
        matches!(token.kind, TokenKind::Keyword(Keyword::Limit | Keyword::Skip | Keyword::Offset))
    });
    if token.kind == TokenKind::Keyword(Keyword::Order) && limited {
        return refused(span, "unexpected `ORDER`", "write ORDER BY before SKIP and LIMIT");
    }
    let message = with_expected(&format!("unexpected {}", quoted(word)), &words);
    let refusal = CypherError::new("UnexpectedSyntax", span, message);
    if let Some((_, help)) = INSTEAD.iter().find(|(known, _)| *known == upper) {
        return refusal.help(*help);
    }
    if word.starts_with(['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}']) {
        return refusal.help("use ' or \" around a string");
    }
    let keywords =
        words.iter().copied().filter(|word| word.chars().all(|letter| letter.is_ascii_uppercase()));
    let long = word.chars().count() >= SHORTEST && token.kind == TokenKind::Identifier;
    match nearest(word, keywords.chain(CLAUSES)).filter(|_| long) {
        Some("ORDER") => refusal.help("did you mean ORDER BY?"),
        Some(near) => refusal.help(format!("did you mean {near}?")),
        None => refusal.help("docs/cypher.md shows how each clause is written"),
    }
}

/// A star as the argument of something else than `count`.
fn starred(source: &str, name: Span, star: Span, functions: KnownFunctions) -> Box<CypherError> {
    let word = name.text(source).unwrap_or_default();
    if functions().iter().any(|known| known.eq_ignore_ascii_case(word)) {
        return CypherError::new("UnexpectedSyntax", star, format!("`{word}` does not take `*`"))
            .help("only count(*) does");
    }
    let refusal = CypherError::new("UnknownFunction", name, format!("there is no function `{word}`"));
    match nearest(word, functions()) {
        Some(near) => refusal.help(format!("did you mean `{near}`?")),
        None => refusal.help("docs/cypher.md lists the functions"),
    }
}

/// Whether a value has to follow a word.
fn wants_value(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Equal
            | TokenKind::NotEqual
            | TokenKind::Less
            | TokenKind::LessEqual
            | TokenKind::Greater
            | TokenKind::GreaterEqual
            | TokenKind::RegexMatch
            | TokenKind::Plus
            | TokenKind::Slash
            | TokenKind::Percent
            | TokenKind::Keyword(
                Keyword::Where
                    | Keyword::And
                    | Keyword::Or
                    | Keyword::Xor
                    | Keyword::Not
                    | Keyword::In
                    | Keyword::Contains
            )
    )
}

/// The things in backticks behind "expected".
fn expected(message: &str) -> Vec<&str> {
    let list = message.split_once("; expected ").map_or("", |(_, list)| list);
    list.split('`').skip(1).step_by(2).collect()
}

/// A message with the few things that are allowed there, as a person would call them.
fn with_expected(message: &str, words: &[&str]) -> String {
    let mut left: Vec<&str> = words.iter().copied().filter(|word| !WRITING.contains(word)).collect();
    let mut things: Vec<String> = Vec::new();
    let has = |word: &str| words.contains(&word);
    if has("string") && has("identifier") {
        things.push("an expression".to_owned());
        left.retain(|word| !STARTS.contains(word));
    } else if has("=~") {
        things.push("an operator".to_owned());
        left.retain(|word| !OPERATORS.contains(word));
        if !["AS", ")", "]", "}", "THEN", "END"].into_iter().any(has) {
            things.push("the next clause".to_owned());
        }
    } else if has("<-") {
        things.push("a relationship such as `-[:TYPE]->`".to_owned());
        things.push("the next clause".to_owned());
        left.retain(|word| !BEHIND_A_NODE.contains(word));
    } else if has("identifier") {
        things.push("a name".to_owned());
        left.retain(|word| !["identifier", "escaped identifier", "MATCH", "PATH", "RETURN"].contains(word));
    }
    things.extend(left.into_iter().map(|word| match word {
        "ORDER" => "ORDER BY".to_owned(),
        "OPTIONAL" => "OPTIONAL MATCH".to_owned(),
        "parameter" => "a parameter".to_owned(),
        "integer" => "an integer".to_owned(),
        "string" => "a string".to_owned(),
        "label predicate" => "a label".to_owned(),
        word if word.chars().all(|letter| letter.is_ascii_uppercase()) => word.to_owned(),
        word => format!("`{word}`"),
    }));
    things.truncate(MOST_EXPECTED);
    match things.as_slice() {
        [] => message.to_owned(),
        [only] => format!("{message}; expected {only}"),
        [others @ .., last] => format!("{message}; expected {} or {last}", others.join(", ")),
    }
}

/// A word of the query, cut where it would not be read.
fn quoted(word: &str) -> String {
    let word = truncate(word, MOST_QUOTED);
    let plain = |letter: char| {
        if letter.is_control() { letter.escape_unicode().to_string() } else { letter.to_string() }
    };
    format!("`{}`", word.chars().map(plain).collect::<String>())
}
