//! How programs are called: the arguments that were seen to work, and those that keep a branch's own settings out. (N9a)

use super::transcripts::{all, of};
use aynig::agents::Talk;
use aynig::agents::claude::session_file;
use aynig::agents::custom::{Custom, Protocol};
use aynig::agents::gemini::settings;
use aynig::agents::{Call, Resume, Tools, Turn, admit, program, turn};
use aynig::contract::id::TurnId;
use aynig::contract::prompt::PromptKind;
use aynig::contract::words::Provider;
use std::path::Path;
use std::sync::LazyLock;

static PLAIN: LazyLock<Turn> = LazyLock::new(|| Turn {
    prompt: "- begin with a dash",
    cwd: Path::new("/tree"),
    temporary: Path::new("/own"),
    model: None,
    resume: Resume::New,
    gated: false,
    confined: false,
    project_settings: false,
    tools: None,
    extra: &[],
});

const KNOWN: [Provider; 3] = [Provider::Claude, Provider::Codex, Provider::Gemini];

fn call(provider: Provider, of: Turn) -> (Vec<String>, Call) {
    let call = turn(provider, &of).unwrap();
    (call.args.iter().map(|arg| arg.to_str().unwrap().to_owned()).collect(), call)
}

fn env(call: &Call, name: &str) -> Option<Option<String>> {
    let found = call.env.iter().find(|(key, _)| *key == name)?;
    Some(found.1.as_ref().map(|value| value.to_str().unwrap().to_owned()))
}

/// True where all of `part` stands in `whole` in that order.
fn holds(whole: &[String], part: &[String]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|word| rest.any(|other| other == word))
}

#[test]
fn the_recommended_calls_are_made() {
    let (args, _) = call(Provider::Claude, Turn { model: Some("claude-sonnet-5"), ..*PLAIN });
    assert!(holds(&args, &of("claude/recommended").argv), "{args:?}");
    let resume = of("claude/recommended-resume-2").argv.last().unwrap();
    let (args, _) = call(Provider::Claude, Turn { resume: Resume::File(Path::new(resume)), ..*PLAIN });
    assert_eq!(args[args.len() - 2..], ["--resume", resume.as_str()]);
    let (args, _) = call(Provider::Codex, *PLAIN);
    assert_eq!(args, of("codex/recommended-resume-1").argv);
    let (args, _) = call(Provider::Codex, Turn { resume: Resume::Id("thread"), ..*PLAIN });
    // The sandbox stands before the word 'resume', which takes none.
    assert_eq!(args[args.len() - 3..], ["resume", "thread", "-"]);
    assert!(holds(&args, &["-s".into(), "workspace-write".into(), "resume".into()]));
    let (args, made) = call(Provider::Gemini, Turn { model: Some("gemini-2.5-flash"), ..*PLAIN });
    assert_eq!(args, of("gemini/recommended").argv);
    assert_eq!(env(&made, "GEMINI_CLI_NO_RELAUNCH"), Some(Some("true".into())));
}

#[test]
fn a_prompt_is_on_standard_input_and_never_an_argument() {
    for provider in KNOWN {
        for gated in [false, true] {
            let (args, mut made) = call(provider, Turn { gated, ..*PLAIN });
            assert!(args.iter().all(|arg| !arg.contains("begin with")), "{args:?}");
            // One that is not gated is given its prompt, and then its standard input is closed.
            assert_eq!(made.talk.closes(), !gated);
            assert_eq!(made.talk.opening() == PLAIN.prompt.as_bytes(), !gated);
        }
    }
}

#[test]
fn a_branchs_own_settings_are_shut_out_unless_they_are_trusted() {
    for gated in [false, true] {
        let (args, _) = call(Provider::Claude, Turn { gated, ..*PLAIN });
        assert!(
            holds(&args, &["--setting-sources".into(), "user".into(), "--strict-mcp-config".into()]),
            "{args:?}"
        );
        // What only seems to shut them out, and what lets everything through.
        for word in ["--bare", "--safe-mode", "--dangerously-skip-permissions", "bypassPermissions"] {
            assert!(!args.iter().any(|arg| arg == word));
        }
        let (args, _) = call(Provider::Claude, Turn { gated, project_settings: true, ..*PLAIN });
        assert!(!args.iter().any(|arg| arg == "--setting-sources"));
        let (args, made) = call(Provider::Gemini, Turn { gated, ..*PLAIN });
        assert!(args.iter().any(|arg| arg == "--skip-trust"));
        // Taken out of what is inherited, too.
        assert_eq!(env(&made, "GEMINI_CLI_TRUST_WORKSPACE"), Some(None));
        let (args, made) = call(Provider::Gemini, Turn { gated, project_settings: true, ..*PLAIN });
        assert!(!args.iter().any(|arg| arg == "--skip-trust"));
        assert_eq!(env(&made, "GEMINI_CLI_TRUST_WORKSPACE"), Some(Some("true".into())));
        let (args, _) = call(Provider::Codex, Turn { gated, ..*PLAIN });
        assert!(args.iter().all(|arg| arg != "--trust" && !arg.contains("bypass")));
    }
}

#[test]
fn a_tree_whose_settings_cant_be_shut_out_is_refused_by_name() {
    let tree = |path: &'static str| [&b"src/main.rs"[..], path.as_bytes()];
    for (provider, path, admitted) in [
        (Provider::Gemini, ".env", false),
        (Provider::Gemini, ".Env", false),
        (Provider::Gemini, ".gemini/.env", false),
        (Provider::Gemini, ".gemini/settings.json", true),
        (Provider::Gemini, ".env.example", true),
        (Provider::Gemini, "sub/.env", true),
        (Provider::Codex, ".codex/config.toml", false),
        (Provider::Codex, ".codex", false),
        (Provider::Codex, ".codexrc", true),
        (Provider::Claude, ".claude/settings.json", true),
        (Provider::Claude, ".mcp.json", true),
        (Provider::Custom, ".env", true),
    ] {
        assert_eq!(admit(provider, false, tree(path)).is_ok(), admitted, "{provider} {path}");
        assert!(admit(provider, true, tree(path)).is_ok());
    }
    let refused = admit(Provider::Gemini, false, tree(".env")).unwrap_err().to_string();
    assert_eq!(
        refused,
        "'.env' of the branch can't be kept from gemini: set 'aynig.provider.gemini.projectSettings' where the repository \
         is trusted with it"
    );
}

#[test]
fn our_own_tools_are_offered() {
    let args = ["mcp".to_owned(), "a \"b\"".to_owned()];
    let tools = Some(Tools {
        name: "aynig",
        program: "git-aynig",
        args: &args,
        home: Some(Path::new("/own/gemini")),
    });
    let (words, _) = call(Provider::Claude, Turn { tools, ..*PLAIN });
    let at = words.iter().position(|word| word == "--mcp-config").unwrap();
    let config: serde_json::Value = serde_json::from_str(&words[at + 1]).unwrap();
    assert_eq!(config["mcpServers"]["aynig"]["args"][1], "a \"b\"");
    assert!(holds(&words, &["--allowedTools".into(), "Bash,mcp__aynig".into()]));
    let (words, _) = call(Provider::Claude, Turn { tools, gated: true, ..*PLAIN });
    assert!(holds(&words, &["--allowedTools".into(), "mcp__aynig".into()]));
    let (words, _) = call(Provider::Codex, Turn { tools, ..*PLAIN });
    assert!(words.contains(&"mcp_servers.aynig.args=[\"mcp\",\"a \\\"b\\\"\"]".to_owned()), "{words:?}");
    // A person may be asked, which takes long; and no other approval is asked for.
    assert!(words.contains(&"mcp_servers.aynig.tool_timeout_sec=604800".to_owned()), "{words:?}");
    assert!(words.contains(&"mcp_servers.aynig.default_tools_approval_mode=\"approve\"".to_owned()));
    let (_, made) = call(Provider::Claude, Turn { tools, ..*PLAIN });
    assert_eq!(env(&made, "MCP_TOOL_TIMEOUT"), Some(Some("604800000".into())));
    for gated in [false, true] {
        let (_, made) = call(Provider::Gemini, Turn { tools, gated, ..*PLAIN });
        assert_eq!(env(&made, "GEMINI_CLI_HOME"), Some(Some("/own/gemini".into())));
        let (_, made) = call(Provider::Gemini, Turn { gated, ..*PLAIN });
        assert_eq!(env(&made, "GEMINI_CLI_HOME"), None);
    }
}

#[test]
fn geminis_settings_stay_the_users_but_for_our_server() {
    let args = ["mcp".to_owned()];
    let tools = Tools { name: "aynig", program: "/bin/x", args: &args, home: None };
    let known = "{ // mine\n\"a\": \"/* no \\\" comment // */\", /* gone */ \"mcpServers\": {\"own\": {\"command\": \"y\"}},\n\"mcp\": {\"allowed\": [\"own\"]}}";
    let all: serde_json::Value = serde_json::from_str(&settings(known, &tools).unwrap()).unwrap();
    assert_eq!(all["a"], "/* no \" comment // */");
    assert_eq!(all["mcpServers"]["own"]["command"], "y");
    let server =
        serde_json::json!({"command": "/bin/x", "args": ["mcp"], "trust": true, "timeout": 604_800_000});
    assert_eq!(all["mcpServers"]["aynig"], server);
    assert_eq!(all["mcp"]["allowed"], serde_json::json!(["own", "aynig"]));
    assert!(settings("{}", &tools).is_some());
    for bad in ["", "[]", "{", "{\"mcpServers\": 1}", "/* {}"] {
        assert_eq!(settings(bad, &tools), None, "{bad}");
    }
}

/// N9, K59: codex makes no sandbox of its own within another: there it can't, and would start nothing.
#[test]
fn codex_is_confined_once() {
    let (args, _) = call(Provider::Codex, Turn { confined: true, ..*PLAIN });
    assert!(holds(&args, &["-s".into(), "danger-full-access".into()]), "{args:?}");
    for (confined, sandbox) in [(false, "workspace-write"), (true, "danger-full-access")] {
        let (_, mut made) = call(Provider::Codex, Turn { confined, gated: true, ..*PLAIN });
        made.talk.opening();
        let begun = made.talk.line(br#"{"id":1,"result":{}}"#).send;
        assert!(String::from_utf8_lossy(&begun).contains(sandbox), "{confined}");
    }
}

#[test]
fn temporary_files_are_in_a_folder_of_the_turns_own() {
    for provider in KNOWN {
        let (_, made) = call(provider, *PLAIN);
        assert_eq!(env(&made, "TMPDIR"), Some(Some("/own".into())));
        assert!(program(provider).is_some());
    }
    assert_eq!(program(Provider::Custom), None);
}

/// The place that a resumed session was given by is the place that is told for it.
#[test]
fn a_claude_session_has_its_file() {
    let resumed = of("claude/recommended-resume-2").argv.last().unwrap();
    let home = Path::new("/srv/place/claude/recommended-resume/home/.claude");
    let id = "39a435a1-4bc2-4eee-8209-d9a2faeac1d5";
    let file = session_file(home, "/srv/place/recommended-resume/tree", id).unwrap();
    assert_eq!(file.to_str().unwrap(), resumed);
    for id in ["", "../../x", "a/b", "a.b"] {
        assert_eq!(session_file(home, "/tree", id), None);
    }
}

#[test]
fn the_flags_that_were_seen_to_shut_settings_out_are_ours() {
    let (ours, _) = call(Provider::Claude, *PLAIN);
    let settings = all().iter().filter(|t| t.program == "claude" && t.name.starts_with("project-"));
    let shut: Vec<&str> = settings
        .filter(|t| t.argv.iter().any(|arg| arg == "--setting-sources"))
        .map(|t| t.name.as_str())
        .collect();
    assert_eq!(shut, ["project-all-strict", "project-all-user-sources", "project-settings-user-only"]);
    for name in shut {
        let argv = &of(&format!("claude/{name}")).argv;
        let at = argv.iter().position(|arg| arg == "--setting-sources").unwrap();
        assert!(holds(&ours, &argv[at..at + 2]));
    }
}

#[test]
fn a_custom_program_is_told_its_prompt_in_its_protocol() {
    let turn = TurnId::parse("0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00").unwrap();
    let opened = |protocol| {
        let mut custom = Custom::new(protocol, "do\nit", PromptKind::Delta, turn);
        String::from_utf8(custom.opening()).unwrap()
    };
    assert_eq!(opened(Protocol::Raw), "do\nit");
    assert_eq!(
        opened(Protocol::Jsonl),
        "{\"kind\":\"prompt\",\"prompt\":\"do\\nit\",\"promptKind\":\"delta\",\"turnId\":\"0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00\"}\n"
    );
    assert_eq!((Protocol::named("raw"), Protocol::named("RAW")), (Some(Protocol::Raw), None));
}
