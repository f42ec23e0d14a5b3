//! What explanations reckon: waves, repetitions, calls, tokens, gates.

use tgp_aql::{Estimate, PredictedVerdict, QueryExplanation, explain};

use crate::support::{compiled, rendered};

fn explained(text: &str) -> QueryExplanation {
    let compiled = compiled(text).unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
    explain(compiled.queries.last().unwrap())
}

fn step<'e>(explanation: &'e QueryExplanation, name: &str) -> &'e tgp_aql::PlannedStep {
    explanation.steps.iter().find(|step| step.step == name).unwrap_or_else(|| panic!("no {name}"))
}

fn estimate(least: u64, most: u64) -> Estimate {
    Estimate { least, most: Some(most) }
}

#[test]
fn waves_follow_from_needs_and_not_from_the_order_of_lines() {
    let explanation = explained(
        "query X {
          d: merge(c, a)
          c: map(i in b) { x: merge(y: i) z: merge(x) }
          b: when(a.n == 1) { return [1] } else { return [2] }
          a: tool(fs_read) { path: \"a\" }
          e: tool(fs_read, after: d) { path: \"b\" }
        }",
    );
    let stages: Vec<(&str, usize)> =
        explanation.steps.iter().map(|step| (step.step.as_str(), step.stage)).collect();
    let expected = [("d", 5), ("c", 3), ("c[].x", 3), ("c[].z", 4), ("b", 2), ("a", 1), ("e", 6)];
    assert_eq!(stages, expected);
    assert_eq!(step(&explanation, "c[].z").needs, ["c[].x"]);
    assert_eq!(step(&explanation, "e").needs, ["d"]);
}

#[test]
fn calls_count_repetitions_attempts_and_budgets() {
    let explanation = explained(
        "query Inner { a: tool(fs_read, retry: 2) { path: \"a\" } }
         query X($l: [Int]) budget(calls: 30) {
          two: map(i in [1, 2]) { q: query(Inner) s: sql(\"SELECT 1\", cache: true) }
          any: map(i in $l) { t: tool(fs_read) { path: \"a\" } }
          maybe: when(length($l) > 1) { g: graph(\"MATCH (n) RETURN n\") }
        }",
    );
    assert_eq!(step(&explanation, "two[].q").calls, estimate(2, 6));
    assert_eq!(step(&explanation, "two[].q.a").calls, estimate(2, 6));
    assert_eq!(step(&explanation, "two[].q.a").repeats, estimate(2, 2));
    assert_eq!(step(&explanation, "two[].s").calls, estimate(0, 2));
    assert_eq!(step(&explanation, "two").calls, estimate(2, 8));
    assert_eq!(step(&explanation, "any[].t").repeats, Estimate { least: 0, most: None });
    assert_eq!(step(&explanation, "maybe.g").calls, estimate(0, 1));
    assert_eq!(explanation.calls, estimate(2, 30));
    assert_eq!(explanation.tokens, estimate(0, 0));
}

#[test]
fn tokens_grow_with_the_prompt_the_type_and_the_turns() {
    let tokens = |step: &str| explained(&format!("query X($s: String) {{ {step} }}")).tokens;
    let plain = tokens("a: agent() { prompt: \"12345678\" }");
    assert_eq!(plain.least, 2 + 20);
    let longer = tokens("a: agent(system: \"1234\") { prompt: \"12345678\" }");
    assert_eq!(longer.least, plain.least + 1);
    let typed = tokens("a: agent() as { a: Int } { prompt: \"12345678\" }");
    assert!(typed.least > plain.least && typed.most > plain.most);
    let unknown = tokens("a: agent() { prompt: \"12345678{{$s}}\" }");
    assert!(unknown.least == plain.least && unknown.most > plain.most);
    let working = tokens("a: agent(tools: [fs_read]) { prompt: \"12345678\" }");
    let briefly = tokens("a: agent(tools: [fs_read], max_steps: 2) { prompt: \"12345678\" }");
    assert!(working.most > briefly.most && briefly.most > plain.most);
    let bounded =
        explained("query X budget(tokens: 100) { a: agent(tools: [fs_read]) { prompt: \"12345678\" } }");
    assert_eq!(bounded.tokens, estimate(22, 100));
}

#[test]
fn planned_calls_have_their_arguments_where_they_are_constant() {
    let explanation = explained(
        "query X($n: Int) {
          a: tool(fs.read) { path: \"a\" }
          b: exec(\"tools/math/fib.ts\") { n: 3 }
          c: exec(\"tools/math/fib.ts\") { n: $n }
          d: graph(\"MATCH (n) RETURN n\", commit: \"v1\")
          e: sql(\"SELECT :a\") { a: 1 }
          f: agent(tools: [search_grep, Read]) { prompt: \"x\" }
        }",
    );
    let calls: Vec<String> = explanation
        .steps
        .iter()
        .flat_map(|step| &step.planned)
        .map(|call| {
            let arguments = call.arguments.as_ref().map_or("?".to_owned(), ToString::to_string);
            format!("{} {arguments}{}", call.tool, if call.partial { " and more" } else { "" })
        })
        .collect();
    let expected = [
        "fs_read {\"path\":\"a\"}",
        "exec_tool {\"path\":\"tools/math/fib.ts\",\"args\":{\"n\":3}}",
        "exec_tool {\"path\":\"tools/math/fib.ts\",\"args\":{}} and more",
        "graph_query {\"query\":\"MATCH (n) RETURN n\",\"params\":{},\"commit\":\"v1\"}",
        "exec_sql {\"sql\":\"SELECT :a\",\"params\":{\"a\":1}}",
        "fs_read ? and more",
        "search_grep ? and more",
    ];
    assert_eq!(calls, expected);
}

fn foreseen(verdict: &str, rule: &str) -> PredictedVerdict {
    PredictedVerdict { gate: "policy".to_owned(), verdict: verdict.to_owned(), rule: rule.to_owned() }
}

#[test]
fn a_table_fits_where_it_can_and_has_the_columns_it_needs() {
    let mut explanation = explained(
        "query X($path: String) {
          source: tool(fs_read, retry: 2) { path: $path }
          counted: exec(\"tools/text/words.ts\") { text: source.content }
          users: graph(\"MATCH (f:File)-[:IMPORTS]->(:File {path: $path}) RETURN f.path AS path\") { path: $path }
          each: map(user in users) { note: agent(tools: [fs_read, search_grep, fs_write]) { prompt: \"{{user.path}}\" } }
          editor: agent() { prompt: \"{{each}} {{counted}} {{source}} {{users}}\" }
        }",
    );
    for call in explanation.steps.iter_mut().flat_map(|step| &mut step.planned) {
        let ask = call.tool == "exec_tool" || call.tool == "fs_write";
        let (verdict, rule) = if ask { ("ask", "default/execute") } else { ("allow", "reads") };
        call.gates.push(foreseen(verdict, rule));
    }
    let text = explanation.text();
    let agents: Vec<&str> = text.lines().filter(|line| line.contains("each[].note")).collect();
    assert!(
        agents[0].ends_with("fs_read, search_grep: allow (reads); fs_write: ask (default/execute)"),
        "{text}"
    );
    // Without the one that says much, everything fits.
    explanation.steps[4].planned.clear();
    let text = explanation.text();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(
        text.contains(" TOKENS ") && text.contains("ask (default/execute)") && text.contains('…'),
        "{text}"
    );
    let plain = explained("query X { a: tool(fs_read) { path: \"a\" } }").text();
    assert!(!plain.contains("TOKENS") && plain.contains("estimated: 1 call\n"), "{plain}");
}

#[test]
fn every_way_to_show_a_plan_names_its_steps_alike() {
    let explanation = explained(
        "query Sub { final: merge(x: 1) }
         query X { m: map(i in [1]) { c: when(i == 1) { x: merge(i) } else { y: query(Sub) } } }",
    );
    let names: Vec<&str> = explanation.steps.iter().map(|step| step.step.as_str()).collect();
    let expected = ["m", "m[].c", "m[].c.x", "m[].c[else].y", "m[].c[else].y.final"];
    assert_eq!(names, expected);
    let (text, mermaid, dot) = (explanation.text(), explanation.mermaid(), explanation.dot());
    let json = serde_json::to_value(&explanation).unwrap();
    for (at, name) in expected.into_iter().enumerate() {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{text}");
        let escaped = name.replace('[', "#91;").replace(']', "#93;");
        assert!(mermaid.contains(&format!("s{at}[\"{escaped}<br/>")), "{mermaid}");
        assert!(dot.contains(&format!("s{at} [label=\"{name}\\n")), "{dot}");
        assert_eq!(json["steps"][at]["step"], name);
    }
}

#[test]
fn gates_are_shown_when_somebody_has_asked_them() {
    let mut explanation = explained("query X { a: tool(fs_read) { path: \"a\" } b: merge(x: 1) }");
    assert!(!explanation.text().contains("GATES"));
    explanation.steps[0].planned[0].gates.push(foreseen("asks", "default/reads"));
    let text = explanation.text();
    assert!(text.contains("GATES") && text.contains(" asks (default/reads)\n"), "{text}");
    assert!(explanation.mermaid().contains("policy: asks"));
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["steps"][0]["planned"][0]["gates"][0]["verdict"], "asks");
}
