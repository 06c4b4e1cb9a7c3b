//! How people, commands and branches talk: send, inbox, ask, answer, pause, resume.

mod ask;
mod pause;
mod send;

use crate::support::life::{Done, Life, eventually};
use serde_json::Value;

/// What a command says that is done.
const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

impl Life {
    /// The refs below `refs/aynig/<place>/`, without that.
    fn said_in(&self, place: &str) -> Vec<String> {
        let prefix = format!("refs/aynig/{place}/");
        let all = self.git(&["for-each-ref", "--format=%(refname)", &prefix]);
        all.lines().map(|name| name.strip_prefix(&prefix).unwrap().to_owned()).collect()
    }

    /// Has everything signed that is written, and a signature asked for. False where there is no program for it.
    pub(crate) fn sign(&self) -> bool {
        let key = self.path(".git/key");
        let key = key.to_str().unwrap();
        let mut keygen = std::process::Command::new("ssh-keygen");
        let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", key]).output();
        if !made.is_ok_and(|made| made.status.success()) {
            crate::support::skipped("K35: no ssh-keygen");
            return false;
        }
        let public = std::fs::read_to_string(format!("{key}.pub")).unwrap();
        self.write(".git/allowed", &format!("ada@example.com {public}"));
        self.config("gpg.format", "ssh");
        self.config("user.signingKey", key);
        self.config("gpg.ssh.allowedSignersFile", self.path(".git/allowed").to_str().unwrap());
        self.config("aynig.requireSignature", "true");
        true
    }

    /// The one question that stands, once it is asked.
    fn question(&self) -> String {
        eventually("a question", || self.said_in("asked").pop())
    }
}

impl Done {
    /// Every line of stdout as JSON, all of this schema.
    #[track_caller]
    fn objects(&self, schema: &str) -> Vec<Value> {
        let all: Vec<Value> = self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(all.iter().all(|object| object["schema"] == schema), "{self:?}");
        all
    }
}
