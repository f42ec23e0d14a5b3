//! Random queries over the supported part of Cypher.

/// A small generator of numbers, the same on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if self.0 == 0 {
            self.0 = 1;
        }
        usize::try_from((self.0 >> 11) % u64::try_from(bound).unwrap()).unwrap()
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

pub struct Query {
    pub text: String,
    /// Whether the order of the rows is given by the query.
    pub ordered: bool,
}

/// The names that an expression can use.
#[derive(Clone, Default)]
struct Names {
    nodes: Vec<String>,
    relationships: Vec<String>,
    numbers: Vec<String>,
    lists: Vec<String>,
    next: usize,
    /// Whether a pattern may be a condition: only in WHERE.
    patterns: bool,
}

impl Names {
    fn fresh(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }
}

pub fn query(random: &mut Random) -> Query {
    let mut names = Names::default();
    let mut clauses = Vec::new();
    for _ in 0..if random.chance(3) { 2 } else { 1 } {
        clauses.push(matching(random, &mut names, false));
    }
    if random.chance(3) {
        clauses.push(matching(random, &mut names, true));
    }
    if random.chance(4) {
        let name = names.fresh("u");
        clauses.push(format!("UNWIND {} AS {name}", list(random, &names, 1)));
        names.numbers.push(name);
    }
    if random.chance(3) {
        clauses.push(with(random, &mut names));
        if random.chance(3) {
            clauses.push(matching(random, &mut names, false));
        }
    }
    let (done, ordered) = returned(random, &names);
    clauses.push(done);
    Query { text: clauses.join(" "), ordered }
}

fn matching(random: &mut Random, names: &mut Names, optional: bool) -> String {
    let known = names.clone();
    let mut parts = Vec::new();
    // One part in OPTIONAL MATCH: of two, the oracle keeps the one that matches when the other does not.
    for _ in 0..if random.chance(4) && !optional { 2 } else { 1 } {
        parts.push(path(random, names, &known));
    }
    let word = if optional { "OPTIONAL MATCH" } else { "MATCH" };
    let filter =
        if random.chance(6) { format!(" WHERE {}", filter_of(random, names, 2)) } else { String::new() };
    format!("{word} {}{filter}", parts.join(", "))
}

fn node(random: &mut Random, names: &mut Names, known: &Names) -> String {
    if random.chance(4) && !known.nodes.is_empty() {
        return format!("({})", random.pick(&known.nodes));
    }
    let name = if random.chance(4) {
        String::new()
    } else {
        let name = names.fresh("n");
        names.nodes.push(name.clone());
        name
    };
    let labels = random.pick(&["", "", "", "", "", ":A", ":B", ":A:B"]);
    let props = if random.chance(8) { random.pick(&[" {v: 1}", " {name: 'a'}"]) } else { "" };
    format!("({name}{labels}{props})")
}

fn path(random: &mut Random, names: &mut Names, known: &Names) -> String {
    let mut text = node(random, names, known);
    // The oracle takes `MATCH (n)` for no condition where `n` is known, also when it is null; a null matches nothing.
    let alone = known.nodes.iter().any(|name| text == format!("({name})"));
    for _ in 0..random.below(3).max(usize::from(alone)) {
        let kind = random.pick(&["", "", ":X", ":Y", ":X|Y"]);
        let middle = if random.chance(4) {
            format!("[{kind}{}]", random.pick(&["*1..2", "*0..1", "*2", "*..2"]))
        } else if random.chance(2) {
            let name = names.fresh("r");
            names.relationships.push(name.clone());
            let props = random.pick(&["", "", "", "", " {w: 1}"]);
            format!("[{name}{kind}{props}]")
        } else {
            format!("[{kind}]")
        };
        let next = node(random, names, known);
        text = match random.below(3) {
            0 => format!("{text}-{middle}->{next}"),
            1 => format!("{text}<-{middle}-{next}"),
            _ => format!("{text}-{middle}-{next}"),
        };
    }
    text
}

fn with(random: &mut Random, names: &mut Names) -> String {
    let mut items = Vec::new();
    let mut after = Names { next: names.next, ..Names::default() };
    for name in names.nodes.iter().chain(&names.relationships) {
        if random.chance(2) {
            items.push(name.clone());
            let kept = if names.nodes.contains(name) { &mut after.nodes } else { &mut after.relationships };
            kept.push(name.clone());
        }
    }
    let name = after.fresh("x");
    let grouped = random.chance(2);
    let value = if grouped { aggregate(random, names) } else { number(random, names, 1) };
    items.push(format!("{value} AS {name}"));
    after.numbers.push(name.clone());
    let distinct = if !grouped && random.chance(3) { "DISTINCT " } else { "" };
    *names = after;
    let filter =
        if random.chance(4) { format!(" WHERE {}", filter_of(random, names, 1)) } else { String::new() };
    format!("WITH {distinct}{}{filter}", items.join(", "))
}

fn returned(random: &mut Random, names: &Names) -> (String, bool) {
    let grouped = random.chance(3);
    let mut items = Vec::new();
    for at in 0..1 + random.below(3) {
        items.push(format!("{} AS c{at}", any(random, names)));
    }
    if grouped {
        items.push(format!("{} AS agg", aggregate(random, names)));
    }
    let distinct = if !grouped && random.chance(3) { "DISTINCT " } else { "" };
    let mut text = format!("RETURN {distinct}{}", items.join(", "));
    let ordered = random.chance(3);
    if ordered {
        // By all columns, so that there is one order.
        let keys = items.iter().map(|item| {
            let name = item.rsplit(' ').next().unwrap();
            format!("{name}{}", random.pick(&["", " DESC"]))
        });
        text = format!("{text} ORDER BY {}", keys.collect::<Vec<_>>().join(", "));
        if random.chance(2) {
            text = format!("{text} SKIP {} LIMIT {}", random.below(2), 1 + random.below(4));
        }
    }
    (text, ordered)
}

fn aggregate(random: &mut Random, names: &Names) -> String {
    let value = number(random, names, 1);
    match random.below(8) {
        0 => "count(*)".to_owned(),
        1 => format!("count({value})"),
        2 => format!("count(DISTINCT {value})"),
        3 => format!("sum({value})"),
        4 => format!("min({value})"),
        5 => format!("max({value})"),
        6 => format!("size(collect(DISTINCT {value}))"),
        _ => format!("avg({value})"),
    }
}

/// Anything that has an order and a value without an id.
fn any(random: &mut Random, names: &Names) -> String {
    match random.below(5) {
        0 => text(random, names),
        1 => condition(random, names, 1),
        2 => list(random, names, 1),
        3 => property(random, names),
        _ => number(random, names, 2),
    }
}

/// A property that may be of any type, or missing.
fn property(random: &mut Random, names: &Names) -> String {
    match names.nodes.is_empty() {
        false => format!("{}.{}", random.pick(&names.nodes), random.pick(&["v", "name", "i", "missing"])),
        true => "null".to_owned(),
    }
}

/// A property that is a number or missing.
fn numeric(random: &mut Random, names: &Names) -> String {
    let mut choices: Vec<String> = names.nodes.iter().map(|name| format!("{name}.i")).collect();
    choices.extend(names.relationships.iter().flat_map(|name| [format!("{name}.w"), format!("{name}.e")]));
    choices.extend(names.numbers.iter().cloned());
    // No floats: 1 and 1.0 are one value for us, as they are equal, and make two groups for the oracle.
    choices.extend(["1", "2", "0", "-3", "null"].map(str::to_owned));
    random.pick(&choices)
}

fn number(random: &mut Random, names: &Names, depth: usize) -> String {
    if depth == 0 || random.chance(3) {
        return numeric(random, names);
    }
    let next = depth - 1;
    match random.below(9) {
        0 => format!("({} + {})", number(random, names, next), number(random, names, next)),
        1 => format!("({} - {})", number(random, names, next), number(random, names, next)),
        2 => format!("({} * {})", number(random, names, next), number(random, names, next)),
        3 => format!("size({})", list(random, names, next)),
        4 => format!("coalesce({}, {})", number(random, names, next), number(random, names, next)),
        5 => format!(
            "CASE WHEN {} THEN {} ELSE {} END",
            condition(random, names, next),
            number(random, names, next),
            number(random, names, next)
        ),
        6 => format!("abs({})", number(random, names, next)),
        7 => format!("size({})", text(random, names)),
        _ => format!("head({})", list(random, names, next)),
    }
}

fn text(random: &mut Random, names: &Names) -> String {
    match random.below(5) {
        0 if !names.nodes.is_empty() => format!("toUpper({}.name)", random.pick(&names.nodes)),
        1 if !names.relationships.is_empty() => format!("type({})", random.pick(&names.relationships)),
        // Of whole numbers: the oracle writes 5.0 as 5.
        2 => format!("toString(size({}))", list(random, names, 1)),
        3 if !names.nodes.is_empty() => {
            format!("substring({}.name + 'xyz', 1, 2)", random.pick(&names.nodes))
        }
        _ => random.pick(&["'a'", "''", "'ab'", "null"]).to_owned(),
    }
}

/// A list of numbers and nulls.
fn list(random: &mut Random, names: &Names, depth: usize) -> String {
    if !names.lists.is_empty() && random.chance(3) {
        return random.pick(&names.lists);
    }
    if depth == 0 || random.chance(2) {
        return format!("[{}, {}]", numeric(random, names), numeric(random, names));
    }
    let mut inner = names.clone();
    inner.numbers.push("q".to_owned());
    let next = depth - 1;
    match random.below(7) {
        // Its size: the items have no order.
        6 if !names.nodes.is_empty() => {
            let name = random.pick(&names.nodes);
            format!(
                "[size([({name})-{}->(z) WHERE z.i > 0 | z.i])]",
                random.pick(&["[:X]", "[:Y]", "[*1..2]", "[]"])
            )
        }
        0 => format!(
            "[q IN {} WHERE {} | {}]",
            list(random, names, next),
            condition(random, &inner, next),
            number(random, &inner, next)
        ),
        1 => format!("({} + {})", list(random, names, next), list(random, names, next)),
        2 => format!("{}[0..{}]", list(random, names, next), random.below(3)),
        3 => format!("tail({})", list(random, names, next)),
        4 => format!("reverse({})", list(random, names, next)),
        _ => format!("range(0, {})", random.below(4)),
    }
}

fn condition(random: &mut Random, names: &Names, depth: usize) -> String {
    let next = depth.saturating_sub(1);
    if depth > 0 && random.chance(3) {
        let (one, other) = (condition(random, names, next), condition(random, names, next));
        return match random.below(4) {
            0 => format!("({one} AND {other})"),
            1 => format!("({one} OR {other})"),
            2 => format!("({one} XOR {other})"),
            _ => format!("(NOT {one})"),
        };
    }
    let mut inner = names.clone();
    inner.numbers.push("q".to_owned());
    match random.below(14) {
        12 if names.patterns && !names.nodes.is_empty() => around(random, names),
        13 if names.patterns && !names.nodes.is_empty() => {
            format!("EXISTS {{ MATCH {} WHERE {} }}", around(random, names), condition(random, names, next))
        }
        0 => format!(
            "{} {} {}",
            number(random, names, next),
            random.pick(&["<", "<=", ">", ">="]),
            number(random, names, next)
        ),
        1 => format!(
            "{} {} {}",
            number(random, names, next),
            random.pick(&["=", "<>"]),
            number(random, names, next)
        ),
        2 => format!(
            "{} {} {}",
            property(random, names),
            random.pick(&["=", "<>", "<", ">="]),
            property(random, names)
        ),
        3 => format!("{} IS {}NULL", property(random, names), random.pick(&["", "NOT "])),
        4 => format!("{} IN {}", number(random, names, next), list(random, names, next)),
        5 => format!(
            "{} {} {}",
            text(random, names),
            random.pick(&["STARTS WITH", "ENDS WITH", "CONTAINS"]),
            text(random, names)
        ),
        6 if !names.nodes.is_empty() => {
            format!("{}:{}", random.pick(&names.nodes), random.pick(&["A", "B", "A:B"]))
        }
        7 => format!(
            "{}(q IN {} WHERE {})",
            random.pick(&["any", "all", "none", "single"]),
            list(random, names, next),
            condition(random, &inner, 0)
        ),
        8 if names.nodes.len() > 1 => format!(
            "{} {} {}",
            random.pick(&names.nodes),
            random.pick(&["=", "<>"]),
            random.pick(&names.nodes)
        ),
        9 => format!("{} < {} <= {}", numeric(random, names), numeric(random, names), numeric(random, names)),
        10 => random.pick(&["true", "false", "null"]).to_owned(),
        _ => format!("{} = {}", list(random, names, next), list(random, names, next)),
    }
}

/// A pattern around a known node, with no new names.
fn around(random: &mut Random, names: &Names) -> String {
    let name = random.pick(&names.nodes);
    let middle = random.pick(&["[:X]", "[:Y]", "[:X|Y]", "[*1..2]", "[:X*]", "[]"]);
    let other =
        if random.chance(3) { random.pick(&names.nodes) } else { random.pick(&["", ":A", ":B"]).to_owned() };
    match random.below(3) {
        0 => format!("({name})-{middle}->({other})"),
        1 => format!("({name})<-{middle}-({other})"),
        _ => format!("({name})-{middle}-({other})"),
    }
}

fn filter_of(random: &mut Random, names: &Names, depth: usize) -> String {
    let mut names = names.clone();
    names.patterns = true;
    condition(random, &names, depth)
}
