//! What a command learns from its environment, and which variables a trailer may never become.
//!
//! Trailers come from any pusher, and an environment variable can be code (`LD_PRELOAD`, `BASH_ENV`,
//! `NODE_OPTIONS`, ...). So a trailer makes a bare variable only where nothing of that name exists, the name
//! is on none of the lists below, and the caller allows it: no list of names is ever complete, so where
//! pushers are not trusted with code, only names that the account's owner chose become variables. In every
//! case the trailer makes `AYNIG_TRAILER_<KEY>`. Implements K15.

use super::body_line::body_said;
use super::message::Message;
use std::collections::BTreeMap;

/// Longest string of one variable that Linux takes, name and terminator included, in bytes.
pub const VARIABLE_MAX: usize = 128 * 1024;
/// Most bytes that trailers may take in an environment altogether.
pub const TRAILERS_MAX: usize = 512 * 1024;

/// Names with these beginnings are never made from a trailer.
pub const RESERVED_PREFIXES: &[&str] = &[
    "AYNIG_", "AWS_", "BASH", "CARGO_", "DBUS_", "DOCKER_", "DOTNET_", "DYLD_", "GIT_", "GO", "GRADLE_",
    "JAVA_", "JDK_", "KUBE", "LC_", "LD_", "LESS", "LUA_", "MALLOC_", "MAVEN_", "NODE_", "NPM_", "PERL",
    "PHP", "PYTHON", "RUBY", "RUST", "SHELL", "SSH_", "SUDO_", "SYSTEMD_", "XDG_", "YARN_", "ZSH",
];

/// Names with these endings are never made from a trailer.
pub const RESERVED_SUFFIXES: &[&str] = &["_PROXY", "_PRELOAD", "_WRAPPER", "_LAUNCHER", "_EDITOR", "_PAGER"];

/// These names are never made from a trailer.
pub const RESERVED_NAMES: &[&str] = &[
    "ALL_PROXY",
    "AR",
    "AS",
    "AYNIG",
    "BODY",
    "BROWSER",
    "BUNDLE_GEMFILE",
    "CC",
    "CDPATH",
    "CFLAGS",
    "CLASSPATH",
    "COLUMNS",
    "COMMIT_HASH",
    "CONFIG_SHELL",
    "CPP",
    "CPPFLAGS",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "CXX",
    "CXXFLAGS",
    "DISPLAY",
    "EDITOR",
    "ENV",
    "FPATH",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "HISTFILE",
    "HOME",
    "HOSTALIASES",
    "HOSTNAME",
    "IFS",
    "INFOPATH",
    "INPUTRC",
    "KSH_ENV",
    "LANG",
    "LANGUAGE",
    "LD",
    "LDFLAGS",
    "LOCALDOMAIN",
    "LOCPATH",
    "LOGNAME",
    "LOG_LEVEL",
    "LINES",
    "MAIL",
    "MAILPATH",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "MANPATH",
    "MFLAGS",
    "NIS_PATH",
    "NLSPATH",
    "OLDPWD",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "OPTIND",
    "PAGER",
    "PATH",
    "PKG_CONFIG_PATH",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "REQUESTS_CA_BUNDLE",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "ROLE",
    "SHLVL",
    "SSLKEYLOGFILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "STDERR_LOG_PATH",
    "STDOUT_LOG_PATH",
    "TEMP",
    "TERM",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TMP",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
    "VIMINIT",
    "EXINIT",
    "VIRTUAL_ENV",
    "VISUAL",
    "WGETRC",
    "WORKTREE_PATH",
    "ZDOTDIR",
    "ZENV",
    "_JAVA_OPTIONS",
    "MAKEOVERRIDES",
    "MAKELEVEL",
    "GNUMAKEFLAGS",
    "LIBPATH",
    "SHLIB_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "GCC_COMPARE_DEBUG",
    "COMSPEC",
    "ANT_OPTS",
    "ANT_ARGS",
    "M2_HOME",
    "SBT_OPTS",
    "SCALA_HOME",
    "KOTLIN_HOME",
    "LESSOPEN",
    "LESSCLOSE",
    "TCLLIBPATH",
    "AWKPATH",
    "AWKLIBPATH",
    "GUILE_LOAD_PATH",
    "GHCRTS",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_ZFLAGS",
    "ELIXIR_ERL_OPTIONS",
    "R_PROFILE",
    "R_PROFILE_USER",
    "R_ENVIRON",
    "R_ENVIRON_USER",
    "JULIA_LOAD_PATH",
    "TAR_OPTIONS",
    "GREP_OPTIONS",
    "UNZIP",
    "ZIPOPT",
    "GZIP",
    "BZIP2",
    "XZ_OPT",
    "XZ_DEFAULTS",
    "RSYNC_RSH",
    "CVS_RSH",
    "GPG_AGENT_INFO",
    "GNUPGHOME",
    "KRB5_CONFIG",
    "KRB5CCNAME",
    "PIP_CONFIG_FILE",
    "PIP_INDEX_URL",
    "DENO_DIR",
    "BUN_INSTALL",
    "DEBUGINFOD_URLS",
    "CORECLR_PROFILER_PATH",
    "COR_PROFILER_PATH",
    "PSMODULEPATH",
];

/// Names with these beginnings are reserved too, for tools that read any variable of that shape: where their
/// configuration is, which program they start, which file they write.
const RESERVED_TOOLS: &[&str] = &[
    "ANSIBLE_",
    "ASAN_",
    "BAT_",
    "BUNDLE_",
    "BUN_",
    "CCACHE_",
    "CHROME_",
    "CMAKE_",
    "COMPLUS_",
    "COMPOSER_",
    "COMPOSE_",
    "CONDA_",
    "CORECLR_",
    "COREPACK_",
    "COR_",
    "CURL_",
    "DENO_",
    "DIRENV_",
    "DISTCC_",
    "ELECTRON_",
    "ELIXIR_",
    "ERL_",
    "FZF_",
    "GCOV_",
    "GEM_",
    "GHC_",
    "HELM_",
    "HG",
    "HOMEBREW_",
    "JULIA_",
    "LLVM_",
    "LSAN_",
    "MISE_",
    "MIX_",
    "MSAN_",
    "MSBUILD",
    "MYSQL_",
    "NIX_",
    "NUGET_",
    "NVM_",
    "OCAML",
    "OPENSSL_",
    "PARALLEL",
    "PG",
    "PIP_",
    "PLAYWRIGHT_",
    "PNPM_",
    "POETRY_",
    "PSQL",
    "PUPPETEER_",
    "RIPGREP_",
    "SCCACHE_",
    "SVN_",
    "TF_",
    "TSAN_",
    "TS_NODE_",
    "UBSAN_",
    "UV_",
    "VAGRANT_",
    "VOLTA_",
];

/// True for a name that no trailer may set: one of this program, of the contract, or one that changes how a
/// program is found, loaded or run. `name` is upper case.
pub fn is_reserved(name: &str) -> bool {
    RESERVED_NAMES.contains(&name)
        || RESERVED_PREFIXES.iter().chain(RESERVED_TOOLS).any(|p| name.starts_with(p))
        || RESERVED_SUFFIXES.iter().any(|s| name.ends_with(s))
}

/// True for a name that becomes a variable no matter who wrote the commit: one with the contract's own
/// prefix, which no other program reads.
pub fn is_own(name: &str) -> bool {
    name.starts_with("DWP_")
}

/// True for a variable of the runner's own environment that never reaches a command: every `GIT_*` but those
/// that say how to reach a network, where configuration is, and what to trace; and every `AYNIG_*`.
pub fn is_dropped(name: &str) -> bool {
    const KEPT: &[&str] = &[
        "GIT_ASKPASS",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "GIT_SSL_KEY",
        "GIT_SSL_NO_VERIFY",
        "GIT_PROXY_COMMAND",
        "GIT_PROXY_SSL_CAINFO",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_TERMINAL_PROMPT",
    ];
    let git = name.starts_with("GIT_") && !KEPT.contains(&name) && !name.starts_with("GIT_TRACE");
    git || name.starts_with("AYNIG_") || name == "AYNIG"
}

/// Returns the name of the variable that a trailer's key becomes: upper case, `-` as `_`.
pub fn variable_name(key: &str) -> String {
    key.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_uppercase() }).collect()
}

/// The variables that a trigger's trailers and body become.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrailerVariables {
    /// Names and values, in the order of names.
    pub variables: BTreeMap<String, Vec<u8>>,
    /// Names that made no bare variable because they are reserved, exist already, begin with a digit, or were
    /// not allowed.
    pub reserved: Vec<String>,
    /// Names whose values have a NUL or did not fit, and were left out.
    pub left_out: Vec<String>,
}

/// Returns the variables of a trigger's trailers and body (K15). `wanted` says which names besides [`is_own`]
/// may become bare variables, `exists` whether the command's environment has a variable of that name already.
pub fn trailer_variables(
    trigger: &Message,
    wanted: &dyn Fn(&str) -> bool,
    exists: &dyn Fn(&str) -> bool,
) -> TrailerVariables {
    let mut told = TrailerVariables::default();
    let mut by_name: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for trailer in &trigger.trailers {
        by_name.entry(variable_name(&trailer.key)).or_default().push(&trailer.value);
    }
    let mut total = 0;
    for (name, values) in by_name {
        let all = format!("AYNIG_TRAILER_{name}");
        let joined = values.join(&b'\n');
        let last = values.last().copied().unwrap_or_default();
        let free = !is_reserved(&name) && !exists(&name) && !name.starts_with(|c: char| c.is_ascii_digit());
        let bare = free && (is_own(&name) || wanted(&name));
        let size = all.len() + joined.len() + if bare { name.len() + last.len() } else { 0 } + 4;
        total += size;
        if joined.contains(&0) || all.len() + joined.len() + 2 > VARIABLE_MAX || total > TRAILERS_MAX {
            told.left_out.push(name);
            total -= size;
            continue;
        }
        if bare {
            told.variables.insert(name, last.to_vec());
        } else {
            told.reserved.push(name);
        }
        told.variables.insert(all, joined);
    }
    tell_body(body_said(trigger), &mut told.variables);
    told
}

/// Adds the body as `BODY` and `AYNIG_BODY`, cut at a character where it is too long for one variable, or at
/// a NUL.
fn tell_body(body: &[u8], variables: &mut BTreeMap<String, Vec<u8>>) {
    let room = VARIABLE_MAX - "AYNIG_BODY=".len() - 1;
    let mut end = body.iter().position(|b| *b == 0).unwrap_or(body.len()).min(room);
    if end < body.len() {
        while end > 0 && (body[end] & 0xC0) == 0x80 {
            end -= 1;
        }
        variables.insert("AYNIG_BODY_TRUNCATED".into(), b"1".to_vec());
    }
    for name in ["BODY", "AYNIG_BODY"] {
        variables.insert(name.into(), body[..end].to_vec());
    }
}

#[cfg(test)]
mod tests;
