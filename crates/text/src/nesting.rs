//! How deeply source in the syntax of ECMAScript nests, found without parsing it.
//!
//! Parsers recurse on what is nested, so hostile nesting would exhaust the stack and abort the process. A cheap scan of the
//! bytes finds it first. The scan is not a lexer: it may misjudge a regular expression in rare code, which costs it a few
//! counts, and source that is made to fool it passes. Who parses in a process that must live asks [`max_depth`] as well,
//! which cannot be fooled.

/// How deeply source may nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestingCaps {
    /// How deep brackets, templates and groups of a regular expression may nest.
    pub nesting: usize,
    /// How many tokens may follow each other with no comma, semicolon or new statement between them. Chains
    /// (`a.b.c`, `!!!a`, `1 + 1 + 1`) nest one level with each token or two.
    pub chain: u32,
    /// How many `<` may be open: type arguments nest through commas.
    pub angles: u32,
}

/// What nests more deeply than it may, and the byte at which it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeepNesting {
    /// Brackets are nested too deeply.
    Nesting(usize),
    /// An expression goes on for too many tokens.
    Chain(usize),
}

/// Returns the first position at which source nests more deeply than the caps allow.
pub fn find_deep_nesting(source: &str, caps: &NestingCaps) -> Option<DeepNesting> {
    Scanner::new(source, caps).scan()
}

/// Returns a bound for the depth of the tree of a source, whatever its quotes and comments hide: how many tokens it has that
/// can open a level. Real code nests far less.
pub fn max_depth(source: &str) -> usize {
    let mut depth = 0;
    let mut word: Option<usize> = None;
    for (at, byte) in source.bytes().chain([b' ']).enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\' | 0x80..) {
            word.get_or_insert(at);
            continue;
        }
        let ended = word.take().and_then(|start| source.as_bytes().get(start..at));
        depth += usize::from(ended.is_some_and(|word| is_one_of(word, OPENING)));
        let opens = matches!(
            byte,
            b'(' | b'['
                | b'{'
                | b'<'
                | b'>'
                | b'.'
                | b':'
                | b'='
                | b'!'
                | b'~'
                | b'+'
                | b'-'
                | b'*'
                | b'/'
                | b'%'
                | b'&'
                | b'|'
                | b'^'
                | b'?'
                | b'@'
                | b'`'
        );
        depth += usize::from(opens);
    }
    depth
}

/// Words behind which something is nested that begins with no sign of its own.
const OPENING: &str = "abstract as asserts async await case catch class const default delete do else enum export extends \
    finally for function get if implements import in infer instanceof interface is keyof let namespace new of out \
    readonly return satisfies set static switch throw try type typeof unique using var void while with yield";

/// What stood before the current token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An operator, an opening bracket, a keyword, or nothing: an operand must follow.
    Operator,
    /// A word such as `of` or `keyof`, which may be an operator and may be a name.
    Ambiguous,
    /// The dot before a property name.
    Dot,
    /// The end of an operand.
    Operand,
    /// `}`, which ends a block or an operand.
    Brace,
}

struct Level {
    /// Tokens since the last boundary on this level.
    chain: u32,
    /// `<` without their `>` where this level was opened.
    angles: u32,
    /// The brackets of `if (…)`, after which a statement follows and not an operator.
    control: bool,
    /// `${` in a template.
    template: bool,
}

struct Scanner<'s> {
    bytes: &'s [u8],
    at: usize,
    levels: Vec<Level>,
    chain: u32,
    /// The chains that the open levels stand in: what is deep inside is as deep as all of them.
    around: u32,
    angles: u32,
    before: Before,
    /// A line ended since the last token.
    newline: bool,
    /// The last word was `if`, `for`, `while`…
    control: bool,
    caps: &'s NestingCaps,
}

impl<'s> Scanner<'s> {
    fn new(source: &'s str, caps: &'s NestingCaps) -> Self {
        Self {
            bytes: source.as_bytes(),
            at: 0,
            levels: Vec::new(),
            chain: 0,
            around: 0,
            angles: 0,
            before: Before::Operator,
            newline: false,
            control: false,
            caps,
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn scan(mut self) -> Option<DeepNesting> {
        if self.bytes.starts_with(b"#!") {
            self.skip_line();
        }
        while self.at < self.bytes.len() {
            if let Some(runaway) = self.token() {
                return Some(runaway);
            }
            if self.chain > self.caps.chain || self.chain + self.around > 2 * self.caps.chain {
                return Some(DeepNesting::Chain(self.at));
            }
            if self.angles > self.caps.angles {
                return Some(DeepNesting::Nesting(self.at));
            }
        }
        None
    }

    fn token(&mut self) -> Option<DeepNesting> {
        let byte = self.peek(0);
        match byte {
            b'\n' | b'\r' => {
                self.newline = true;
                self.at += 1;
                return None;
            }
            b' ' | b'\t' | 0x0b | 0x0c => {
                self.at += 1;
                return None;
            }
            0x80.. if self.blank().is_some() => {
                self.at += self.blank().unwrap_or(1);
                return None;
            }
            b'/' if self.peek(1) == b'/' => {
                self.skip_line();
                return None;
            }
            b'/' if self.peek(1) == b'*' => {
                self.skip_block_comment();
                return None;
            }
            _ => {}
        }
        let runaway = match byte {
            b'(' | b'[' | b'{' => self.open(byte == b'(' && self.control, false),
            b')' | b']' | b'}' => self.close(byte),
            b',' => {
                self.chain = 0;
                self.operator()
            }
            b';' => {
                self.boundary();
                self.operator()
            }
            b'<' => {
                self.angles += 1;
                self.operator()
            }
            b'>' => {
                let is_arrow = self.at > 0 && self.bytes.get(self.at - 1) == Some(&b'=');
                self.angles = self.angles.saturating_sub(u32::from(!is_arrow));
                self.operator()
            }
            b'"' | b'\'' => {
                self.statement_boundary();
                self.skip_string(byte);
                self.operand()
            }
            b'`' => {
                self.at += 1;
                self.template_text()
            }
            b'/' => self.slash(),
            b'.' if !self.peek(1).is_ascii_digit() => {
                self.at += 1;
                self.chain += 1;
                self.before = Before::Dot;
                None
            }
            b'0'..=b'9' | b'.' => {
                self.statement_boundary();
                self.at += 1;
                while matches!(self.peek(0), b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
                    || (self.peek(0) == b'.' && self.peek(1).is_ascii_digit())
                {
                    self.at += 1;
                }
                self.operand()
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'\\' | 0x80.. => {
                self.word();
                self.newline = false;
                return None;
            }
            _ => self.operator(),
        };
        self.newline = false;
        self.control = false;
        runaway
    }

    fn operator(&mut self) -> Option<DeepNesting> {
        self.at += 1;
        self.chain += 1;
        self.before = Before::Operator;
        None
    }

    fn operand(&mut self) -> Option<DeepNesting> {
        self.chain += 1;
        self.before = Before::Operand;
        None
    }

    /// A new statement begins.
    fn boundary(&mut self) {
        self.chain = 0;
        self.angles = self.levels.last().map_or(0, |level| level.angles);
    }

    /// Two operands on two lines: a semicolon is inserted between them.
    fn statement_boundary(&mut self) {
        if self.newline && matches!(self.before, Before::Operand | Before::Brace) {
            self.boundary();
        }
    }

    /// The length of a blank that is not ASCII, if one stands here.
    fn blank(&self) -> Option<usize> {
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (0xc2, 0xa0, _) => Some(2),
            (0xe1, 0x9a, 0x80)
            | (0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf)
            | (0xe2, 0x81, 0x9f)
            | (0xe3, 0x80, 0x80)
            | (0xef, 0xbb, 0xbf) => Some(3),
            _ => None,
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'\\' | 0x80..)
            && self.blank().is_none()
        {
            self.at += 1;
        }
        let word = self.bytes.get(start..self.at).unwrap_or_default();
        if self.before == Before::Dot {
            self.before = Before::Operand;
            self.control = false;
            self.chain += 1;
            return;
        }
        if !is_one_of(word, CONTINUING) {
            self.statement_boundary();
            if matches!(word, b"case" | b"default")
                || (self.before == Before::Brace && is_one_of(word, STARTING))
            {
                self.boundary();
            }
        }
        self.chain += 1;
        self.control = matches!(word, b"if" | b"for" | b"while" | b"with");
        self.before = if is_one_of(word, PREFIXES) {
            Before::Operator
        } else if is_one_of(word, DOUBTFUL) {
            Before::Ambiguous
        } else {
            Before::Operand
        };
    }

    fn open(&mut self, control: bool, template: bool) -> Option<DeepNesting> {
        if self.levels.len() >= self.caps.nesting {
            return Some(DeepNesting::Nesting(self.at));
        }
        self.levels.push(Level { chain: self.chain + 1, angles: self.angles, control, template });
        self.around += self.chain + 1;
        self.chain = 0;
        self.at += if template { 2 } else { 1 };
        self.before = Before::Operator;
        None
    }

    fn close(&mut self, byte: u8) -> Option<DeepNesting> {
        self.at += 1;
        let none = Level { chain: 0, angles: 0, control: false, template: false };
        let level = self.levels.pop().unwrap_or(none);
        self.around -= level.chain;
        (self.chain, self.angles) = (level.chain, level.angles);
        if byte == b'}' && level.template {
            return self.template_text();
        }
        self.before = match byte {
            b'}' => Before::Brace,
            b')' if level.control => Before::Operator,
            _ => Before::Operand,
        };
        None
    }

    /// From inside a template to its end or to its next `${`.
    fn template_text(&mut self) -> Option<DeepNesting> {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    return self.operand();
                }
                b'$' if self.peek(1) == b'{' => return self.open(false, true),
                _ => self.at += 1,
            }
        }
        None
    }

    /// A division or a regular expression.
    fn slash(&mut self) -> Option<DeepNesting> {
        // After a block a regular expression could follow, and after a doubtful word; neither is ever written, and
        // to take a division for one would hide what stands between two of them.
        let is_division = self.before != Before::Operator;
        if is_division {
            return self.operator();
        }
        let (mut at, mut in_class, mut groups, mut classes) = (self.at + 1, false, 0_usize, 0_usize);
        loop {
            match self.bytes.get(at).copied() {
                None | Some(b'\n' | b'\r') => return self.operator(),
                Some(b'\\') => at += 1,
                Some(b'[') => {
                    in_class = true;
                    classes += 1;
                }
                Some(b']') => {
                    in_class = false;
                    classes = classes.saturating_sub(1);
                }
                Some(b'(') if !in_class => groups += 1,
                Some(b')') if !in_class => groups = groups.saturating_sub(1),
                Some(b'/') if !in_class => break,
                Some(_) => {}
            }
            if groups.max(classes) > self.caps.nesting {
                return Some(DeepNesting::Nesting(at));
            }
            at += 1;
        }
        self.at = at + 1;
        self.operand()
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && !matches!(self.peek(0), b'\n' | b'\r') {
            let is_separator =
                matches!((self.peek(0), self.peek(1), self.peek(2)), (0xe2, 0x80, 0xa8 | 0xa9));
            if is_separator {
                return;
            }
            self.at += 1;
        }
    }

    fn skip_block_comment(&mut self) {
        self.at += 2;
        while self.at < self.bytes.len() && !(self.peek(0) == b'*' && self.peek(1) == b'/') {
            self.newline |= self.peek(0) == b'\n';
            self.at += 1;
        }
        self.at += 2;
    }

    fn skip_string(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.at += 2,
                b'\n' | b'\r' => return,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return;
                    }
                }
            }
        }
    }
}

/// Words that go on with what stands before them, also on a new line.
const CONTINUING: &str = "else catch finally in of instanceof as satisfies extends";

/// Reserved words after which an operand follows, so that `/` starts a regular expression.
const PREFIXES: &str = "return typeof case delete void new do yield await throw else in instanceof extends";

/// Words that are operators in some places and names in others.
const DOUBTFUL: &str = "of as satisfies keyof infer unique readonly is asserts abstract";

/// Words that begin a statement wherever they follow a closing brace.
const STARTING: &str = "function class var let const export import return throw try switch for if break continue \
    async interface type enum declare abstract namespace static get set public private protected readonly";

fn is_one_of(word: &[u8], words: &str) -> bool {
    words.split(' ').any(|candidate| candidate.as_bytes() == word)
}
