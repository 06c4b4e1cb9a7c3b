//! The arguments, as `git aynig serve` passes them on; its manual page says what they mean.

use clap::Parser;
use std::net::IpAddr;
use std::path::PathBuf;

/// Serves the page of git-aynig to this machine; see git-aynig-serve(1)
#[derive(Debug, Parser)]
#[command(name = "git-aynig-serve", version)]
pub struct Args {
    /// Folders of repositories
    #[arg(value_name = "DIR")]
    pub places: Vec<PathBuf>,
    /// The port; 0 takes any that is free
    #[arg(long, default_value_t = 4600)]
    pub port: u16,
    /// The address; without TLS of this machine itself
    #[arg(long, default_value = "127.0.0.1")]
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
    #[arg(long)]
    pub allow_host: Vec<String>,
    /// Also take requests from pages of this origin
    #[arg(long)]
    pub allow_origin: Vec<String>,
    /// Read the token from this descriptor
    #[arg(long)]
    pub token_fd: Option<i32>,
    /// The certificates to show, in PEM, its own first
    #[arg(long, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Their key, in PEM
    #[arg(long, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Also show the page in this folder, on a name of its own
    #[arg(long)]
    pub ui: Option<PathBuf>,
    /// Where flows' logs are kept
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Print address, code and token as one JSON object
    #[arg(long)]
    pub json: bool,
}
