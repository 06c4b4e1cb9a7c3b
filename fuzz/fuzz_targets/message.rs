//! Messages: reading any bytes, and writing any parts, never changes what is meant (K1-K3).
//!
//! The bytes are read as a message; then cut at `0xff` into subject, body, keys and values, and written.
#![no_main]

use aynig::protocol::event::Event;
use aynig::protocol::message::{Message, Trailer};
use libfuzzer_sys::fuzz_target;

/// What holds of every message that was read.
fn check_read(message: &Message) {
    assert!(!message.subject.contains(&b'\n'));
    for trailer in &message.trailers {
        assert!(!trailer.key.is_empty());
        assert!(trailer.key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{:?}", trailer.key);
        assert!(!trailer.value.contains(&b'\n') && !trailer.value.contains(&0));
        assert_eq!(message.last(&trailer.key), message.all(&trailer.key).last());
    }
    let states = ["dwp-state", "aynig-state"].iter().any(|key| message.last(key).is_some());
    assert_eq!(Event::of(message.clone()).is_some(), states);
}

/// Written and read again it is the same, or it was refused.
fn check_written(message: &Message) {
    let Ok(raw) = message.render() else { return };
    assert!(raw.ends_with(b"\n"));
    let again = Message::parse(&raw);
    assert_eq!(again, *message);
    assert_eq!(again.render().as_deref(), Ok(&raw[..]));
    // What stands behind a NUL does not exist.
    assert_eq!(Message::parse(&[&raw[..], b"\0\n\ndwp-state: x\n"].concat()), *message);
    // Line ends of another system change no trailer.
    check_read(&again);
}

fuzz_target!(|data: &[u8]| {
    let read = Message::parse(data);
    check_read(&read);
    check_written(&read);
    if let Some(event) = Event::of(read) {
        let _ = (event.hop(), event.lease_seconds(), event.trigger(), event.origin_state(), event.run_id());
        let _ = event.clone().completed_from(&event);
    }
    let mut parts = data.split(|b| *b == 0xff);
    let (subject, body) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut trailers = Vec::new();
    while let Some(key) = parts.next() {
        let key = String::from_utf8_lossy(key).into_owned();
        trailers.push(Trailer::new(key, parts.next().unwrap_or_default()));
    }
    check_written(&Message::new(subject, body, trailers));
});
