//! The server as it is started, over real repositories, asked through plain sockets by clients that may and may not.
//!
//! It needs `git-aynig` beside it: `cargo build` makes it.

mod answers;
mod apart;
mod browser;
mod calls;
mod defects;
mod doors;
mod driver;
mod earlier;
mod events;
mod figures;
mod flood;
mod foreign;
mod gallery;
mod keyboard;
mod killed;
mod life;
mod mcp;
mod play;
mod remote;
mod restarts;
mod runs;
mod screens;
mod spoof;
mod stream;
mod support;
mod talk;
mod tls;
