//! One requirement, as people, models and attackers write it.

use proptest::prelude::*;
use tgp_wheels::{Name, Requirement};

#[track_caller]
fn check(text: &str, expected: &str) {
    let requirement = Requirement::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert_eq!(requirement.to_string(), expected, "{text:?}");
    let again = Requirement::parse(expected).unwrap_or_else(|error| panic!("{expected:?}: {error}"));
    assert_eq!(again, requirement);
}

#[test]
fn requirements_are_printed_from_their_parts() {
    check("six", "six");
    check(" Six ", "six");
    check("Foo__Bar.baz", "foo-bar-baz");
    check("six>=1.16", "six>=1.16");
    check("six >= 1.16 , < 2", "six>=1.16,<2");
    check("six (>=1.16)", "six>=1.16");
    check("six==1.*", "six==1.*");
    check("torch==2.1.0+cpu", "torch==2.1.0+cpu");
    check("x~=1!2.0rc1", "x~=1!2.0rc1");
    check("uvicorn[standard, x]>=0.30", "uvicorn[standard,x]>=0.30");
    check("uvicorn [x,x,a]", "uvicorn[a,x]");
    check("a[]", "a");
    check("six; python_version<'3.9'", "six ; python_version < \"3.9\"");
    check(
        "six ; extra == 'Test' and (os.name=='nt' or sys_platform not in 'linux darwin')",
        "six ; extra == \"Test\" and ( os_name == \"nt\" or sys_platform not in \"linux darwin\" )",
    );
}

#[test]
fn bug_everything_but_a_package_of_an_index_is_refused() {
    for bad in [
        "",
        " ",
        "-r x",
        "--index-url=x",
        "-e .",
        ".",
        "..",
        "./six",
        "../six",
        "/six",
        "~/six",
        "six/..",
        "a\\b",
        "six @ https://example.org/six.whl",
        "six@file:///six.whl",
        "git+https://example.org/six",
        "C:six",
        "six.whl",
        "six-1.0-py3-none-any.whl",
        "six.tar.gz",
        "six.zip",
        "six.tgz",
        "six\n--index-url x",
        "six\r",
        "six\u{0}",
        "six\t",
        "six\u{a0}",
        "six\u{2028}",
        "s\u{456}x",
        "\u{ff0d}r",
        "six>=",
        "six>=-1",
        "six>= -1",
        "six==1 --index-url=x",
        "six>=1 -r x",
        "six 1",
        "six>1 2",
        "six=1",
        "six>=1,,<2",
        "six>=1;",
        "six;",
        "six[",
        "six[a",
        "six]",
        "six[a b]",
        "six[a,]",
        "six[-a]",
        "six[../a]",
        "[a]",
        "six[a]]",
        "a-",
        "a- >=1",
        "-a",
        "_a",
        "a.",
        "six-==1",
        "six ; os_name == 'x --index-url=http://x'",
        "six ; os_name == '-x'",
        "six ; os_name == 'a\"b'",
        "six ; os_name == '#'",
        "six ; os_name == '${HOME}'",
        "six ; os_name == 'a\\'",
        "six ; os_name",
        "six ; os_name == 'x' -r y",
        "six ; os_name == 'x' or",
        "six ; (os_name == 'x'",
        "six ; foo == 'x'",
        "six ; os_name 'x'",
        "six ; os_name not 'x'",
        "six ; os_name = 'x'",
        "six # comment",
        "six --hash=sha256:00",
        "six>=99999999999999999999999999999",
    ] {
        assert!(Requirement::parse(bad).is_err(), "{bad:?}: {}", Requirement::parse(bad).unwrap());
    }
    assert!(Requirement::parse(&"a".repeat(129)).is_err());
    assert!(Requirement::parse(&format!("six>={}", "1.".repeat(3000))).is_err());
    let deep = format!("six; {}os_name == 'x'{}", "(".repeat(100), ")".repeat(100));
    assert!(Requirement::parse(&deep).is_err());
    let wide = vec!["os_name == 'x'"; 100].join(" or ");
    assert!(Requirement::parse(&format!("six; {wide}")).is_err());
}

#[test]
fn a_lowest_version_is_added_where_there_is_none() {
    let version = || "1.17.0+local".parse().unwrap();
    let at_least = |text: &str| Requirement::parse(text).unwrap().at_least(version()).to_string();
    assert_eq!(at_least("six"), "six>=1.17.0");
    assert_eq!(at_least("six[a]<2"), "six[a]<2");
    let exact = Requirement::exactly(Name::new("six").unwrap(), "1.0".parse().unwrap());
    assert_eq!(exact.to_string(), "six==1.0");
}

/// pip reads a list of requirements line by line, splits lines at spaces, and takes what begins with `-` for an option.
fn is_harmless(line: &str) -> bool {
    line.chars().all(|letter| matches!(letter, ' '..='~'))
        && !line.starts_with('-')
        && !line.contains(" -")
        && !line.contains(['#', '$', '\\', '@', '\'', '`', '%'])
        && !line.contains("//")
}

proptest! {
    #[test]
    fn whatever_is_accepted_is_one_harmless_line(text in "[a-z0-9 .,;<>=!~()\\[\\]'\"@#$/:_+*-]{0,40}") {
        if let Ok(requirement) = Requirement::parse(&text) {
            let line = requirement.to_string();
            prop_assert!(is_harmless(&line), "{text:?} -> {line:?}");
            prop_assert_eq!(&Requirement::parse(&line).unwrap(), &requirement);
        }
    }

    #[test]
    fn markers_are_printed_as_one_harmless_line(
        marker in "(os_name|extra|python_version|and|or|not in|in|==|<|'[a-z -]{0,6}'|\"[a-z.#-]{0,4}\"|[()]| ){0,14}"
    ) {
        if let Ok(requirement) = Requirement::parse(&format!("six ; {marker}")) {
            let line = requirement.to_string();
            prop_assert!(is_harmless(&line), "{marker:?} -> {line:?}");
            prop_assert_eq!(&Requirement::parse(&line).unwrap(), &requirement);
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,60}") {
        let _ = Requirement::parse(&text);
        let _ = Name::new(&text);
    }
}
