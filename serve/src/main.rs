//! `git-aynig-serve`: a window on repositories that git-aynig ticks. It may be killed at any moment: what runs belongs to
//! its chains, and what is shown is read from Git.
//!
//! Arguments, the start and the end are here; `guard` says who may come in, `routes` what is answered. One thread
//! serves, and a bounded number of others reads. Implements W1, W4.

mod approvals;
mod args;
mod fail;
mod guard;
mod keys;
mod listen;
mod live;
mod logs;
mod page;
mod paging;
mod places;
mod routes;
mod runs;
mod socket;
mod state;
mod systemd;
mod talk;
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
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// A start that came to nothing: the exit code, what failed, and the command that mends it.
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
    if !args.bind.is_loopback() {
        let refused = Stopped::new(2, format!("'{}' is no address of this machine alone", args.bind));
        return Err(refused.hint("ssh -L 4600:127.0.0.1:4600 <host>, and open it here"));
    }
    let (token, label) = args.token_fd.map(keys::handed_in).transpose()?.unzip();
    let places = found(&args.places)?;
    let listener = match systemd::listener()? {
        Some(handed) => handed,
        None => TcpListener::bind((args.bind, args.port)).map_err(|error| {
            let taken = Stopped::new(128, format!("cannot listen on {}:{}: {error}", args.bind, args.port));
            taken.hint("git aynig serve --port 0")
        })?,
    };
    let address = listener.local_addr().map_err(|e| Stopped::new(128, format!("cannot listen: {e}")))?;
    if !address.ip().is_loopback() {
        return Err(Stopped::new(2, format!("'{address}' is no address of this machine alone")));
    }
    let url = format!("http://{address}/");
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
    let mut hosts = guard::hosts(address, args.allow_host.iter().chain(label.flatten().iter()));
    hosts.extend(ui.iter().map(|ui| ui.host.clone()));
    let origins = guard::origins(&hosts, &args.allow_origin);
    let served = Served {
        data: args.data_dir.clone(),
        places,
        program: verbs::program()?,
        read_only: args.read_only,
        hosts,
        origins,
        ui,
    };
    let state = Arc::new(State::new(served, keys));
    announce(args, &url, &state);
    systemd::say("READY=1");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .thread_keep_alive(Duration::from_secs(10))
        .build()
        .map_err(|error| Stopped::new(128, format!("cannot start: {error}")))?;
    let ended = runtime.block_on(listen::serve(listener, state));
    systemd::say("STOPPING=1");
    // A question that is still being answered is of no interest to any client now.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended.map_err(|error| Stopped::new(128, format!("cannot serve: {error}")))
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

/// Says where it is: one line, or one object.
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
        // With a page of others that is the one that is meant.
        let address = ui.unwrap_or_else(|| with_code(Scope::All));
        println!("{address}");
        share.iter().for_each(|share| println!("{share} (to look only)"));
        if args.open {
            verbs::open_browser(&address);
        }
    }
}
