//! Arguments of a verb, defined only once that verb is typed, so that a call does not pay for the arguments
//! of all other verbs.
//!
//! More than half of what an idle tick computed was the definition of other verbs' arguments. For the verbs
//! that timers and scripts call often (`called_often`), not even the other verbs' names and manual pages are
//! defined: these took a third of an idle tick's memory.

use super::args::{Anywhere, Cli, Run, SetState, Status, Tick, Verb};
use clap::builder::Resettable;
use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// The arguments of one verb.
#[derive(Debug)]
pub struct Deferred<T>(pub T);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| described(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| described(command, T::augment_args_for_update))
    }
}

/// Adds the arguments, and then restores the verb's description, which that of the arguments' type would
/// replace.
fn described(command: Command, add: impl FnOnce(Command) -> Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    add(command).about(Resettable::from(about)).long_about(Resettable::from(long_about))
}

/// Parses the command line by the definition of its verb alone, where it begins with a verb that is called
/// often and is valid. `None` for any other: the whole definition then prints help, or says what is wrong.
pub(super) fn called_often(argv: &[OsString]) -> Option<Cli> {
    let (_program, typed) = argv.split_first()?;
    match typed.first()?.to_str()? {
        "tick" => alone::<Tick>(typed, Verb::Tick),
        "run" => alone::<Run>(typed, Verb::Run),
        "set-state" => alone::<SetState>(typed, Verb::SetState),
        "status" => alone::<Status>(typed, Verb::Status),
        _ => None,
    }
}

/// Parses what was typed by the definition of one verb, whose name comes first; `None` where it is not valid.
fn alone<T: Args>(typed: &[OsString], verb: fn(Deferred<T>) -> Verb) -> Option<Cli> {
    // The process ends soon: dropping the definition would only cost time.
    let mut command = ManuallyDrop::new(T::augment_args(Anywhere::augment_args(Command::new("git-aynig"))));
    let mut matches = ManuallyDrop::new(command.try_get_matches_from_mut(typed).ok()?);
    let anywhere = Anywhere::from_arg_matches_mut(&mut matches).ok()?;
    Some(Cli { anywhere, verb: verb(Deferred(T::from_arg_matches_mut(&mut matches).ok()?)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// What is typed after each verb. Some of it is valid for only one of the four verbs, some for none.
    const TYPED: [&str; 30] = [
        "",
        "work",
        "work other",
        "-C a -C b --git-dir g -q -vv work",
        "-vv -C=a work -q",
        "--json",
        "--json work -v",
        "-n --remote origin --role r --jobs 2 a",
        "-j3 --current-branch skip",
        "--current-branch=only --lease 5m --grace 1 --timeout 2h --tee --log-level debug",
        "--chain --detach",
        "--detach --json",
        "--detached",
        "--every 5s a b",
        "-- -x --every",
        "build -b work -m one -m two --trailer k:v --trailer k:w --no-tick",
        "build -F - --keep-trailers",
        "build -F f -m m",
        "build --emit",
        "build --emit --branch b",
        "build --push --remote r",
        "build --dialect aynig",
        "--waiting",
        "--watch",
        "--porcelain work",
        "-h",
        "--help",
        "--version",
        "--nonsense",
        "-j x",
    ];

    #[test]
    fn a_verb_alone_is_read_as_by_the_whole_definition() {
        let mut right = 0;
        for verb in ["tick", "run", "set-state", "status", "cancel"] {
            for rest in TYPED {
                let argv: Vec<OsString> =
                    ["git-aynig", verb].into_iter().chain(rest.split_whitespace()).map(Into::into).collect();
                let whole = Cli::try_parse_from(&argv).ok().filter(|_| verb != "cancel");
                right += usize::from(whole.is_some());
                assert_eq!(format!("{:?}", called_often(&argv)), format!("{whole:?}"), "{argv:?}");
            }
        }
        assert!(right > 40, "{right}");
        for first in ["", "-q tick", "-C x tick work", "tick-tock"] {
            let argv: Vec<OsString> =
                ["git-aynig"].into_iter().chain(first.split_whitespace()).map(Into::into).collect();
            assert!(called_often(&argv).is_none(), "{first}");
        }
    }
}
