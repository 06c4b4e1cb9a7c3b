//! A real browser: headless Chromium, driven over HTTP by chromedriver.
//!
//! Without them the tests that need one say so, and are no proof. `AYNIG_SHOTS=<dir>` keeps a picture of each screen.

use crate::support::{PATIENCE, Server, World};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A browser, ended with the value.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

/// A chromedriver and its port. It takes one of IPv4 and the same of IPv6, ends where another process has that by then, and
/// is started again.
fn started() -> Option<(Child, u16)> {
    for _ in 0..10 {
        let started =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = started.ok()?;
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let rest = line.split_once("started successfully on port ")?.1;
            rest.trim_end_matches('.').parse().ok()
        });
        if let Some(port) = port {
            std::thread::spawn(move || lines.for_each(drop));
            return Some((driver, port));
        }
        let _ = driver.kill();
        let _ = driver.wait();
    }
    panic!("chromedriver starts, and says no port");
}

impl Browser {
    /// Starts one; `None`, and a line, where there is none here.
    pub fn start(more: &[&str]) -> Option<Self> {
        let Some((driver, port)) = started() else {
            eprintln!("skipped: there is no chromedriver here");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let mut args = vec![
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            &folder,
        ];
        args.extend(more);
        let asked = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL"}}}});
        let told = browser.ask("POST", "/session", Some(&asked));
        browser.session =
            format!("/session/{}", told["sessionId"].as_str().unwrap_or_else(|| panic!("{told}")));
        Some(browser)
    }

    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: \
            application/json\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        // It keeps its connections.
        let head = crate::support::head(&mut stream);
        let length = head
            .to_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut text = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut text).unwrap_or_else(|error| panic!("{method} {path}: {error} {head}"));
        let text = String::from_utf8(text).unwrap();
        let body = text.as_str();
        serde_json::from_str::<Value>(body).unwrap_or_else(|_| panic!("{method} {path}: {text}"))["value"]
            .clone()
    }

    pub fn post(&self, part: &str, body: &Value) -> Value {
        self.ask("POST", &format!("{}/{part}", self.session), Some(body))
    }

    pub fn open(&self, url: &str) {
        self.post("url", &json!({"url": url}));
    }

    /// What a script in the page returns.
    pub fn says(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": []}))
    }

    /// The text that is seen.
    pub fn text(&self) -> String {
        self.says("return document.body ? document.body.innerText : ''")
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    #[track_caller]
    pub fn sees(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.text().contains(text) {
            assert!(
                Instant::now() < until,
                "no {text:?} in {:?}; it said {}",
                self.text(),
                self.complaints()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Finds what is called so by its words.
    #[track_caller]
    pub fn find(&self, path: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.post("element", &json!({"using": "xpath", "value": path}));
            if let Some(found) = found["element-6066-11e4-a52e-4f735466cecf"].as_str() {
                return found.to_owned();
            }
            assert!(Instant::now() < until, "no {path} in {:?}; it said {}", self.text(), self.complaints());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Clicks at what is called so, once nothing lies over it and it is not being drawn anew.
    #[track_caller]
    pub fn click(&self, path: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let at = self.find(path);
            let answer = self.post(&format!("element/{at}/click"), &json!({}));
            let Some(error) = answer["error"].as_str() else { return };
            assert!(Instant::now() < until, "{path} takes no click: {error}: {}", answer["message"]);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses keys where the focus is.
    pub fn types(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        self.post("actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Presses a key while another is held.
    pub fn holds(&self, held: &str, key: &str) {
        let press = |kind: &str, key: &str| json!({"type": kind, "value": key});
        let keys = [press("keyDown", held), press("keyDown", key), press("keyUp", key), press("keyUp", held)];
        self.post("actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": keys}]}));
    }

    /// What the process of its tab holds in memory, in KiB.
    pub fn memory(&self) -> u64 {
        let own = self._profile.path().display().to_string();
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let is_tab = |process: &std::path::PathBuf| {
            let called = std::fs::read(process.join("cmdline")).unwrap_or_default();
            let called = String::from_utf8_lossy(&called).into_owned();
            called.contains("--type=renderer") && called.contains(&own)
        };
        let held = |process: std::path::PathBuf| -> Option<u64> {
            let rollup = std::fs::read_to_string(process.join("smaps_rollup")).ok()?;
            rollup
                .lines()
                .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok())
        };
        all.filter(is_tab).filter_map(held).max().expect("no process of a tab was found")
    }

    /// What the browser complained about: a policy that was broken, a script that failed.
    pub fn complaints(&self) -> Value {
        self.post("se/log", &json!({"type": "browser"}))
    }

    /// Every screen is within its width; a picture is kept where that was asked for.
    #[track_caller]
    pub fn fits(&self, name: &str) {
        if let Some(folder) = std::env::var_os("AYNIG_SHOTS") {
            let shot = self.ask("GET", &format!("{}/screenshot", self.session), None);
            let path = std::path::Path::new(&folder).join(format!("{name}.png.base64"));
            std::fs::write(path, shot.as_str().unwrap()).unwrap();
        }
        let wider = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
        assert_eq!(self.says(wider), json!(false), "{name} is wider than the window");
    }

    /// As wide as a telephone, and dark or light.
    pub fn looks(&self, width: u32, height: u32, scheme: &str) {
        let call = |cmd: &str, params: Value| {
            self.post("goog/cdp/execute", &json!({"cmd": cmd, "params": params}));
        };
        call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
        call(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    pub fn enter(&self, server: &Server) {
        self.open(&format!("http://{}/#{}", server.address, server.said["code"].as_str().unwrap()));
        self.find("//nav");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.ask("DELETE", &self.session, None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// A world in which something waits, something stalled, and something runs.
pub fn busy() -> World {
    let world = World::new();
    world.command("long", "echo 'running on'; printf '%s\\n' '{\"type\":\"progress\",\"text\":\"half way\",\"ratio\":0.5}' >> \"$AYNIG_EVENTS\"; echo working; sleep 600");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "long"]);
    world.aynig(&[
        "set-state",
        "build",
        "-b",
        "feature/one",
        "-m",
        "build <img src=x onerror=alert(1)>\n\n<script>alert(2)</script>",
    ]);
    world.aynig(&["set-state", "fail", "-b", "broken", "-m", "this will fail"]);
    let _ = world.call(crate::support::aynig(), &["run"]).output().unwrap();
    world
}
