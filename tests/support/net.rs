//! A bare remote and machines that share it: separate clones, each with its own Git directory and slots.
//!
//! `Net::new(&[("build", "echo hi")])` has the commands on the remote's `main`; `net.event("work", "build")`
//! puts a state event on a branch there; `net.machine("a")` clones. Machines are processes on one host.
#![allow(dead_code, reason = "each test file uses its own part")]

use super::life::{Done, Life, Running, done};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

pub struct Net {
    /// The author's repository, from which everything is pushed.
    pub life: Life,
}

/// A clone.
pub struct Machine<'n> {
    pub net: &'n Net,
    pub dir: PathBuf,
}

impl Net {
    /// A bare remote whose `main` has these commands.
    pub fn new(commands: &[(&str, &str)]) -> Self {
        let net = Self { life: Life::new(commands) };
        let origin = net.origin();
        let origin = origin.to_str().unwrap();
        net.life.git(&["clone", "-q", "--bare", ".", origin]);
        net.life.git(&["remote", "add", "origin", origin]);
        net.life.git(&["fetch", "-q", "origin"]);
        net
    }

    pub fn origin(&self) -> PathBuf {
        self.life.repo.home().parent().unwrap().join("origin.git")
    }

    /// git in the remote itself.
    pub fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let output = self.life.repo.command("git").current_dir(self.origin()).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// Puts a state event on a branch of the remote.
    pub fn event(&self, branch: &str, state: &str, more: &str) -> String {
        let id = self.life.event(branch, state, more);
        // Its hooks are for those who are tested.
        let receive = "--receive-pack=env AYNIG=0 git -c core.hooksPath=/dev/null receive-pack";
        self.life.git(&["push", "-qf", receive, "origin", &format!("{id}:refs/heads/{branch}")]);
        self.life.git(&["update-ref", "-d", &format!("refs/heads/{branch}")]);
        id
    }

    /// The states of a branch there, newest first.
    pub fn states(&self, branch: &str) -> Vec<String> {
        let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
        let all = self.git(&["log", "--first-parent", format, branch]);
        all.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
    }

    pub fn rev(&self, name: &str) -> String {
        self.git(&["rev-parse", "--verify", name])
    }

    pub fn show(&self, commit: &str, path: &str) -> String {
        self.git(&["show", &format!("{commit}:{path}")])
    }

    pub fn trailer(&self, commit: &str, key: &str) -> String {
        self.git(&["log", "-1", &format!("--format=%(trailers:key={key},valueonly,separator=)"), commit])
    }

    /// A hook of the remote.
    pub fn hook(&self, name: &str, script: &str) {
        let path = self.origin().join("hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        crate::support::write_program(&path, &format!("#!/bin/sh\n{script}\n"));
    }

    pub fn machine(&self, name: &str) -> Machine<'_> {
        self.clone_as(name, &[])
    }

    pub fn clone_as(&self, name: &str, how: &[&str]) -> Machine<'_> {
        let dir = self.life.repo.home().parent().unwrap().join(name);
        let origin = format!("file://{}", self.origin().display());
        let mut args = vec!["clone", "-q"];
        args.extend(how);
        args.extend([origin.as_str(), dir.to_str().unwrap()]);
        self.life.git(&args);
        Machine { net: self, dir }
    }
}

impl Machine<'_> {
    pub fn aynig<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.net.life.aynig(args);
        command.current_dir(&self.dir);
        command
    }

    pub fn run(&self, args: &[&str]) -> Done {
        done(self.aynig(args).output().unwrap())
    }

    pub fn tick(&self, args: &[&str]) -> Done {
        self.run(&[&["tick", "--remote", "origin"], args].concat())
    }

    pub fn start_tick(&self, args: &[&str]) -> Running {
        Running::of(self.aynig(&[&["tick", "--remote", "origin"], args].concat()))
    }

    pub fn git(&self, args: &[&str]) -> String {
        let output = self.net.life.repo.command("git").current_dir(&self.dir).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }
}
