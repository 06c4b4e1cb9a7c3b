//! Secrets that a command prints, and what of them becomes a commit: row S20.

use super::*;
use aynig::protocol::secrets::Secrets;

/// Base64 as a program of its own would make it.
fn base64(world: &World, args: &[&str], bytes: &[u8]) -> String {
    let path = world.root().join("plain");
    std::fs::write(&path, bytes).unwrap();
    let said = world.run("base64", &world.root(), &[args, &["-w0", path.to_str().unwrap()]].concat());
    said.expect(0).out
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => (b as char).to_string(),
            _ => format!("%{b:02X}"),
        })
        .collect()
}

/// The twelve ways in which a secret is printed.
fn printed(world: &World, secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|b| format!("{b:02x}")).collect();
    vec![
        secret.to_owned(),
        format!("token={secret};"),
        format!("{{\"password\": \"{secret}\"}}"),
        format!("Authorization: Bearer {secret}"),
        base64(world, &[], secret.as_bytes()),
        base64(world, &[], format!("x:{secret}").as_bytes()),
        base64(world, &[], format!("user:{secret}\n").as_bytes()),
        base64(world, &[], secret.as_bytes()).replace('+', "-").replace('/', "_"),
        percent(secret),
        hex.to_ascii_uppercase(),
        hex,
        format!("https://user:{secret}@example.com/x.git"),
    ]
}

/// K23, S20: 500 canaries in twelve forms: none is left, in any form
#[test]
fn s20_five_hundred_canaries_are_masked_in_twelve_forms() {
    let world = World::any();
    let names = [
        "API_TOKEN",
        "DB_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_AUTH",
        "SSH_PASSPHRASE",
        "CREDENTIAL",
        "K_PRIVATE",
    ];
    let (mut canaries, mut n) = (0, 0usize);
    while canaries < times(500, 120) {
        // Of every length, so that base64 falls at every offset; with what URLs and JSON make much of.
        let secret = format!("Zq{n}/{}+&=", "kV9x~Wm3".repeat(1 + n % 4));
        let secret = &secret[..8 + n % (secret.len() - 8)];
        let known = Secrets::of([(names[n % names.len()].to_owned(), secret.as_bytes().to_vec())]);
        for text in printed(&world, secret) {
            let masked = String::from_utf8(known.mask(format!("before {text} after").as_bytes())).unwrap();
            assert!(!masked.contains(secret) && masked.contains("[masked]"), "{text}: {masked}");
            let core = base64(&world, &[], secret.as_bytes());
            assert!(!masked.contains(core.trim_end_matches('=')), "{text}: {masked}");
            assert!(masked.starts_with("before ") && masked.ends_with(" after"), "{masked}");
            canaries += 1;
        }
        n += 1;
    }
    // Known to get through; CONTRACT.md says so.
    let known = Secrets::of([("API_TOKEN".to_owned(), b"s3cr3t-value".to_vec())]);
    let twice = base64(&world, &[], base64(&world, &[], b"s3cr3t-value").as_bytes());
    let missed = [twice, "s3cr3t-\nvalue".into(), "eulav-t3rc3s".into(), "s3cr3t-valu".into()];
    assert!(
        missed.iter().all(|text| known.mask(text.as_bytes()) == text.as_bytes()),
        "fewer misses than are published"
    );
}

/// K23, S20: nothing of the environment's secrets, and no well-known token, gets into a `stalled` commit
#[test]
fn s20_a_stalled_commit_holds_no_secret_that_the_command_printed() {
    let mut world = World::any();
    let shapes = [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    ];
    let script = format!(
        "echo \"token is $API_TOKEN\" >&2\nprintf %s \"x:$API_TOKEN\" | base64 >&2\n\
         echo 'fatal: https://ada:hunter22@example.com/x.git' >&2\necho '{}'\n\
         printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaA\\n-----END OPENSSH PRIVATE KEY-----\\n'\n\
         head -c 4000 /dev/zero | tr '\\0' x; echo \"$API_TOKEN\"; echo visible; exit 3",
        shapes.join(" ")
    );
    let dir = repo(&world, &[("leak", &script)]);
    world.set("API_TOKEN", "Sup3r/S3cret+Value");
    tick(&world, &dir, "leak", "work").expect(1);
    let body = world.git(&dir, &["log", "-1", "--format=%B", "work"]);
    for secret in ["Sup3r/S3cret", "b3BlbnNzaA", "hunter22"].iter().chain(&shapes) {
        assert!(!body.contains(secret), "{secret}: {body}");
    }
    assert!(body.contains("token is [masked]") && body.contains("visible"), "{body}");
    // What is only here says it all: a user who looks for a mistake needs it.
    let trigger =
        world.git(&dir, &["log", "-1", "--format=%(trailers:key=dwp-trigger,valueonly,separator=)", "work"]);
    let log = std::fs::read_to_string(dir.join(format!(".aynig/logs/{trigger}.stderr.log"))).unwrap();
    assert!(log.contains("Sup3r/S3cret+Value"));
}
