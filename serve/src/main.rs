//! `git-aynig-serve`: a window on repositories in which git-aynig runs. It can be killed at any moment: what
//! runs belongs to its own chains, and what is shown is read from Git.
//!
//! With `mcp` as its first argument, the program is the server of a flow's tools instead (`mcp`).
//!
//! This file has the arguments, the start and the end; `guard` decides which requests are let in, `routes`
//! what is answered. One thread serves, and a bounded number of others read. Implements W1, W4.

mod approvals;
mod args;
mod client;
mod fail;
mod guard;
mod keys;
mod listen;
mod live;
mod logs;
mod mcp;
mod page;
mod paging;
mod places;
mod routes;
mod runs;
mod socket;
mod state;
mod systemd;
mod talk;
mod tls;
mod ui;
mod verbs;
mod watch;

use args::Args;
use aynig::served::Place;
use clap::Parser;
use keys::{Keys, Scope};
use places::Claim;
use serde_json::json;
use state::{Served, State};
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Threads for blocking work: as many for reading as for subcommands.
const THREADS_MAX: usize = 16;

/// A start that failed: the exit code, the reason, and the command that mends it.
pub struct Stopped {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Stopped {
    fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn main() -> ExitCode {
    // `mcp` is the only first argument that is no folder: 'git aynig serve' passes a folder of that name
    // after '--'.
    if std::env::args_os().nth(1).is_some_and(|word| word == "mcp") {
        return mcp::main();
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 129 } else { 0 });
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stopped) => {
            eprintln!("error: {}", stopped.message);
            stopped.hint.iter().for_each(|hint| eprintln!("hint: {hint}"));
            ExitCode::from(stopped.code)
        }
    }
}

fn run(args: &Args) -> Result<(), Stopped> {
    if std::env::var_os("AYNIG_RUN_ID").is_some() {
        return Err(Stopped::new(2, "a page is for people: no command of a run serves one"));
    }
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(tls::acceptor(cert, key)?),
        (None | Some(_), _) => None,
    };
    if let (Some(folder), true) = (&args.ui, tls.is_some()) {
        let folder = folder.display();
        let why =
            format!("'{folder}' would be shown on a name below 'localhost', which no certificate is for");
        return Err(Stopped::new(129, why).hint("git aynig serve --ui <dir>, without --tls-cert"));
    }
    private_enough(args.bind, tls.is_some())?;
    let (token, label) = args.token_fd.map(keys::handed_in).transpose()?.unzip();
    let names: Vec<String> = args.allow_host.iter().cloned().chain(label.flatten()).collect();
    if args.bind.is_unspecified() && names.is_empty() {
        let nameless = Stopped::new(129, format!("'{}' says no name by which to ask for it", args.bind));
        return Err(nameless.hint("git aynig serve ... --allow-host <name in the certificate>"));
    }
    let places = found(&args.places)?;
    let listener = match systemd::listener()? {
        Some(handed) => handed,
        None => TcpListener::bind((args.bind, args.port)).map_err(|error| {
            let taken = Stopped::new(128, format!("cannot listen on {}:{}: {error}", args.bind, args.port));
            taken.hint("git aynig serve --port 0")
        })?,
    };
    let address = listener.local_addr().map_err(|e| Stopped::new(128, format!("cannot listen: {e}")))?;
    private_enough(address.ip(), tls.is_some())?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut hosts = guard::hosts(address, tls.is_some(), &names);
    // A certificate is for a name; without TLS, a name may lead to another machine.
    let shown = hosts.first().filter(|_| tls.is_some()).cloned().unwrap_or_else(|| address.to_string());
    let url = format!("{scheme}://{shown}/");
    // Held for as long as the process lives.
    let _claims = match args.read_only {
        true => Vec::new(),
        false => {
            let claim = |place| Claim::take(place, &url);
            places.iter().map(claim).collect::<Result<Vec<_>, _>>()?
        }
    };
    let keys = Keys::new(token);
    let ui = args.ui.as_deref().map(|folder| ui::Ui::read(folder, address.port())).transpose()?;
    let of_ui: Vec<String> = ui.iter().map(|ui| ui.host.clone()).collect();
    hosts.extend(guard::without_usual_port(&of_ui, address.port(), tls.is_some()));
    hosts.extend(of_ui);
    let origins = guard::origins(scheme, &hosts, &args.allow_origin);
    let served = Served {
        data: args.data_dir.clone(),
        places,
        program: verbs::program()?,
        read_only: args.read_only,
        hosts,
        origins,
        ui,
        tls,
    };
    let state = Arc::new(State::new(served, keys));
    announce(args, &url, &state);
    systemd::say("READY=1");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS_MAX)
        .thread_keep_alive(Duration::from_secs(10))
        .build()
        .map_err(|error| Stopped::new(128, format!("cannot start: {error}")))?;
    let ended = runtime.block_on(listen::serve(listener, state));
    systemd::say("STOPPING=1");
    // No client is left that could read an answer that is still being made.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended.map_err(|error| Stopped::new(128, format!("cannot serve: {error}")))
}

/// Refuses to serve beyond this machine without encryption.
fn private_enough(address: IpAddr, is_private: bool) -> Result<(), Stopped> {
    if address.is_loopback() || is_private {
        return Ok(());
    }
    let why = format!("'{address}' is no address of this machine alone: it needs --tls-cert and --tls-key");
    Err(Stopped::new(2, why).hint("ssh -L 4600:127.0.0.1:4600 <host>, and open it here"))
}

fn found(folders: &[PathBuf]) -> Result<Vec<Place>, Stopped> {
    let here = [PathBuf::from(".")];
    let folders = if folders.is_empty() { &here[..] } else { folders };
    let mut places: Vec<Place> = Vec::new();
    for folder in folders {
        let folder = std::fs::canonicalize(folder)
            .map_err(|error| Stopped::new(128, format!("cannot open '{}': {error}", folder.display())))?;
        let place = Place::find(&folder).map_err(|error| Stopped::new(128, error.message))?;
        if !places.iter().any(|known| known.common_dir == place.common_dir) {
            places.push(place);
        }
    }
    Ok(places)
}

/// Prints the address: on one line, or in one JSON object.
fn announce(args: &Args, url: &str, state: &State) {
    let with_code = |scope| format!("{url}#{}", state.keys.code(scope));
    let share = args.share.then(|| with_code(Scope::Looks));
    let ui = state.served.ui.as_ref().map(|ui| format!("http://{}{}#", ui.host, ui::ENTER));
    let ui = ui.map(|address| format!("{address}{}", state.keys.code(Scope::All)));
    if args.json {
        let code = state.keys.code(Scope::All);
        let token = state.keys.token(Scope::All);
        println!(
            "{}",
            json!({"schema": "aynig.serve/1", "url": url, "code": code, "token": token, "share": share,
                   "ui": ui, "pid": std::process::id()})
        );
    } else {
        // If there is a page of others, its address is the one that is meant.
        let address = ui.unwrap_or_else(|| with_code(Scope::All));
        println!("{address}");
        share.iter().for_each(|share| println!("{share} (to look only)"));
        if args.open {
            verbs::open_browser(&address);
        }
    }
}
