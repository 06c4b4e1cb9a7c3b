//! Calls of our tools in an agent's text. (N7)

use aynig::agents::tool_calls::{CALLS_MAX, apart};
use proptest::prelude::*;

#[test]
fn a_line_that_is_exactly_a_call_is_one_and_is_cut_out() {
    let text = "Done: the parser works.\n{\"tool_call\":{\"id\":\"c1\",\"name\":\"send_handoff\",\"args\":{\"to\":\"b\"}}}\n  \
                { \"tool_call\" : {\"name\":\"finish_run\"}}  \nBye.";
    let found = apart(text, false);
    assert_eq!(found.text, "Done: the parser works.\nBye.");
    let calls: Vec<_> =
        found.calls.iter().map(|call| (call.id.as_deref(), call.name.as_str(), call.args.len())).collect();
    assert_eq!(calls, [(Some("c1"), "send_handoff", 1), (None, "finish_run", 0)]);
    assert!(found.problems.is_empty());
}

#[test]
fn a_line_that_only_looks_like_a_call_stays_and_is_reported() {
    for (line, why) in [
        ("{\"tool_call\":{\"name\":\"x\"}", "no JSON"),
        ("{\"tool_call\": \"x\"}", "no object"),
        ("{\"tool_call\":{\"args\":{}}}", "without a name"),
        ("{\"tool_call\":{\"name\":\"\"}}", "without a name"),
        ("{\"tool_call\":{\"name\":\"x\",\"args\":[]}}", "args are no object"),
        ("{\"tool_call\":{\"name\":\"x\"},\"more\":1}", "more beside it"),
    ] {
        let found = apart(line, false);
        assert_eq!((found.calls.len(), found.text.as_str()), (0, line));
        assert!(found.problems[0].contains(why), "{line}: {:?}", found.problems);
    }
    for line in
        ["Say {\"tool_call\":{\"name\":\"x\"}}", "{\"a\":1}", "{", "[1]", "{\"name\":\"x\",\"args\":{}}"]
    {
        assert_eq!(
            apart(line, false),
            aynig::agents::tool_calls::Apart { text: line.to_owned(), ..Default::default() }
        );
    }
}

#[test]
fn the_jsonl_protocol_has_two_more_forms() {
    for line in [
        "{\"tool\":\"command\",\"args\":{\"cmd\":\"ls\"}}",
        "{\"name\":\"command\",\"params\":{\"cmd\":\"ls\"},\"id\":\"t\"}",
    ] {
        assert_eq!(apart(line, true).calls[0].name, "command");
    }
    assert!(apart("{\"name\":\"x\"}", true).calls.is_empty());
}

#[test]
fn one_message_makes_so_many_calls_and_no_more() {
    let text = "{\"tool_call\":{\"name\":\"x\"}}\n".repeat(CALLS_MAX + 2);
    let found = apart(&text, false);
    assert_eq!((found.calls.len(), found.problems.len()), (CALLS_MAX, 2));
}

proptest! {
    #[test]
    fn no_text_is_lost_and_none_breaks_it(text in "(\\{\"tool_call\":|\\{|\\}|\"name\":\"x\"|\n|[a-z ]){0,30}") {
        let found = apart(&text, true);
        if found.calls.is_empty() {
            prop_assert_eq!(found.text, text);
        }
    }
}
