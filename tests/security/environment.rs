//! The environment as a weapon: no trailer changes how a program is found, loaded or run. Row S1.

use super::*;

/// Names that execute code or write files somewhere (reliability.md 9.2), and some of their kin.
const NAMES: &str = "LD_PRELOAD LD_AUDIT LD_DEBUG LD_DEBUG_OUTPUT LD_LIBRARY_PATH LD_BIND_NOW LD_PROFILE \
    DYLD_INSERT_LIBRARIES BASH_ENV BASHOPTS BASH_FUNC BASH_XTRACEFD ENV PS1 PS2 PS4 PROMPT_COMMAND IFS CDPATH \
    SHELLOPTS SHELL PATH HOME TMPDIR TEMP TMP PWD OLDPWD USER LOGNAME PYTHONPATH PYTHONSTARTUP PYTHONHOME \
    PYTHONINSPECT PYTHONWARNINGS PYTHONBREAKPOINT PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB NODE_OPTIONS \
    NODE_PATH NODE_EXTRA_CA_CERTS NODE_REPL_HISTORY NPM_CONFIG_PREFIX YARN_RC_FILENAME JAVA_TOOL_OPTIONS \
    JDK_JAVA_OPTIONS _JAVA_OPTIONS JAVA_OPTS CLASSPATH MAVEN_OPTS GRADLE_OPTS DOTNET_STARTUP_HOOKS PHPRC \
    PHP_INI_SCAN_DIR LUA_INIT LUA_PATH GOFLAGS GOROOT GOPATH MAKEFLAGS MAKEFILES MFLAGS GNUMAKEFLAGS MAKE \
    RUSTC_WRAPPER RUSTC RUSTFLAGS RUSTDOCFLAGS CARGO_BUILD_RUSTC_WRAPPER CARGO_HOME CC CXX LD AR CFLAGS LDFLAGS \
    GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH LC_ALL LANG LANGUAGE TZ TERM TERMINFO TERMCAP PAGER MANPAGER LESS \
    LESSOPEN LESSCLOSE EDITOR VISUAL BROWSER DISPLAY SSH_ASKPASS SSH_AUTH_SOCK SUDO_ASKPASS HTTP_PROXY \
    HTTPS_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE CURL_HOME REQUESTS_CA_BUNDLE \
    OPENSSL_CONF XDG_CONFIG_HOME XDG_DATA_DIRS XDG_CACHE_HOME DBUS_SESSION_BUS_ADDRESS SYSTEMD_EDITOR DOCKER_HOST \
    KUBECONFIG AWS_CONFIG_FILE MALLOC_CHECK_ TAR_OPTIONS RSYNC_RSH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE \
    GIT_OBJECT_DIRECTORY GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM \
    GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 GIT_CONFIG_PARAMETERS GIT_SSH GIT_SSH_COMMAND \
    GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_ASKPASS GIT_PROXY_COMMAND GIT_TRACE GIT_TRACE2 \
    GIT_TRACE_SETUP GIT_ALLOW_PROTOCOL GIT_ATTR_SOURCE GIT_REDIRECT_STDOUT COREPACK_HOME ELECTRON_RUN_AS_NODE \
    PIP_CONFIG_FILE BUNDLE_GEMFILE GEM_HOME ZDOTDIR VIMINIT KRB5_CONFIG HOSTALIASES RES_OPTIONS PSModulePath \
    AYNIG_RESULT AYNIG_DIR AYNIG_RUN_ID AYNIG BODY COMMIT_HASH ROLE LOG_LEVEL WORKTREE_PATH STDOUT_LOG_PATH \
    JULIA_LOAD_PATH R_PROFILE_USER ERL_AFLAGS GUILE_LOAD_PATH AWKPATH INPUTRC HISTFILE WGETRC CMAKE_C_COMPILER_LAUNCHER CMAKE_TOOLCHAIN_FILE CCACHE_PREFIX \
    ANSIBLE_LIBRARY TS_NODE_COMPILER RIPGREP_CONFIG_PATH FZF_DEFAULT_COMMAND PSQL_PAGER PGSERVICEFILE HGRCPATH \
    SVN_SSH NIX_CONFIG UV_INDEX_URL LLVM_PROFILE_FILE ASAN_OPTIONS COMPOSE_FILE TF_CLI_CONFIG_FILE";

/// Runs every interpreter of this machine once, git in the ways that start other programs.
const PROBE: &str = r#"exec 2>/dev/null
have() { command -v "$1" >/dev/null; }
sh -c :; sh -ic :; bash -c :; bash -lc :; bash -xc :
have python3 && { python3 -c pass; echo | python3 -i; }
have perl && perl -e 1
have node && node -e 0
have make && { echo 'all:' | make -f -; }
have ruby && ruby -e 0
have cargo && { d=$(mktemp -d) && mkdir "$d/src" && echo 'fn main() {}' >"$d/src/main.rs" &&
    printf '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n' >"$d/Cargo.toml" &&
    (cd "$d" && cargo build --offline -q); rm -rf "$d"; }
echo x >>file.txt
git status; git diff; git log -1; git ls-remote ssh://nowhere.invalid/x; git ls-remote http://nowhere.invalid/x
git stash list; git config --list
env -0 >"$PROBED"
"#;

struct Trap {
    markers: PathBuf,
}

impl Trap {
    fn new(world: &World) -> Self {
        let (root, markers) = (world.root(), world.root().join("markers"));
        std::fs::create_dir_all(root.join("trap/xdg/git")).unwrap();
        std::fs::create_dir(&markers).unwrap();
        let write = |name: &str, content: &str| {
            let path = root.join("trap").join(name);
            crate::support::write_program(&path, content);
        };
        let m = markers.display();
        write("run", &format!("#!/bin/sh\n/usr/bin/touch '{m}/run'\n"));
        for program in ["sh", "bash", "python3", "perl", "node", "git", "env", "make", "ssh", "ruby", "rustc"]
        {
            write(program, &format!("#!/bin/sh\n/usr/bin/touch '{m}/path-{program}'\n"));
        }
        write("source", &format!("/usr/bin/touch '{m}/sourced'\n"));
        write("sitecustomize.py", &format!("open('{m}/python', 'w')\n"));
        write("start.py", &format!("open('{m}/pythonstartup', 'w')\n"));
        write("evil.pm", &format!("open(F, '>', '{m}/perl'); 1;\n"));
        write("evil.js", &format!("require('fs').writeFileSync('{m}/node', '')\n"));
        write("evil.rb", &format!("File.write('{m}/ruby', '')\n"));
        write("makefile", &format!("$(shell touch '{m}/make')\n"));
        let config = format!(
            "[core]\n\tfsmonitor = {}/trap/run\n\tpager = {}/trap/run\n",
            root.display(),
            root.display()
        );
        for name in ["xdg/git/config", ".gitconfig"] {
            write(name, &config);
        }
        for name in [".bashrc", ".profile", ".bash_profile"] {
            write(name, &format!("/usr/bin/touch '{m}/home'\n"));
        }
        Self { markers }
    }

    /// The value that would do most harm under this name.
    fn value(&self, root: &Path, name: &str) -> String {
        let t = root.join("trap").display().to_string();
        let m = self.markers.display();
        match name {
            "BASH_ENV" | "ENV" => format!("{t}/source"),
            "PROMPT_COMMAND" | "PS1" | "PS4" => format!("$(/usr/bin/touch {m}/{name})"),
            "SHELLOPTS" => "xtrace".into(),
            "PYTHONPATH" | "PATH" | "HOME" | "GIT_EXEC_PATH" => t,
            "XDG_CONFIG_HOME" => format!("{t}/xdg"),
            "PYTHONSTARTUP" => format!("{t}/start.py"),
            "PERL5OPT" => format!("-I{t} -Mevil"),
            "PERL5DB" => format!("BEGIN {{ system('touch {m}/perldb') }}"),
            "NODE_OPTIONS" => format!("--require {t}/evil.js"),
            "RUBYOPT" => format!("-r{t}/evil.rb"),
            "MAKEFILES" => format!("{t}/makefile"),
            "MAKEFLAGS" | "GNUMAKEFLAGS" => format!("--eval=$(shell\\ touch\\ {m}/{name})"),
            "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" => format!("{t}/xdg/git/config"),
            "GIT_CONFIG_COUNT" => "1".into(),
            "GIT_CONFIG_KEY_0" => "core.fsmonitor".into(),
            "GIT_CONFIG_PARAMETERS" => format!("'core.fsmonitor'='{t}/run'"),
            "GIT_TRACE" | "GIT_TRACE2" | "GIT_TRACE_SETUP" | "LD_DEBUG_OUTPUT" => format!("{m}/{name}"),
            "LD_DEBUG" => "files".into(),
            _ => format!("{t}/run"),
        }
    }

    fn sprung(&self) -> Vec<String> {
        let all = std::fs::read_dir(&self.markers).unwrap().flatten();
        all.map(|e| e.file_name().into_string().unwrap()).collect()
    }

    fn reset(&self) {
        std::fs::read_dir(&self.markers)
            .unwrap()
            .flatten()
            .for_each(|e| std::fs::remove_file(e.path()).unwrap());
    }
}

/// The trap works: set outright, these names do run code or write files.
fn control(world: &World, trap: &Trap, dir: &Path) -> usize {
    let probe = world.root().join("probe.sh");
    std::fs::write(&probe, PROBE).unwrap();
    // Each name, and the program that it is a weapon against.
    let singly = [
        ("BASH_ENV", "bash"),
        ("ENV", "sh"),
        ("PYTHONPATH", "python3"),
        ("PYTHONSTARTUP", "python3"),
        ("PERL5OPT", "perl"),
        ("NODE_OPTIONS", "node"),
        ("RUBYOPT", "ruby"),
        ("MAKEFILES", "make"),
        ("RUSTC_WRAPPER", "cargo"),
        ("RUSTC", "cargo"),
        ("GIT_CONFIG_GLOBAL", "git"),
        ("GIT_EXTERNAL_DIFF", "git"),
        ("GIT_SSH_COMMAND", "git"),
        ("GIT_TRACE", "git"),
        ("GIT_TRACE2", "git"),
        ("XDG_CONFIG_HOME", "git"),
        ("HOME", "git"),
        ("PATH", "sh"),
    ];
    let have = |program: &str| {
        let script = format!("command -v {program}");
        world.run("/bin/sh", dir, &["-c", &script]).code == 0
    };
    let mut caught = 0;
    for (name, program) in singly {
        if !have(program) {
            support::skipped(&format!("S1: no {program} here to try {name} on"));
            continue;
        }
        trap.reset();
        let mut command = world.command("/bin/sh", dir);
        command.arg(&probe).env("PROBED", "/dev/null").env(name, trap.value(&world.root(), name));
        command.output().unwrap();
        world.git(dir, &["checkout", "-q", "file.txt"]);
        assert!(!trap.sprung().is_empty(), "the trap does not catch {name}");
        caught += 1;
    }
    trap.reset();
    caught
}

/// Puts the toolchain that builds this on the PATH, without its wrapper.
fn with_cargo(world: &mut World) {
    let Some(bin) = std::env::var_os("CARGO").map(PathBuf::from).and_then(|c| Some(c.parent()?.to_owned()))
    else {
        return;
    };
    for program in ["cargo", "rustc"] {
        if bin.join(program).exists() {
            std::os::unix::fs::symlink(bin.join(program), world.root().join("bin").join(program)).unwrap();
        }
    }
}

/// K15, S1: every name as a trailer, 0 executions
#[test]
fn s01_no_trailer_makes_a_program_run_code() {
    let names: Vec<&str> = NAMES.split_whitespace().collect();
    assert!(names.len() >= 120, "{}", names.len());
    let mut world = World::any();
    let dir = world.init("repo");
    Place::new(&world, &dir).seed();
    let trap = Trap::new(&world);
    with_cargo(&mut world);
    let caught = control(&world, &trap, &dir);
    assert!(caught >= 8, "too little is installed here to say anything: {caught}");
    let script = format!("#!/bin/sh\n(\n{PROBE})\necho 'SET_STATE {{\"state\":\"done\"}}'\n");
    world.commit_files(&dir, "main", &[(".aynig/command/probe", &script)], "probe");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    let probed = world.root().join("probed");
    world.set("PROBED", &probed);
    // Without HOME and the like in the runner's own environment only the list protects.
    for without in [&[][..], &["HOME", "LC_ALL", "TMPDIR"]] {
        for name in without {
            world.vars.remove(std::ffi::OsStr::new(name));
        }
        let mut message = "attack\n\ndwp-state: probe\n".to_owned();
        for name in &names {
            let key = name.to_lowercase().replace('_', "-");
            // As written in capitals too: a trailer's key may have any case.
            let key = if name.len() % 2 == 0 { key } else { key.to_uppercase() };
            message += &format!("{key}: {}\n", trap.value(&world.root(), name));
        }
        let branch = format!("attack{}", without.len());
        world.raw_commit(&dir, &branch, message.as_bytes());
        let mut tick = world.command("git", &dir);
        tick.args(["-c", "aynig.commandsFrom=branch", "aynig", "tick", &branch]);
        let said = Said::from(tick.output().unwrap()).expect(0);
        assert!(said.out.contains("probe -> done"), "{}{}", said.out, said.err);
        assert_eq!(trap.sprung(), Vec::<String>::new(), "executed");
        let env = std::fs::read(&probed).unwrap();
        let vars: Vec<&[u8]> = env.split(|b| *b == 0).collect();
        for name in &names {
            let ours = format!("{}={}", name.to_uppercase(), trap.value(&world.root(), name));
            assert!(!vars.contains(&ours.as_bytes()), "{ours}");
            let told = format!("AYNIG_TRAILER_{}={}", name.to_uppercase(), trap.value(&world.root(), name));
            assert!(vars.contains(&told.as_bytes()), "{told}");
        }
    }
}
