//! K15.

use super::*;
use crate::protocol::message::Trailer;

fn message(trailers: &[(&str, &str)], body: &str) -> Message {
    let trailers = trailers.iter().map(|(k, v)| Trailer { key: (*k).into(), value: (*v).into() }).collect();
    Message::new("s", body.as_bytes(), trailers)
}

#[test]
fn a_trailer_is_told_bare_and_in_full() {
    let told = trailer_variables(
        &message(&[("dwp-state", "build"), ("my-key", "1"), ("my-key", "2")], "b"),
        &|_| true,
        &|_| false,
    );
    assert_eq!(told.variables["DWP_STATE"], b"build");
    assert_eq!(told.variables["MY_KEY"], b"2");
    assert_eq!(told.variables["AYNIG_TRAILER_MY_KEY"], b"1\n2");
    assert_eq!(told.variables["BODY"], b"b");
    assert!(!told.variables.contains_key("AYNIG_BODY_TRUNCATED"));
}

#[test]
fn names_that_run_code_are_never_made() {
    for key in [
        "ld-preload",
        "bash-env",
        "path",
        "git-dir",
        "node-options",
        "Path",
        "aynig-run-id",
        "http-proxy",
        "ENV",
        "body",
        "role",
        "rustc-wrapper",
        "git-config-count",
        "perl5opt",
        "makeflags",
        "goflags",
    ] {
        let told = trailer_variables(&message(&[(key, "x")], ""), &|_| true, &|_| false);
        let name = variable_name(key);
        assert!(told.variables.get(&name).is_none_or(|v| v.is_empty()), "{key}");
        assert_eq!(told.variables[&format!("AYNIG_TRAILER_{name}")], b"x");
    }
}

#[test]
fn a_trailer_never_overwrites_what_exists() {
    let told = trailer_variables(&message(&[("my-key", "x")], ""), &|_| true, &|name| name == "MY_KEY");
    assert!(!told.variables.contains_key("MY_KEY"));
    assert_eq!(told.reserved, ["MY_KEY"]);
}

/// K15, S27: unless the configuration allows more, only the contract's own names become variables; reserved
/// ones never do.
#[test]
fn only_wanted_names_become_bare_variables() {
    let trigger = message(&[("dwp-ticket", "1"), ("vpath", "2"), ("ticket", "3"), ("path", "4")], "");
    let told = trailer_variables(&trigger, &|name| matches!(name, "TICKET" | "PATH"), &|_| false);
    assert_eq!(told.reserved, ["PATH", "VPATH"]);
    let bare: Vec<_> = told.variables.keys().filter(|name| !name.starts_with("AYNIG_")).collect();
    assert_eq!(bare, ["BODY", "DWP_TICKET", "TICKET"]);
    for name in ["DWP_TICKET", "VPATH", "TICKET", "PATH"] {
        assert!(told.variables.contains_key(&format!("AYNIG_TRAILER_{name}")), "{name}");
    }
}

/// K15: no shell can name a variable that begins with a digit.
#[test]
fn a_name_that_begins_with_a_digit_is_no_variable() {
    let told = trailer_variables(&message(&[("2nd", "x"), ("second", "y")], ""), &|_| true, &|_| false);
    assert_eq!(told.reserved, ["2ND"]);
    assert_eq!(told.variables["AYNIG_TRAILER_2ND"], b"x");
    assert_eq!(told.variables["SECOND"], b"y");
}

/// K15: a variable that the contract itself gives a command never comes from a trailer.
#[test]
fn names_of_the_contract_and_of_each_kind_of_list_are_reserved() {
    for name in [
        "BODY",
        "COMMIT_HASH",
        "WORKTREE_PATH",
        "PWD",
        "STDOUT_LOG_PATH",
        "STDERR_LOG_PATH",
        "LOG_LEVEL",
        "ROLE",
        "AYNIG",
        "AYNIG_ANYTHING",
        "PATH",
        "GIT_DIR",
        "CMAKE_TOOLCHAIN_FILE",
        "FTP_PROXY",
    ] {
        assert!(is_reserved(name), "{name}");
    }
    for name in ["DWP_TICKET", "TICKET", "MY_PATH", "BODYGUARD", "PROXY", "LDAP"] {
        assert!(!is_reserved(name), "{name}");
    }
}

/// K15: those that say how to reach a network, where configuration is and what to trace; none that names a
/// repository.
#[test]
fn of_gits_variables_a_command_inherits_the_network_the_configuration_and_the_trace() {
    for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_EXEC_PATH", "AYNIG", "AYNIG_RUN_ID"] {
        assert!(is_dropped(name), "{name}");
    }
    for name in [
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "GIT_CONFIG_GLOBAL",
        "GIT_TRACE",
        "GIT_TRACE2_EVENT",
        "PATH",
        "GITHUB",
    ] {
        assert!(!is_dropped(name), "{name}");
    }
}

/// K15: Linux takes a variable of 128 KiB, including its name, the `=` and the terminator.
#[test]
fn a_body_is_whole_where_one_variable_can_hold_it() {
    let room = 131_072 - "AYNIG_BODY=".len() - 1;
    for (length, told_length, cut) in [(0, 0, false), (room, room, false), (room + 1, room, true)] {
        let told = trailer_variables(&message(&[], &"x".repeat(length)), &|_| true, &|_| false);
        assert_eq!(told.variables["BODY"].len(), told_length);
        assert_eq!(told.variables["BODY"], told.variables["AYNIG_BODY"]);
        assert_eq!(told.variables.contains_key("AYNIG_BODY_TRUNCATED"), cut, "{length}");
    }
}

/// K15.
#[test]
fn a_body_is_cut_at_a_character_or_at_a_nul() {
    // Characters of three bytes each, none of which ends where the room ends.
    let told = trailer_variables(&message(&[], &"€".repeat(50_000)), &|_| true, &|_| false);
    assert_eq!(told.variables["BODY"], "€".repeat(43_686).into_bytes());
    assert_eq!(told.variables["AYNIG_BODY_TRUNCATED"], b"1");
    let told = trailer_variables(&message(&[], "ab\0c"), &|_| true, &|_| false);
    assert_eq!(told.variables["BODY"], b"ab");
    assert_eq!(told.variables["AYNIG_BODY_TRUNCATED"], b"1");
    // Bytes of which none begins a character.
    let body = vec![0x80; 200_000];
    let told = trailer_variables(&Message { body, ..Message::default() }, &|_| true, &|_| false);
    assert_eq!(told.variables["BODY"], b"");
}

#[test]
fn values_that_do_not_fit_are_left_out_and_named() {
    let told = trailer_variables(
        &message(&[("big", &"x".repeat(200_000)), ("nul", "a\0b"), ("small", "1")], ""),
        &|_| true,
        &|_| false,
    );
    assert_eq!(told.left_out, ["BIG", "NUL"]);
    assert_eq!(told.variables["SMALL"], b"1");
    assert!(!told.variables.contains_key("NUL") && !told.variables.contains_key("AYNIG_TRAILER_NUL"));
}

/// K15.
#[test]
fn a_trailer_has_the_128_kib_of_one_variable() {
    let room = 131_072 - "AYNIG_TRAILER_KEY=".len() - 1;
    let left_out = |length: usize| {
        trailer_variables(&message(&[("key", &"x".repeat(length))], ""), &|_| true, &|_| false).left_out
    };
    assert_eq!(left_out(room), [""; 0]);
    assert_eq!(left_out(room + 1), ["KEY"]);
}

/// K15: 512 KiB, counted as the kernel counts them; a value that was left out takes no room.
#[test]
fn all_trailers_together_have_512_kib() {
    let told = |last: usize| {
        let long = "x".repeat(80_000);
        let trailers = [
            ("a", "y".repeat(600_000)),
            ("b", long.clone()),
            ("c", long.clone()),
            ("d", long),
            ("e", "x".repeat(last)),
            ("f", "1".to_owned()),
        ];
        let trailers: Vec<_> = trailers.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let told = trailer_variables(&message(&trailers, ""), &|_| true, &|_| false);
        let bytes = |name: &str, value: &[u8]| name.len() + 1 + value.len() + 1;
        let trailers = told.variables.iter().filter(|(name, _)| !name.ends_with("BODY"));
        let total: usize = trailers.map(|(name, value)| bytes(name, value)).sum();
        (total, told.left_out)
    };
    let last = (524_288 - 6 * 80_000 - 4 * (1 + "AYNIG_TRAILER_".len() + 1 + 4)) / 2;
    assert_eq!(told(last), (524_288, vec!["A".to_owned(), "F".to_owned()]));
    let (total, left_out) = told(last + 1);
    assert_eq!(left_out, ["A", "E"]);
    assert!(total < 524_288);
}
