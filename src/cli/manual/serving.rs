//! Manual page of `serve`, which serves the web page.

/// `serve`.
pub const SERVE: &str = "\
Serves a page to a browser on this machine, and prints its address: what waits for a person, what runs, every branch \
with its events, its last run's difference and its log, and what runs have cost. What is asked for there is what 'git aynig \
answer', 'send', 'set-state', 'retry', 'cancel', 'pause' and 'resume' do, by those very verbs. It is a window, not an engine: commands belong to their chains, and go on when it \
is stopped or killed; the next start shows the same.

The program is 'git-aynig-serve', a package of its own. It is looked for beside this one, then on PATH.";

/// `serve`, sections.
pub const SERVE_MORE: &str = "\
Who may come in:
Without TLS it listens on this machine alone. Every request must name a host, and come from an origin, that is its own or was given \
by --allow-host or --allow-origin. The printed address carries a code behind the '#', which is not sent: the page trades \
it, once, for a token that is new at each start and kept in memory only. Scripts take the token from --json, and send it \
as 'Authorization: Bearer <token>'. A token of --share may only look.

Beyond this machine:
Another address is served with --tls-cert and --tls-key alone: a certificate and its key, in PEM. Both are read once, at \
the start; what is wrong with them is said there. The address that is printed has the first name of --allow-host, which is \
the certificate's; for all addresses together one is needed. A person who has the token may do what this user can: a shell by \
ssh and its -L are the other way.

A repository of which the account does not say what may run (see git-aynig-trust(1)) is shown and not changed. Nothing over HTTP \
changes what may run.

Commands that the repository runs do so as the same user, and could read another process's memory. That a command \
approves its own work is prevented by signatures alone: see 'aynig.requireSignature' in git-aynig(1).

A page of others:
With --ui a folder with a page that others wrote for the shared contract of runs, nodes and edges is shown too, on a random \
name below 'localhost', and that address is printed. It gets a cookie that counts on that name alone. Its files are read \
once, at the start.

Several servers:
One server serves a repository. A second one says where the first is, and ends with 3; with --read-only it serves \
beside it.

A token that stays:
With --token-fd the token is read from a descriptor: one line of 64 hexadecimal digits. Who starts the server again \
and again hands in the same, and open pages go on.

JSON:
With --json one object for each start: url, code, token, share and ui (addresses, or null), pid.

Exit status:
  0    ended by SIGTERM or an interrupt
  2    refused: an address that is not this machine's, without TLS
  3    another server serves the repository
  128  no repository, the port is taken, a certificate or a key is not usable, or the program is missing
  129  wrong usage

Examples:
  git aynig serve --open
  git aynig serve --port 0 --json
  git aynig serve ~/src/api ~/src/site
  git aynig serve --read-only --share
  git aynig serve --bind 0.0.0.0 --allow-host box.example --tls-cert cert.pem --tls-key key.pem

See also:
  git-aynig(1), git-aynig-status(1), git-aynig-trust(1)";
