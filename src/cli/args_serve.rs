//! Arguments of the verbs that become `git-aynig-serve`: the web page, and the server of a flow's tools.
//!
//! They are kept as typed; the code of each verb interprets them. Implements W4, N7 (flags).

use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

/// `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Folders of repositories [default: the one that you stand in]
    #[arg(value_name = "DIR")]
    pub places: Vec<PathBuf>,
    /// The port; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 4600)]
    pub port: u16,
    /// The address; without TLS of this machine itself
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Open it in the browser
    #[arg(long)]
    pub open: bool,
    /// Change nothing, and stand beside another server
    #[arg(long)]
    pub read_only: bool,
    /// Also print an address for a person who may only look
    #[arg(long)]
    pub share: bool,
    /// Also answer to this name, as NAME:PORT
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<String>,
    /// Also take requests from pages of this origin
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Read the token from this descriptor, so that it stays the same over restarts
    #[arg(long, value_name = "N")]
    pub token_fd: Option<i32>,
    /// The certificates to show, in PEM, the server's own first
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Their private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Also show the page in this folder, which others wrote, on a name of its own
    #[arg(long, value_name = "DIR")]
    pub ui: Option<PathBuf>,
    /// Where flows' logs are kept [default: aynig.dataDir, else aynig/data in the Git directory]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print address, code and token as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `mcp`.
#[derive(Debug, Args)]
pub struct Mcp {
    /// Where the turn listens
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
}
