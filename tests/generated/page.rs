//! One manual page: clap_mangen's sections, and the headings of `after_long_help` as sections of their own;
//! or a guide, which is sections alone.

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

/// When the pages last changed in more than a word.
const DATE: &str = "2026-11-21";

/// The page of a verb, or of the program itself.
pub fn render(command: &Command) -> String {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let more = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    let out: &mut dyn std::io::Write = &mut page;
    let version = env!("CARGO_PKG_VERSION");
    writeln!(out, ".TH {} 1 \"{DATE}\" \"git-aynig {version}\" \"Git AYNIG Manual\"", name.to_uppercase())
        .unwrap();
    man.render_name_section(out).unwrap();
    synopsis(command).to_writer(out).unwrap();
    man.render_description_section(out).unwrap();
    if command.get_arguments().next().is_some() {
        man.render_options_section(out).unwrap();
    }
    match (is_program(command), command.has_subcommands()) {
        (true, _) => verbs(command).to_writer(out).unwrap(),
        (false, true) => acts(command).to_writer(out).unwrap(),
        (false, false) => {}
    }
    sections(&more).to_writer(out).unwrap();
    String::from_utf8(page).unwrap()
}

/// True for the program itself, whose verbs have pages of their own.
fn is_program(command: &Command) -> bool {
    command.get_name() == "git-aynig"
}

/// What may be typed; the flags that every verb takes are not repeated.
fn synopsis(command: &Command) -> Roff {
    let mut line = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()))];
    let names = |arg: &Arg| {
        let names =
            arg.get_value_names().unwrap_or_default().iter().map(|n| format!("<{}>", n.to_lowercase()));
        names.collect::<Vec<_>>().join(" ")
    };
    let shown = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    for arg in command.get_arguments().filter(|a| !a.is_positional()).filter(shown) {
        if arg.get_help_heading().is_some() && !is_program(command) {
            continue;
        }
        let flag = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, short) => format!("-{}", short.unwrap_or_default()),
        };
        let (open, close) = if arg.is_required_set() { ("", "") } else { ("[", "]") };
        line.extend([roman(format!(" {open}")), bold(flag.as_str())]);
        if arg.get_action().takes_values() {
            line.extend([roman(" "), italic(names(arg))]);
        }
        let more = if matches!(arg.get_action(), ArgAction::Append) { "..." } else { "" };
        line.push(roman(format!("{close}{more}")));
    }
    for arg in command.get_positionals() {
        let (open, close) = if arg.is_required_set() { ("", "") } else { ("[", "]") };
        let more = if matches!(arg.get_action(), ArgAction::Append) { "..." } else { "" };
        line.extend([roman(format!(" {open}")), italic(names(arg)), roman(format!("{more}{close}"))]);
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("<verb>"), roman(" [<args>]")]);
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text(line);
    roff
}

fn verbs(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["VERBS"]);
    for verb in command.get_subcommands().filter(|v| !v.is_hide_set()) {
        roff.control("TP", []);
        roff.text([bold(format!("git-aynig-{}", verb.get_name())), roman("(1)")]);
        roff.text([roman(verb.get_about().map(ToString::to_string).unwrap_or_default())]);
    }
    roff
}

/// The verbs of a verb, each with its flags.
fn acts(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["VERBS"]);
    for act in command.get_subcommands().filter(|act| !act.is_hide_set()) {
        roff.control("TP", []);
        let mut head = vec![bold(act.get_name())];
        for arg in act.get_positionals() {
            let names = arg.get_value_names().unwrap_or_default().join(" ").to_lowercase();
            let separator = if arg.is_last_set() { " -- " } else { " " };
            let (open, close) = if arg.is_required_set() { ("<", ">") } else { ("[", "]") };
            head.extend([roman(separator), italic(format!("{open}{names}{close}"))]);
        }
        roff.text(head);
        let about = act.get_about().map(ToString::to_string).unwrap_or_default();
        let flags: Vec<String> = act
            .get_arguments()
            .filter(|arg| !arg.is_positional() && !arg.is_hide_set() && arg.get_help_heading().is_none())
            .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
            .filter(|flag| !["--help", "--version"].contains(&flag.as_str()))
            .collect();
        let flags = if flags.is_empty() { String::new() } else { format!(" Takes {}.", flags.join(", ")) };
        roff.text([roman(format!("{about}.{flags}"))]);
    }
    roff
}

/// A page of section 7: its text begins with the description.
pub fn guide(name: &str, about: &str, text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut roff = Roff::new();
    let heads = [&name.to_uppercase(), "7", DATE, &format!("git-aynig {version}"), "Git AYNIG Manual"];
    roff.control("TH", heads);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {about}"))]);
    let text = joined(text);
    format!("{}{}", roff.to_roff(), sections(&format!("Description:\n{text}")).to_roff())
}

/// A line that ends in a backslash goes on in the next one; not in code, where it is the shell's.
fn joined(text: &str) -> String {
    let mut whole = String::new();
    for line in text.lines() {
        match line.strip_suffix('\\').filter(|_| !line.starts_with(CODE)) {
            Some(begin) => whole += begin,
            None => whole += &format!("{line}\n"),
        }
    }
    whole
}

/// How code begins.
const CODE: &str = "    ";
/// A longer line that ends in a colon is prose.
const HEADING_MAX: usize = 60;

/// `Heading:` begins a section; `  term  text` is a row of it, four blanks are code; in examples each line is a
/// command.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    let (mut examples, mut rows) = (false, false);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let heading = line.strip_suffix(':').filter(|l| !l.starts_with(' ') && l.len() <= HEADING_MAX);
        let row = line.strip_prefix("  ");
        match (heading, row) {
            (Some(heading), _) => {
                roff.control("SH", [heading.to_uppercase().as_str()]);
                (examples, rows) = (heading == "Examples", false);
            }
            (None, _) if line.is_empty() => rows = true,
            (None, Some(example)) if examples => {
                roff.control("EX", []);
                roff.text([roman(example)]);
                roff.control("EE", []);
            }
            (None, Some(_)) if line.starts_with(CODE) => {
                roff.control("PP", []);
                roff.control("RS", ["4"]);
                roff.control("EX", []);
                roff.text([roman(&line[CODE.len()..])]);
                while let Some(more) = lines.next_if(|next| next.starts_with(CODE)) {
                    roff.text([roman(&more[CODE.len()..])]);
                }
                roff.control("EE", []);
                roff.control("RE", []);
                rows = true;
            }
            (None, Some(row)) => match row.split_once("  ") {
                Some((term, text)) => {
                    rows = true;
                    roff.control("TP", []);
                    roff.text([bold(term)]);
                    roff.text([roman(text.trim_start())]);
                    // A text that goes on stands below its own beginning.
                    let column = " ".repeat(line.len() - text.trim_start().len());
                    while let Some(more) = lines.next_if(|next| next.starts_with(&column)) {
                        roff.text([roman(more.trim_start())]);
                    }
                }
                None => prose(&mut roff, row, &mut rows),
            },
            (None, None) => prose(&mut roff, line, &mut rows),
        }
    }
    roff
}

fn prose(roff: &mut Roff, text: &str, rows: &mut bool) {
    if *rows {
        roff.control("PP", []);
        *rows = false;
    }
    roff.text([roman(text)]);
}
