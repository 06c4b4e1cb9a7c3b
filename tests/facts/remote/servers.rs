//! Pushes over real transports, to a real sshd and a real web server on loopback.

use crate::support::Repo;
use crate::support::life::{BIN, Life, done, eventually};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server process, ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A bare repository with hooks, a user who pushes to it, and a place without odd characters for both.
struct World {
    life: Life,
    server: Repo,
    place: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let life = Life::new(&[
            (
                "slow",
                "echo started; timeout 150 sh -c 'read x <\"$HOME/gate\"'; echo 'SET_STATE {\"state\":\"done\"}'",
            ),
            ("build", "echo said by build; echo 'SET_STATE {\"state\":\"done\"}'"),
        ]);
        let server = Repo::build().bare().create().unwrap();
        let place = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(server.path(), place.path().join("r.git")).unwrap();
        life.git(&["push", "-q", server.path().to_str().unwrap(), "main"]);
        server.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/main"]);
        server.git(&["config", "http.receivepack", "true"]);
        let installed = done(server.command(BIN).args(["hooks", "install"]).output().unwrap());
        assert_eq!(installed.code, Some(0), "{installed:?}");
        Self { life, server, place }
    }

    fn state(&self, branch: &str) -> String {
        self.server.git(&["log", "-1", "--format=%(trailers:key=dwp-state,valueonly,separator=)", branch])
    }

    /// A push, and what the pusher saw.
    fn push(&self, url: &str, ssh: Option<&str>, args: &[&str]) -> String {
        let mut command = self.life.repo.command("git");
        if let Some(ssh) = ssh {
            command.env("GIT_SSH_COMMAND", ssh);
        }
        let output = command.args(["push", "-q"]).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{url}: {said}");
        said
    }

    /// The same for every transport.
    fn plays(&self, url: &str, ssh: Option<&str>) {
        self.life.event("work", "slow", "");
        let gate = self.server.home().join("gate");
        nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut gate = fs::File::options().read(true).write(true).open(gate).unwrap();
        let said = self.push(url, ssh, &[url, "work"]);
        assert!(said.contains("aynig: slow dispatched on work (run "), "{said}");
        assert_ne!(self.state("work"), "done", "who pushes is not held");
        eventually("leased", || (self.state("work") == "working").then_some(()));
        gate.write_all(b"go\n").unwrap();
        eventually("done", || (self.state("work") == "done").then_some(()));
        self.life.event("stream", "build", "");
        let said = self.push(url, ssh, &["-o", "aynig.wait", url, "stream"]);
        assert!(said.contains("said by build") && self.state("stream") == "done", "{said}");
        self.server.assert_sound();
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    let found = places.iter().map(|p| Path::new(p).join(name)).find(|p| p.exists());
    if found.is_none() {
        crate::support::skipped(&format!("{name} is not installed"));
    }
    found
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn listens(port: u16) {
    eventually("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
}

fn executable(path: &Path, text: &str) {
    crate::support::write_program(path, text);
}

/// K39
#[test]
fn a_push_over_ssh() {
    let (Some(sshd), Some(keygen)) = (program("sshd"), program("ssh-keygen")) else { return };
    let world = World::new();
    let dir = world.place.path();
    for key in ["host", "user"] {
        let made =
            Command::new(&keygen).args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key)).status();
        assert!(made.unwrap().success());
    }
    let login = dir.join("login");
    let home = world.server.home();
    let path = std::env::var("PATH").unwrap();
    executable(
        &login,
        &format!(
            "#!/bin/sh\nexec env -i PATH='{path}' HOME='{}' GIT_CONFIG_NOSYSTEM=1 sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
            home.display()
        ),
    );
    let public = fs::read_to_string(dir.join("user.pub")).unwrap();
    fs::write(dir.join("authorized"), format!("command=\"{}\" {public}", login.display())).unwrap();
    let port = free_port();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n",
        dir.display()
    );
    fs::write(dir.join("sshd_config"), config).unwrap();
    // Where it separates privileges it wants this folder.
    let _ = fs::create_dir_all("/run/sshd");
    let log = fs::File::create(dir.join("log")).unwrap();
    let mut command = Command::new(sshd);
    command.args(["-D", "-e", "-f"]).arg(dir.join("sshd_config")).stdin(Stdio::null()).stderr(log);
    let _server = Server(command.spawn().unwrap());
    listens(port);
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap().name;
    let ssh = format!(
        "ssh -i {} -p {port} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o IdentitiesOnly=yes \
         -o LogLevel=ERROR",
        dir.join("user").display()
    );
    let url = format!("ssh://{user}@127.0.0.1:{port}{}/r.git", dir.display());
    world.plays(&url, Some(&ssh));
}

/// K39
#[test]
fn a_push_over_smart_http() {
    let Some(lighttpd) = program("lighttpd") else { return };
    let world = World::new();
    let dir = world.place.path();
    let exec = world.life.git(&["--exec-path"]);
    if !Path::new(&exec).join("git-remote-http").exists() {
        return crate::support::skipped("this Git was built without HTTP");
    }
    let port = free_port();
    let config = format!(
        "server.document-root = \"{dir}\"\nserver.port = {port}\nserver.bind = \"127.0.0.1\"\n\
         server.errorlog = \"{dir}/errors\"\nserver.upload-dirs = ( \"{dir}\" )\n\
         server.modules = ( \"mod_alias\", \"mod_setenv\", \"mod_cgi\" )\n\
         alias.url = ( \"/git\" => \"{exec}/git-http-backend\" )\ncgi.assign = ( \"\" => \"\" )\n\
         setenv.set-environment = ( \"GIT_PROJECT_ROOT\" => \"{dir}\", \"GIT_HTTP_EXPORT_ALL\" => \"1\",\n\
         \"HOME\" => \"{home}\", \"GIT_CONFIG_NOSYSTEM\" => \"1\", \"PATH\" => \"{path}\" )\n",
        dir = dir.display(),
        home = world.server.home().display(),
        path = std::env::var("PATH").unwrap()
    );
    fs::write(dir.join("lighttpd.conf"), config).unwrap();
    let mut command = Command::new(lighttpd);
    command.args(["-D", "-f"]).arg(dir.join("lighttpd.conf")).stdin(Stdio::null());
    let _server = Server(command.spawn().unwrap());
    listens(port);
    world.plays(&format!("http://127.0.0.1:{port}/git/r.git"), None);
}
