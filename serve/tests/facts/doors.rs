//! Who may come in (W12-W15): each rule is attacked here.

use crate::support::{SERVE, Server, UPGRADE, World, frame, head};
use std::io::{Read, Write};

const JSON: &str = "Content-Type: application/json";

/// W12: the host is one of an exact list, whatever else is right.
#[test]
fn w12_another_host_is_refused() {
    let world = World::new();
    let server = world.serve(&[]);
    let port = server.address.rsplit_once(':').unwrap().1;
    let bearer = server.bearer();
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("{}.evil.example", server.address),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{port}0"),
        format!("127.0.0.2:{port}"),
        format!("localhost.:{port}"),
        format!("x.localhost:{port}"),
        format!("[::1]:{port}"),
        format!("user@{}", server.address),
        String::new(),
    ];
    for host in &hosts {
        let line = format!("Host: {host}");
        for path in ["/", "/api/version", "/api/enter"] {
            // A page that was made to lead here says the same name as its origin.
            let origin = format!("Origin: http://{host}");
            let answer = server.ask_as("GET", path, &[&line, &origin, &bearer], "");
            assert!(matches!(answer.status, 400 | 403), "{host} {path} {answer:?}");
            assert!(!answer.text().contains("aynig.version"), "{host}");
        }
    }
    server.ask_as("GET", "/api/version", &[&bearer], "").failed(403, "host");
    let own = format!("Host: {}", server.address);
    let twice = server.ask_as("GET", "/api/version", &[&own, "Host: evil.example", &bearer], "");
    assert!(matches!(twice.status, 400 | 403), "{twice:?}");
    let whole = server.ask("GET", "http://evil.example/api/version", &[&bearer], "");
    assert!(matches!(whole.status, 400 | 403), "{whole:?}");
    let also = format!("Host: localhost:{port}");
    assert_eq!(server.ask_as("GET", "/api/version", &[&also, &bearer], "").status, 200);
}

/// W12: a name that was allowed counts, with the port.
#[test]
fn w12_an_allowed_host_and_origin_are_taken() {
    let world = World::new();
    let server = world.serve(&["--allow-host", "box.example", "--allow-origin", "http://page.example"]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let (bearer, host) = (server.bearer(), format!("Host: box.example:{port}"));
    assert_eq!(server.ask_as("GET", "/api/version", &[&host, &bearer], "").status, 200);
    server.ask_as("GET", "/api/version", &["Host: box.example", &bearer], "").failed(403, "host");
    let answer = server.ask("POST", "/api/code", &["Origin: http://page.example", &bearer, JSON], "{}");
    assert_eq!(answer.status, 200);
}

/// W12: what writes comes from an origin of ours, or brings the token itself.
#[test]
fn w12_another_origin_is_refused() {
    let world = World::new();
    let server = world.serve(&[]);
    let bearer = server.bearer();
    let port = server.address.rsplit_once(':').unwrap().1;
    let others = [
        "null".to_owned(),
        "http://evil.example".to_owned(),
        "http://127.0.0.1:1".to_owned(),
        format!("https://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}.evil.example"),
        format!("http://127.0.0.1:{port}/"),
        format!("HTTP://127.0.0.1:{port}"),
    ];
    for origin in &others {
        let origin = format!("Origin: {origin}");
        server.ask("POST", "/api/code", &[&origin, &bearer, JSON], "{}").failed(403, "origin");
        server.ask("GET", "/api/version", &[&origin, &bearer], "").failed(403, "origin");
        let code = format!("{{\"code\":{}}}", server.said["code"]);
        server.ask("POST", "/api/enter", &[&origin, JSON], &code).failed(403, "origin");
    }
    // No origin, and nothing but a code: not from a browser, and not from who has the token.
    server.ask("POST", "/api/enter", &[JSON], "{\"code\":\"x\"}").failed(403, "origin");
    let two = server.ask("POST", "/api/code", &[&server.origin(), "Origin: null", &bearer, JSON], "{}");
    two.failed(400, "invalid");
    let fetched = server.ask("GET", "/api/version", &["Sec-Fetch-Site: cross-site", &bearer], "");
    fetched.failed(403, "origin");
}

/// W12: a socket is opened from an origin of ours, or with the token as a header; and never without a token.
#[test]
fn w12_a_socket_is_opened_by_ours_alone() {
    let world = World::new();
    let server = world.serve(&[]);
    let token = format!("Sec-WebSocket-Protocol: aynig, token.{}", server.token());
    let (own, bearer) = (server.origin(), server.bearer());
    let open = |lines: &[&str]| {
        let mut text = format!("GET /api/socket HTTP/1.1\r\nHost: {}\r\n{UPGRADE}", server.address);
        lines.iter().for_each(|line| text += &format!("{line}\r\n"));
        let mut stream = server.connect();
        stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        head(&mut stream).split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    assert_eq!(open(&[&own, &token]), 101);
    assert_eq!(open(&[&bearer]), 101);
    assert_eq!(open(&[&token]), 403);
    assert_eq!(open(&["Origin: http://evil.example", &token]), 403);
    assert_eq!(open(&["Origin: null", &bearer]), 403);
    assert_eq!(open(&[&own]), 401);
    assert_eq!(open(&[&own, "Sec-WebSocket-Protocol: aynig, token.0000"]), 401);
    assert_eq!(open(&[&own, "Sec-WebSocket-Protocol: aynig, token."]), 401);
}

/// W12: nothing is told without a token of this start; another start has another.
#[test]
fn w12_no_token_no_answer() {
    let world = World::new();
    let server = world.serve(&[]);
    let token = server.token().to_owned();
    assert_eq!(token.len(), 64);
    let wrong = [
        String::new(),
        token[..63].to_owned(),
        format!("{token}0"),
        token.to_uppercase() + "g",
        "0".repeat(64),
        server.said["code"].as_str().unwrap().to_owned(),
    ];
    for path in ["/api/version", "/api/branches", "/api/branches/main/logs", "/api/openapi.json", "/api/x"] {
        server.ask("GET", path, &[], "").failed(401, "token");
        for wrong in &wrong {
            let line = format!("Authorization: Bearer {wrong}");
            server.ask("GET", path, &[&line], "").failed(401, "token");
        }
        // Never from where a log or a history keeps it.
        let answer =
            server.ask("GET", &format!("{path}?token={token}"), &[&format!("Cookie: token={token}")], "");
        answer.failed(401, "token");
    }
    drop(server);
    let again = world.serve(&[]);
    assert_ne!(again.token(), token);
    again.ask("GET", "/api/version", &[&format!("Authorization: Bearer {token}")], "").failed(401, "token");
}

/// W12: the server listens to this machine alone.
#[test]
fn w12_another_address_is_refused() {
    let world = World::new();
    for address in ["0.0.0.0", "192.0.2.1", "::"] {
        let output = world.call(SERVE, &["--bind", address]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{address}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("hint: ssh -L"), "{output:?}");
    }
}

/// W12a: what a supervisor hands in is the token, over restarts.
#[test]
fn w12a_a_token_is_handed_in() {
    let world = World::new();
    let path = world.home.path().join("token");
    let given = "0123456789abcdef".repeat(4);
    std::fs::write(&path, format!("{given}\nbox.example\n")).unwrap();
    let start = || {
        let line = format!("exec {SERVE} --json --port 0 --token-fd 5 5< {}", path.display());
        Server::start(&mut world.call("/bin/sh", &["-c", &line]))
    };
    for _ in 0..2 {
        let server = start();
        assert_eq!(server.token(), given);
        assert_eq!(server.get("/api/version").status, 200);
        let port = server.address.rsplit_once(':').unwrap().1.to_owned();
        let host = format!("Host: box.example:{port}");
        assert_eq!(server.ask_as("GET", "/api/version", &[&host, &server.bearer()], "").status, 200);
    }
    for wrong in ["", "short", &"g".repeat(64)] {
        std::fs::write(&path, wrong).unwrap();
        let line = format!("exec {SERVE} --json --port 0 --token-fd 5 5< {}", path.display());
        let output = world.call("/bin/sh", &["-c", &line]).output().unwrap();
        assert_eq!(output.status.code(), Some(129), "{output:?}");
    }
}

/// W13: a code is traded once, by a POST, from a page of ours.
#[test]
fn w13_a_code_is_good_once() {
    let world = World::new();
    let server = world.serve(&["--share"]);
    let code = server.said["code"].as_str().unwrap().to_owned();
    let enter = |code: &str| {
        let body = serde_json::json!({"code": code}).to_string();
        server.ask("POST", "/api/enter", &[&server.origin(), JSON], &body)
    };
    // By a GET nothing is given out.
    server.ask("GET", &format!("/api/enter?code={code}"), &[], "").failed(405, "method");
    enter("").failed(401, "code");
    enter(&code[1..]).failed(401, "code");
    let entered = enter(&code);
    assert_eq!(entered.status, 200);
    assert_eq!(entered.json()["token"], server.token());
    assert!(!entered.headers.contains_key("set-cookie"));
    enter(&code).failed(401, "code");
    // Another browser gets another one, from who is in.
    let next = server.post("/api/code", "{}").json()["code"].as_str().unwrap().to_owned();
    assert_eq!(enter(&next).json()["token"], server.token());

    // Who may only look looks.
    let share = server.said["share"].as_str().unwrap();
    let entered = enter(share.split_once('#').unwrap().1).json();
    assert_eq!(entered["scope"], "looks");
    let bearer = format!("Authorization: Bearer {}", entered["token"].as_str().unwrap());
    let version = server.ask("GET", "/api/version", &[&bearer], "");
    assert_eq!(version.json()["read_only"], true);
    for path in ["/api/code", "/api/branches/main/set-state", "/api/branches/main/retry"] {
        server.ask("POST", path, &[&bearer, JSON], "{}").failed(403, "refused");
    }
}

/// W13: no token and no code is where others can read it.
#[test]
fn w13_what_lets_in_is_in_no_file_and_no_argument() {
    let world = World::new();
    let server = world.serve(&[]);
    let pid = server.child.id();
    let secrets =
        [server.token().as_bytes().to_vec(), server.said["code"].as_str().unwrap().as_bytes().to_vec()];
    let mut files = vec![format!("/proc/{pid}/cmdline").into(), format!("/proc/{pid}/environ").into()];
    let mut folders = vec![world.home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path())
            } else {
                files.push(entry.path())
            }
        }
    }
    assert!(files.len() > 20);
    for file in files {
        let Ok(bytes) = std::fs::read(&file) else { continue };
        for secret in &secrets {
            assert!(!bytes.windows(secret.len()).any(|w| w == &secret[..]), "{}", file.display());
        }
    }
}

/// W14: another origin learns nothing, a form can't write, a frame shows nothing.
#[test]
fn w14_answers_are_dressed() {
    let world = World::new();
    let server = world.serve(&[]);
    let (bearer, origin) = (server.bearer(), server.origin());
    let answers = [
        server.get("/"),
        server.get("/api/version"),
        server.get("/nothing"),
        server.ask("GET", "/api/version", &[], ""),
        server.ask_as("GET", "/", &["Host: evil.example"], ""),
        server.ask("POST", "/", &[&bearer, JSON], "{}"),
    ];
    for answer in &answers {
        let header = |name: &str| answer.headers.get(name).cloned().unwrap_or_default();
        assert_eq!(header("x-content-type-options"), "nosniff", "{answer:?}");
        assert_eq!(header("referrer-policy"), "no-referrer");
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src "), "{policy}");
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(!answer.headers.keys().any(|name| name.starts_with("access-control-")), "{answer:?}");
    }
    for method in ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"] {
        let kind = "Content-Type: application/json";
        let asked = ["Access-Control-Request-Method: POST", origin.as_str(), bearer.as_str(), kind];
        let answer = server.ask(method, "/api/branches/main/retry", &asked, "");
        answer.failed(405, "method");
        assert!(!answer.headers.keys().any(|name| name.starts_with("access-control-")), "{answer:?}");
    }
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonx"]
    {
        let kind = format!("Content-Type: {kind}");
        server.ask("POST", "/api/branches/main/retry", &[&origin, &bearer, &kind], "{}").failed(415, "media");
        server.ask("POST", "/api/enter", &[&origin, &kind], "{\"code\":\"x\"}").failed(415, "media");
    }
    server.ask("POST", "/api/branches/main/retry", &[&origin, &bearer], "{}").failed(415, "media");
}

/// W14: headers, bodies and frames have an end.
#[test]
fn w14_what_is_too_large_is_refused() {
    let world = World::new();
    let server = world.serve(&[]);
    let bearer = server.bearer();
    let long = format!("X: {}", "x".repeat(64 << 10));
    assert!(matches!(server.ask("GET", "/api/version", &[&bearer, &long], "").status, 0 | 431));
    let many: Vec<String> = (0..200).map(|n| format!("X-{n}: x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain([bearer.as_str()]).collect();
    assert!(matches!(server.ask("GET", "/api/version", &many, "").status, 0 | 431));
    let path = format!("/api/branches/{}", "a".repeat(60 << 10));
    assert!(matches!(server.ask("GET", &path, &[&bearer], "").status, 0 | 414 | 431));
    let large = format!("{{\"state\":\"{}\"}}", "x".repeat(5 << 20));
    let answer = server.post("/api/branches/main/set-state", &large);
    assert!(answer.status == 413 || answer.status == 0, "{answer:?}");

    // A frame of more than a mebibyte ends its socket, and nothing else.
    let mut socket = server.socket();
    let mut bytes = vec![0x82, 0xff];
    bytes.extend((8u64 << 20).to_be_bytes());
    bytes.extend([0; 4]);
    socket.write_all(&bytes).unwrap();
    let mut rest = Vec::new();
    for _ in 0..(8 << 4) {
        if socket.write_all(&[0; 64 << 10]).is_err() {
            break;
        }
    }
    let _ = socket.read_to_end(&mut rest);
    assert!(frame(&mut socket).is_none());
    assert_eq!(server.get("/api/version").status, 200);
}

/// W14: no path leads out of what is embedded.
#[test]
fn w14_no_path_leads_elsewhere() {
    let world = World::new();
    let server = world.serve(&[]);
    std::fs::write(world.home.path().join("secret"), "a secret").unwrap();
    for path in [
        "/../secret",
        "/p/../../secret",
        "/p/x/..%2f..%2fsecret",
        "/p/%2e%2e/secret",
        "//etc/passwd",
        "/p/x//etc/passwd",
        "/api/branches/main/logs?commit=../../secret",
        "/api/branches/..%2f..%2fsecret/logs",
        "/api/branches/main/logs?commit=HEAD",
        "/api/branches/--git-dir=x/diff",
        "/api/branches/main%00/diff",
        "/api/branches/%ff/diff",
        "/api/branches/main/logs?offset=99999999999999999999",
        "/api/branches?repo=7",
        "/api/branches?repo=-1",
    ] {
        let answer = server.get(path);
        assert!(matches!(answer.status, 400 | 404), "{path} {answer:?} {}", answer.text());
        assert!(!answer.text().contains("a secret") && !answer.text().contains("root:"), "{path}");
    }
}

/// W14: what makes no sense is said to make none; nothing falls over, and no answer blames the server.
#[test]
fn w14_malformed_requests_are_refused() {
    let world = World::new();
    let server = world.serve(&[]);
    let token = server.token().to_owned();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap()
    };
    let whole = format!(
        "POST /api/branches/main/set-state?repo=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: \
         application/json\r\nConnection: close\r\nContent-Length: 33\r\n\r\n{{\"state\":\"x y\",\"message\":\"hello\"}}",
        server.address
    );
    for _ in 0..2000 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..1 + next() % 4 {
            let at = next() % bytes.len();
            match next() % 3 {
                0 => bytes[at] = u8::try_from(next() % 256).unwrap(),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, u8::try_from(next() % 256).unwrap()),
            }
        }
        let mut stream = server.connect();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let status =
            head(&mut stream).split(' ').nth(1).and_then(|status| status.parse::<u16>().ok()).unwrap_or(0);
        assert!(status < 500 && status != 422, "{status}: {}", String::from_utf8_lossy(&bytes));
    }
    assert_eq!(server.get("/api/version").status, 200);
}

/// W15: where no user said what may run, nothing is written, and the way to say it is not over HTTP.
#[test]
fn w15_an_untrusted_repository_is_only_looked_at() {
    let world = World::trusting("none");
    let server = world.serve(&[]);
    let policy = server.get("/api/version").json()["repos"][0]["policy"].clone();
    assert_eq!(policy["trusted"], false);
    assert!(policy["hint"].as_str().unwrap().ends_with(" aynig trust"), "{policy}");
    let before = world.git(&["for-each-ref"]);
    for (verb, body) in [("set-state", "{\"state\":\"build\"}"), ("retry", "{}"), ("cancel", "{}")] {
        let answer = server.post(&format!("/api/branches/main/{verb}"), body);
        answer.failed(403, "refused");
        assert_eq!(answer.json()["hint"], policy["hint"]);
    }
    assert_eq!(world.git(&["for-each-ref"]), before);
    assert_eq!(server.get("/api/branches").status, 200);
    let described = server.get("/api/openapi.json").json();
    for path in described["paths"].as_object().unwrap().keys() {
        for word in ["trust", "exec", "hooks", "provider", "config"] {
            assert!(!path.contains(word), "{path}");
        }
    }
}

/// W13: a page of others is on a name of its own, and its cookie counts there alone; it is minted by a POST of a code, and what
/// lies beyond its folder is not there.
#[test]
fn w13_a_page_of_others_has_a_cookie_of_its_own() {
    let world = World::new();
    let ui = world.home.path().join("ui");
    std::fs::create_dir_all(ui.join("assets")).unwrap();
    std::fs::write(ui.join("index.html"), "<!doctype html><title>theirs</title>").unwrap();
    std::fs::write(ui.join("assets/a.js"), "1").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", ui.join("passwd")).unwrap();
    let server = world.serve(&["--ui", ui.to_str().unwrap()]);
    let (address, code) = server.said["ui"].as_str().unwrap().split_once('#').unwrap();
    let host = address.strip_prefix("http://").unwrap().strip_suffix("/.aynig/enter").unwrap();
    assert!(host.contains(".localhost:"), "{host}");
    let at = format!("Host: {host}");
    let origin = format!("Origin: http://{host}");
    let json = "Content-Type: application/json";
    let ask = |method: &str, path: &str, headers: &[&str], body: &str| {
        server.ask_as(method, path, &[&[at.as_str()], headers].concat(), body)
    };
    assert!(ask("GET", "/", &[], "").text().contains("theirs"));
    assert!(server.ask("GET", "/", &[], "").text().contains("git-aynig"), "ours is where it was");
    assert_eq!(ask("GET", "/assets/a.js", &[], "").text(), "1");
    for path in
        ["/passwd", "/../passwd", "/assets/../index.html", "/%2e%2e/passwd", "/assets", "/.aynig/other"]
    {
        assert_eq!(ask("GET", path, &[], "").status, 404, "{path}");
    }
    let policy = &ask("GET", "/", &[], "").headers["content-security-policy"];
    assert!(
        policy.starts_with("default-src 'self'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );

    let enter = |headers: &[&str], code: &str| {
        ask("POST", "/.aynig/enter", headers, &format!("{{\"code\":\"{code}\"}}"))
    };
    enter(&[json], code).failed(403, "origin");
    enter(&["Origin: http://evil.example", json], code).failed(403, "origin");
    enter(&[&origin, json], "0123").failed(401, "code");
    let door = ask("GET", "/.aynig/enter", &[], "");
    assert!(!door.headers.contains_key("set-cookie"), "no GET gives one out");
    let answer = enter(&[&origin, json], code);
    let cookie = answer.headers["set-cookie"].clone();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    enter(&[&origin, json], code).failed(401, "code");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(ask("GET", "/api/runs", &[&cookie], "").status, 200);
    ask("GET", "/api/runs", &[], "").failed(401, "token");
    // On another name of ours, and from another origin, it is none.
    server.ask("GET", "/api/runs", &[&cookie], "").failed(401, "token");
    ask("POST", "/api/pause", &[&cookie, json], "{}").failed(403, "origin");
    ask("POST", "/api/pause", &[&cookie, "Origin: http://evil.example", json], "{}").failed(403, "origin");
    assert_eq!(ask("POST", "/api/pause", &[&cookie, &origin, json], "{}").status, 200);
    ask("GET", "/ws", &[&cookie], "").failed(403, "origin");
}
