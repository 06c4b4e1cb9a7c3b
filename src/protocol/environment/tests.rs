//! K15.

use super::*;
use crate::protocol::message::Trailer;

fn message(trailers: &[(&str, &str)], body: &str) -> Message {
    let trailers = trailers.iter().map(|(k, v)| Trailer { key: (*k).into(), value: (*v).into() }).collect();
    Message::new("s", body.as_bytes(), trailers)
}

#[test]
fn a_trailer_is_told_bare_and_in_full() {
    let told = tell(&message(&[("dwp-state", "build"), ("my-key", "1"), ("my-key", "2")], "b"), &|_| false);
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
        let told = tell(&message(&[(key, "x")], ""), &|_| false);
        let name = variable_name(key);
        assert!(told.variables.get(&name).is_none_or(|v| v.is_empty()), "{key}");
        assert_eq!(told.variables[&format!("AYNIG_TRAILER_{name}")], b"x");
    }
}

#[test]
fn a_trailer_never_overwrites_what_exists() {
    let told = tell(&message(&[("my-key", "x")], ""), &|name| name == "MY_KEY");
    assert!(!told.variables.contains_key("MY_KEY"));
    assert_eq!(told.reserved, ["MY_KEY"]);
}

#[test]
fn a_body_too_large_is_cut_at_a_character() {
    let told = tell(&message(&[], &"ü".repeat(100_000)), &|_| false);
    let body = &told.variables["BODY"];
    assert!(body.len() < VARIABLE_MAX && std::str::from_utf8(body).is_ok());
    assert_eq!(told.variables["AYNIG_BODY_TRUNCATED"], b"1");
}

#[test]
fn values_that_do_not_fit_are_left_out_and_named() {
    let told = tell(&message(&[("big", &"x".repeat(200_000)), ("small", "1")], ""), &|_| false);
    assert_eq!(told.left_out, ["BIG"]);
    assert_eq!(told.variables["SMALL"], b"1");
}
