//! The rooms of the house, checked from the sources: who may use whom, and who owns each dangerous thing.
//!
//! Rooms, lowest first: protocol, contract, supervisor, agents, store, runner, governed, run_loop, conformance (for tests alone), flow, app, cli. CONTRIBUTING.md says what each holds.
//! Also: files stay small, and every rule of CONTRACT.md is cited where it is kept and where it is tried.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A room, and the rooms that it may use besides itself.
const ROOMS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("contract", &["protocol"]),
    ("supervisor", &[]),
    ("agents", &["contract", "supervisor"]),
    ("store", &["protocol", "supervisor"]),
    ("runner", &["protocol", "store", "supervisor"]),
    ("governed", &["protocol", "store", "supervisor", "runner"]),
    ("run_loop", &["governed"]),
    ("conformance", &["governed"]),
    ("flow", &["protocol", "contract", "supervisor", "agents", "store", "runner"]),
    (
        "app",
        &["protocol", "contract", "supervisor", "agents", "store", "runner", "governed", "run_loop", "flow"],
    ),
    (
        "cli",
        &[
            "protocol",
            "contract",
            "supervisor",
            "agents",
            "store",
            "runner",
            "governed",
            "run_loop",
            "conformance",
            "flow",
            "app",
        ],
    ),
];

/// Words that only some rooms may write, and who may.
const OWNED: &[(&str, &[&str])] = &[
    ("gix::", &["store"]),
    ("Command::new(\"git\")", &["store"]),
    (
        "std::fs",
        &["store", "supervisor", "runner", "governed", "run_loop", "conformance", "flow", "app", "cli"],
    ),
    // Governed runs build hooks' commands, turns what an agent has run, and chains their own; the supervisor has them.
    ("std::process", &["store", "supervisor", "governed", "flow", "app", "cli"]),
    // Others build a child's command; the supervisor starts it, and the store its own `git`. The verbs `serve` and
    // `mcp` become the page's program.
    (".spawn()", &["supervisor", "store"]),
    (".exec()", &["supervisor", "store", "cli/serve.rs"]),
    (".output()", &["supervisor", "store"]),
    // Not without the question mark: a governed run and a turn have a status too, which asks nothing of the system.
    (".status()?", &["supervisor", "store"]),
    ("Command::spawn(", &["supervisor", "store"]),
    ("posix_spawn", &["supervisor"]),
    // Which rooms have a program run to its end by the supervisor.
    ("Bounded", &["supervisor", "store", "runner", "governed", "flow", "app", "cli"]),
    // Which rooms have a command under a guardian.
    ("Supervised::start", &["supervisor", "runner", "flow", "app"]),
    ("nix::unistd::fork", &[]),
    ("nix::unistd::exec", &[]),
    ("libc::fork", &[]),
    ("libc::exec", &[]),
    ("Instant::now", &["store", "supervisor", "runner/clock.rs", "governed", "app", "cli"]),
    ("SystemTime", &["store", "supervisor", "runner", "governed", "app", "cli"]),
    // The store asks which configuration Git would see; the guardian passes on what it was started with; a
    // fixture of the corpus needs a scratch folder.
    ("std::env", &["store", "supervisor", "conformance", "app", "cli"]),
    ("println!", &["cli"]),
    ("eprint!", &["cli"]),
    ("eprintln!", &["cli", "supervisor"]),
    ("unsafe ", &[]),
    // What can come of a step has a name, each way.
    ("Result<Result<", &["conformance"]),
];

/// What the page's package never says: it asks the supervisor, which is the library's.
const STARTS: [&str; 6] = [".spawn()", ".exec()", ".output()", ".status()?", "posix_spawn", "tokio::process"];

/// Most lines of a source file.
const LINES_MAX: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// The room of a file below `src/`; `None` for `lib.rs` and `main.rs`.
fn room(path: &Path) -> Option<String> {
    let below = path.strip_prefix("src").ok()?;
    (below.components().count() > 1).then(|| below.iter().next().unwrap().to_string_lossy().into_owned())
}

/// A source's code without comments, and its tests as they are, each at its own line. An item behind `#[cfg(test)]`
/// ends on its first line, or where a brace closes it in the attribute's column, and at the latest with what it is in.
fn divided(text: &str) -> (String, String) {
    let (mut code, mut tests) = (String::new(), String::new());
    // Of the item of the tests that is open: its column, and whether its first line was seen.
    let mut open: Option<(&str, bool)> = None;
    for line in text.lines() {
        let said = line.split("//").next().unwrap_or_default();
        let (column, _) = line.split_at(line.len() - line.trim_start().len());
        if open.is_some_and(|(of, _)| !line.is_empty() && column.len() < of.len()) {
            open = None;
        }
        if open.is_none() && line.trim() == "#[cfg(test)]" {
            open = Some((column, false));
        }
        match open {
            Some(_) => tests.push_str(line),
            None => code.push_str(said),
        }
        code.push('\n');
        tests.push('\n');
        let attribute = line.trim_start().starts_with("#[");
        open = open.filter(|(of, begun)| {
            let closes = line.strip_prefix(of).is_some_and(|rest| rest.starts_with('}'));
            attribute || !(closes || !begun && said.trim_end().ends_with([';', '}', ',']))
        });
        open = open.map(|(of, begun)| (of, begun || !attribute));
    }
    (code, tests)
}

/// A source's code, without its tests.
fn code(text: &str) -> String {
    divided(text).0
}

/// The words that follow each `crate::`, groups in braces included.
fn crate_words(code: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => words.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()),
            Some(group) => {
                let (mut depth, mut word, mut first) = (0, String::new(), true);
                for c in group.chars() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                            first = true;
                        }
                        ':' if depth == 0 => first = false,
                        c if depth == 0 && first && (c.is_alphanumeric() || c == '_') => word.push(c),
                        _ => {}
                    }
                }
                words.extend((!word.is_empty()).then_some(word));
            }
        }
    }
    words
}

/// How many `super::` in a row a file may write before it leaves its room.
fn depth(path: &Path) -> usize {
    let below = path.strip_prefix("src").unwrap();
    let modules = below.components().count();
    if below.file_stem().is_some_and(|s| s == "mod") { modules - 2 } else { modules - 1 }
}

#[test]
fn rooms_use_only_the_rooms_below_them() {
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let Some(room) = room(&path) else { continue };
        let Some((_, may)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: '{room}' is no room of this house", path.display()));
            continue;
        };
        let code = code(&text);
        for word in crate_words(&code) {
            if word != room && !may.contains(&word.as_str()) {
                wrong.push(format!("{}: {room} uses crate::{word}", path.display()));
            }
        }
        if code.contains(&"super::".repeat(depth(&path) + 1)) {
            wrong.push(format!("{}: 'super::' leaves the room", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The page is a package of its own: it uses what verbs do, never how they are typed and printed.
#[test]
fn the_page_uses_the_library_below_the_command_line() {
    let found = sources("serve/src");
    assert!(found.len() > 5, "{found:?}");
    for (path, text) in found {
        let code = code(&text);
        for word in crate_words(&code.replace("aynig::", "crate::aynig_")) {
            assert_ne!(word, "aynig_cli", "{} uses aynig::cli", path.display());
        }
        for start in STARTS {
            assert!(!code.contains(start), "{} says '{start}': it starts a process", path.display());
        }
        assert!(text.lines().count() <= LINES_MAX, "{} is too long", path.display());
        assert!(text.starts_with("//!"), "{} does not open with a //! block", path.display());
    }
}

/// Whether a line has this word, and not within a longer one: `println!` is in `eprintln!` too.
fn says(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !(word.starts_with(is_in_word) && line[..at].ends_with(is_in_word)))
}

#[test]
fn a_word_is_found_wherever_it_stands() {
    assert!(says("command.spawn()?", ".spawn()") && says("    .spawn()", ".spawn()"));
    assert!(says("println!()", "println!") && says("a; eprintln!(); println!()", "println!"));
    assert!(!says("eprintln!()", "println!") && !says("tokio::spawn(it)", ".spawn()"));
}

#[test]
fn one_room_owns_each_dangerous_thing() {
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let Some(room) = room(&path) else { continue };
        for (line, text) in code(&text).lines().enumerate() {
            for (word, may) in OWNED {
                // A room, or one file of a room.
                if says(text, word) && !may.iter().any(|may| *may == room || path.ends_with(may)) {
                    wrong.push(format!("{}:{}: {room} says '{word}'", path.display(), line + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_file_is_longer_than_a_reader_has_patience_for() {
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let lines = text.lines().count();
        let name = path.strip_prefix("src").unwrap().to_string_lossy().into_owned();
        if lines > LINES_MAX {
            wrong.push(format!("{name}: {lines} lines, more than {LINES_MAX}: divide it"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What files of the runner call the methods of a run and of its runner on.
const RECEIVERS: [&str; 3] = ["self", "runner", "run"];

/// The functions of a source: methods of a runner and of a run that is under way, and free functions.
fn defined(code: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let (mut methods, mut free, mut of_a_run) = (BTreeSet::new(), BTreeSet::new(), false);
    for line in code.lines() {
        if let Some(of) = line.strip_prefix("impl") {
            of_a_run = !of.contains(" for ") && (of.contains("Runner<") || of.contains("ActiveRun<"));
        }
        let Some((before, after)) = line.split_once("fn ") else { continue };
        let name = words(after).next().unwrap_or_default();
        let is_free =
            !line.starts_with(' ') && before.chars().all(|c| c.is_alphanumeric() || " ()_".contains(c));
        if is_free {
            free.insert(name);
        } else if of_a_run && before.starts_with("    ") && !before.starts_with("     ") {
            methods.insert(name);
        }
    }
    (methods, free)
}

/// The names that a source calls, each with what stands before its dot, or nothing.
fn called(code: &str) -> BTreeSet<(&str, &str)> {
    let last = |text: &'_ str| text.rfind(|c| !is_in_word(c)).map_or(0, |end| end + 1);
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices('(') {
        let begin = last(&code[..at]);
        let given = code[..begin].trim_end().strip_suffix('.').map(str::trim_end);
        found.insert((given.map_or("", |given| &given[last(given)..]), &code[begin..at]));
    }
    found
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_in_word(c))
}

/// Which file of the runner calls which, by the names that one file alone defines.
fn calls_of_the_runner() -> BTreeMap<String, BTreeSet<String>> {
    let files: BTreeMap<String, String> = sources("src/runner")
        .into_iter()
        .map(|(path, text)| (path.to_string_lossy().into_owned(), divided(&text).0))
        .collect();
    let mut owners: BTreeMap<(bool, &str), BTreeSet<&String>> = BTreeMap::new();
    for (file, code) in &files {
        let (methods, free) = defined(code);
        let names =
            methods.into_iter().map(|name| (true, name)).chain(free.into_iter().map(|name| (false, name)));
        for name in names {
            owners.entry(name).or_default().insert(file);
        }
    }
    let mut calls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, code) in &files {
        let imported = code.split(';').filter(|part| part.trim_start().starts_with("use super"));
        let imported: BTreeSet<&str> = imported.flat_map(words).collect();
        for (given, name) in called(code) {
            let is_method = RECEIVERS.contains(&given);
            // A type of the file's own may have a method of that name.
            let is_own = code.contains(&format!("fn {name}("));
            if is_own || !is_method && (!given.is_empty() || !imported.contains(name)) {
                continue;
            }
            let owned = owners.get(&(is_method, name)).filter(|owned| owned.len() == 1);
            let owner = owned.and_then(|owned| owned.first()).filter(|owner| **owner != file);
            calls.entry(file.clone()).or_default().extend(owner.map(|owner| (*owner).clone()));
        }
    }
    calls
}

/// The order of steps of a tick is readable only while no file calls back into one that calls it, however many files
/// lie between.
#[test]
fn no_file_of_the_runner_calls_one_that_calls_it() {
    let mut calls = calls_of_the_runner();
    assert!(calls["src/runner/tick.rs"].len() > 10 && calls.len() > 50, "{calls:#?}");
    // Files that call none of those that are left, and those that none of them calls, are left out, until only circles
    // are left.
    loop {
        let before = calls.len();
        let left: BTreeSet<String> = calls.keys().cloned().collect();
        calls.values_mut().for_each(|called| called.retain(|file| left.contains(file)));
        let called: BTreeSet<String> = calls.values().flatten().cloned().collect();
        calls.retain(|file, calls| !calls.is_empty() && called.contains(file));
        if calls.len() == before {
            break;
        }
    }
    assert!(calls.is_empty(), "each of these files calls one of these, which leads back: {calls:#?}");
}

#[test]
fn every_file_opens_with_what_it_promises() {
    // A part of a test is described where it is put together.
    let whole =
        |path: &Path| path.components().count() == 2 || path.ends_with("main.rs") || path.ends_with("mod.rs");
    let tests = sources("tests").into_iter().filter(|(path, _)| whole(path));
    for (path, text) in sources("src").into_iter().chain(tests) {
        assert!(text.starts_with("//!"), "{} does not open with a //! block", path.display());
    }
}

/// The families of rules: the kernel's, governed runs', flows', the page's.
const FAMILIES: [&str; 4] = ["K", "G", "N", "W"];

/// `K7` and `G7`, and every number between the ends of `K10-K12`.
fn cited(text: &str) -> BTreeSet<String> {
    FAMILIES.into_iter().flat_map(|family| cited_of(family, text)).collect()
}

fn cited_of(family: &str, text: &str) -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    let mut last: Option<(u32, usize)> = None;
    for (at, _) in text.match_indices(family) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &text[at + 1..];
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        if digits == 0 || digits > 2 {
            continue;
        }
        let number: u32 = rest[..digits].parse().unwrap();
        let letter = rest[digits..].chars().next().filter(|c| matches!(c, 'a' | 'b'));
        let end = at + 1 + digits + usize::from(letter.is_some());
        if text[end..].starts_with(|c: char| c.is_alphanumeric()) {
            continue;
        }
        if let Some((first, ended)) = last
            && ended + 1 == at
            && text[ended..].starts_with('-')
        {
            rules.extend((first..number).map(|n| format!("{family}{n}")));
        }
        rules.insert(format!("{family}{number}{}", letter.map(String::from).unwrap_or_default()));
        last = Some((number, end));
    }
    rules
}

/// The rules of CONTRACT.md that hold now: headings or items that begin with `**K7` or another family's.
fn rules() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("CONTRACT.md")).unwrap();
    let mut rules = BTreeSet::new();
    for (at, _) in text.match_indices("**") {
        let name: String = text[at + 2..].chars().take_while(|c| c.is_alphanumeric()).collect();
        let number = FAMILIES.iter().find_map(|family| name.strip_prefix(family));
        if number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit())) {
            rules.insert(name);
        }
    }
    rules
}

#[test]
fn every_rule_of_the_contract_is_cited_where_it_is_kept() {
    let mut cited_in: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (path, text) in sources("src").into_iter().chain(sources("serve")).chain(sources("tests")) {
        if path == Path::new("tests/house.rs") {
            continue;
        }
        for rule in cited(&text) {
            cited_in.entry(rule).or_default().push(path.clone());
        }
    }
    let rules = rules();
    assert!(rules.len() > 30, "{rules:?}");
    let missing: Vec<_> = rules.iter().filter(|rule| !cited_in.contains_key(*rule)).collect();
    assert!(missing.is_empty(), "no source and no test cites {missing:?}");
    let unknown: Vec<_> = cited_in.keys().filter(|rule| !rules.contains(*rule)).collect();
    assert!(unknown.is_empty(), "cited, but no rule of CONTRACT.md: {unknown:?}");
}

#[test]
fn every_rule_of_the_contract_is_tried_by_a_test_that_names_it() {
    let mut tried = BTreeSet::new();
    for (path, text) in sources("serve/tests").into_iter().chain(sources("tests")) {
        if path != Path::new("tests/house.rs") {
            tried.extend(cited(&text));
        }
    }
    for (path, text) in sources("src").into_iter().chain(sources("serve/src")) {
        if path.ends_with("tests.rs") {
            tried.extend(cited(&text));
        } else {
            tried.extend(cited(&divided(&text).1));
        }
    }
    let missing: Vec<_> = rules().into_iter().filter(|rule| !tried.contains(rule)).collect();
    assert!(missing.is_empty(), "no test names {missing:?}");
}

#[test]
fn code_is_looked_at_behind_tests_too() {
    let text = "a // b\n#[cfg(test)]\n#[path = \"x\"]\nmod tests;\nc\n    #[cfg(test)]\n    fn d() {\n        e\n    }\nf\n\
                #[cfg(test)]\nmod tests {\n    fn g() {}\n}\nh\n    #[cfg(test)]\n    i(\n    );\n}\n";
    let (code, tests) = divided(text);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&code), ["a", "c", "f", "h", "}"]);
    assert_eq!(code.lines().position(|line| line == "h"), Some(14));
    assert!(words(&tests).contains(&"e".to_owned()) && words(&tests).contains(&"g()".to_owned()));
}

#[test]
fn citations_are_read_with_their_ranges() {
    let read = cited("Implements K10-K12, K4a (and K7). OK9 K100 K2x G2-G3 GS7 N9a UN1");
    let read: Vec<&str> = read.iter().map(String::as_str).collect();
    assert_eq!(read, ["G2", "G3", "K10", "K11", "K12", "K4a", "K7", "N9a"]);
    assert_eq!(crate_words("use crate::{a, b::{c, d}, e}; crate::f::g"), ["a", "b", "e", "f"]);
}

/// The packages that a package's tests are built of, by name and version, with their features. What the page alone is
/// built of may still have to be fetched: a user who tests this package has none of it.
fn built_of(package: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--edges", "normal,build,dev", "--prefix", "none"]);
    let told = cargo.args(["--format", "{p}|{f}", "-p", package]).current_dir(root()).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let text = String::from_utf8(told.stdout).unwrap();
    let of = |line: &str| {
        let (name, features) = line.split_once('|')?;
        let name = name.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let features = features.trim_end_matches("(*)").trim();
        Some((name, features.split(',').map(str::to_owned).collect()))
    };
    text.lines().filter_map(of).collect()
}

/// A crate with other features is another crate to Cargo, and so is all that stands upon it: gix would be compiled twice.
#[test]
fn tests_of_both_packages_share_what_they_are_built_of() {
    let (ours, pages) = (built_of("git-aynig"), built_of("git-aynig-serve"));
    assert!(ours.len() > 150 && pages.len() > 150, "{} {}", ours.len(), pages.len());
    for (name, features) in ours.iter().filter(|(name, _)| !name.starts_with("git-aynig")) {
        let there = pages.get(name).unwrap_or(features);
        assert_eq!(features, there, "{name}: here and in serve; [dev-dependencies] of both make them equal");
    }
}
