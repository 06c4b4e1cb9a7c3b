//! How messages are written and read, and how foreign refs and commits are refused.

use super::*;
use proptest::prelude::*;

fn id(n: u64) -> MessageId {
    MessageId::v7(n, 0, [n as u8 | 0xa0; 8])
}

fn commit(n: u8) -> ObjectId {
    ObjectId::from_bytes(&[n; 20]).unwrap()
}

fn letter() -> Letter {
    Letter {
        id: id(5),
        kind: Kind::new("message").unwrap(),
        from: "Ada <ada@example.com>".into(),
        hop: 0,
        seen: Some(commit(1)),
        attached: None,
        question: None,
        choice: None,
        trailers: vec![Trailer::new("ticket", "7")],
        text: "Use the other one.\n\ndwp-state: build".into(),
    }
}

/// K46.
#[test]
fn a_kind_is_one_lower_case_word() {
    for good in ["message", "a", "a-b9", &"a".repeat(64)] {
        assert_eq!(Kind::new(good).unwrap().as_str(), good);
    }
    for bad in ["", "A", "9a", "-a", "a/b", "a b", "a.b", "é", "a\n", &"a".repeat(65)] {
        assert_eq!(Kind::new(bad), Err(BadKind), "{bad}");
    }
}

/// K46: a sender may choose the id, which must have exactly the form of one.
#[test]
fn an_id_is_read_as_it_is_written_and_no_other_text_is_one() {
    let text = "0192f0a0-1234-7abc-8def-0123456789ab";
    let id: MessageId = text.parse().unwrap();
    assert_eq!((id.to_string().as_str(), id.millis()), (text, 0x0192_f0a0_1234));
    let upper = text.to_ascii_uppercase();
    let bad = [
        "",
        "0192f0a0-1234-4abc-8def-0123456789ab",
        "0192f0a0-1234-7abc-cdef-0123456789ab",
        "0192f0a012347abc8def0123456789ab",
        "0192f0a0-1234-7abc-8def-0123456789a",
        "0192f0a0-1234-7abc-8def-0123456789abc",
        "0192f0a0-1234-7abc-8def+0123456789ab",
        "0192f0a0-1234-7abc-8def-0123456789a/",
        &upper,
    ];
    for bad in bad {
        assert_eq!(bad.parse::<MessageId>(), Err(BadId), "{bad}");
    }
}

/// K46: a sender's ids rise whatever its clock does.
#[test]
fn each_id_of_a_sender_sorts_after_the_one_before() {
    let mut last = None;
    for millis in [5, 5, 4, 9, 9, 0, 10, u64::MAX, u64::MAX] {
        let next = MessageId::after(last, millis, [0xff; 8]);
        assert!(last < Some(next) && last.is_none_or(|last| last.to_string() < next.to_string()));
        assert_eq!(next.to_string().parse(), Ok(next));
        last = Some(next);
    }
    let full = MessageId::v7(5, 0xfff, [0xff; 8]);
    let next = MessageId::after(Some(full), 5, [0; 8]);
    assert!(next > full && next.millis() == 6);
}

/// K46, K49a: equal sources and parts give the same id, and others another one.
#[test]
fn a_derived_id_is_its_sources_and_no_others() {
    let one = derived_id(7, &[b"a", b"bc"]);
    assert_eq!(one, derived_id(7, &[b"a", b"bc"]));
    assert_eq!((one.millis(), one.to_string().parse()), (7, Ok(one)));
    for other in [derived_id(7, &[b"ab", b"c"]), derived_id(7, &[b"abc"]), derived_id(8, &[b"a", b"bc"])] {
        assert_ne!(one, other);
    }
    assert_ne!(answer_id(id(5)), answer_id(id(6)));
    assert_eq!(answer_id(id(5)).millis(), 5);
}

/// K46, K46a: a deeper name belongs to another branch.
#[test]
fn a_waiting_messages_name_says_branch_kind_and_id() {
    let kind = Kind::new("handoff").unwrap();
    for branch in [&b"main"[..], b"a/b/c", b"message", b"caf\xe9"] {
        let name = inbox_ref(branch, &kind, id(1));
        assert!(name.starts_with(&inbox_prefix(branch)));
        let read = InboxRef { branch: branch.to_vec(), kind: kind.clone(), id: id(1) };
        assert_eq!(parse_inbox_ref(&name), Some(read));
    }
    let id = id(1).to_string();
    for bad in [
        format!("refs/aynig/inbox/handoff/{id}"),
        format!("refs/aynig/inbox//handoff/{id}"),
        format!("refs/aynig/inbox/main/Handoff/{id}"),
        format!("refs/aynig/inbox/main/handoff/{id}/x"),
        format!("refs/aynig/inboxes/main/handoff/{id}"),
        format!("refs/aynig/inbox/main/handoff/{}", id.to_ascii_uppercase()),
        "refs/aynig/inbox/".into(),
    ] {
        assert_eq!(parse_inbox_ref(bad.as_bytes()), None, "{bad}");
    }
    let heard = heard_ref(id.parse().unwrap());
    assert_eq!(parse_id_ref(HEARD_REFS, &heard), id.parse().ok());
    assert_eq!(parse_id_ref(ASKED, &heard), None);
}

/// K46: a message reads back as it was sent, and a text adds no trailer.
#[test]
fn a_letter_reads_as_it_was_written() {
    let text = letter();
    let written = text.message().unwrap().render().unwrap();
    assert_eq!(Letter::read(&Message::parse(&written), &[]), Ok(text.clone()));
    let work = Letter { seen: None, attached: Some(commit(2)), hop: 4, ..text };
    let written = work.message().unwrap().render().unwrap();
    assert!(written.starts_with(b"aynig: message from Ada <ada@example.com>\n"));
    assert_eq!(Letter::read(&Message::parse(&written), &[commit(2)]), Ok(work));
}

/// K49a.
#[test]
fn an_answer_names_its_question_and_its_choice() {
    let kind = Kind::new("answer").unwrap();
    let answer = Letter { kind, question: Some(id(9)), choice: Some("yes".into()), ..letter() };
    let message = Message::parse(&answer.message().unwrap().render().unwrap());
    assert_eq!(Letter::read(&message, &[]), Ok(answer.clone()));
    let none = Letter { question: None, ..answer }.message().unwrap();
    assert_eq!(Letter::read(&none, &[]), Err(BadLetter::Question));
}

/// K46, K4a, K9: what an attacker writes is bounded, and sets no trailer that is a runner's.
#[test]
fn a_foreign_letter_is_refused_or_read_without_what_its_sender_may_not_say() {
    let good = letter().message().unwrap();
    let with = |key: &str, value: &str| {
        let mut message = good.clone();
        message.trailers.push(Trailer::new(key, value));
        Letter::read(&message, &[])
    };
    assert_eq!(with("dwp-message", "x"), Err(BadLetter::Id));
    assert_eq!(with("dwp-kind", "../x"), Err(BadLetter::Kind));
    assert_eq!(with("dwp-hop", "-1").unwrap().hop, u32::MAX);
    assert_eq!(with("Dwp-State", "build").unwrap().trailers, letter().trailers);
    assert_eq!(with("dwp-heard", "x").unwrap().trailers, letter().trailers);
    assert_eq!(Letter::read(&good, &[commit(1), commit(2)]), Err(BadLetter::Parents(2)));
    let long = Message { body: vec![b'a'; TEXT_MAX + 1], ..good.clone() };
    assert_eq!(Letter::read(&long, &[]), Err(BadLetter::TooLong(TEXT_MAX + 1)));
    let at = |kind: &str, n| InboxRef { branch: b"b".to_vec(), kind: Kind::new(kind).unwrap(), id: id(n) };
    assert!(Letter::read_at(&at("message", 5), &good, &[]).is_ok());
    assert_eq!(Letter::read_at(&at("message", 6), &good, &[]), Err(BadLetter::OtherId(id(5))));
    let other = BadLetter::OtherKind(letter().kind);
    assert_eq!(Letter::read_at(&at("handoff", 5), &good, &[]), Err(other));
}

proptest! {
    #[test]
    fn any_bytes_are_a_letter_or_none(raw in any::<Vec<u8>>(), from in "\\PC*", text in "\\PC{0,200}") {
        let _ = Letter::read(&Message::parse(&raw), &[]);
        let _ = parse_inbox_ref(&raw);
        let letter = Letter { from, text, ..letter() };
        if let Ok(message) = letter.message() {
            let read = Letter::read(&Message::parse(&message.render().unwrap()), &[]).unwrap();
            prop_assert_eq!(read.id, letter.id);
            prop_assert_eq!(read.trailers, letter.trailers);
        }
    }

    #[test]
    fn ids_are_written_and_read(millis in any::<u64>(), count in any::<u16>(), random in any::<[u8; 8]>()) {
        let id = MessageId::v7(millis, count, random);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        let derived = derived_id(millis, &[&random]);
        prop_assert_eq!(derived.to_string().parse(), Ok(derived));
    }
}
