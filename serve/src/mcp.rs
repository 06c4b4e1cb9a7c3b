//! `mcp`: the tools of a flow for an agent's program, by the Model Context Protocol on standard input and output.
//!
//! It knows nothing of the repository. The turn tells it, over the turn's socket, which tools there are and
//! what a call returned: one JSON object per line each way (`aynig::contract::door`). Several calls can be
//! under way at once, and one may wait for a person. A program that gives a call up waits no more; the turn
//! then tells the agent the result. Implements N7, W1.

use aynig::contract::door::{Answer, Call, Knock, LINE_MAX};
use aynig::contract::offered::Offered;
use aynig::supervisor::socket::connect;
use clap::Parser;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, RequestMetaObject, ServerCapabilities, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

/// Offers a flow's tools to an agent's program, in its turn; see git-aynig-mcp(1)
#[derive(Debug, Parser)]
#[command(name = "git-aynig-serve mcp", version)]
struct Args {
    /// Where the turn listens
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
}

/// The keys under which programs put their own id of a call: claude's, then codex's.
const OWN_IDS: [&str; 2] = ["claudecode/toolUseId", "callId"];

/// Runs `git-aynig-serve mcp`.
pub fn main() -> ExitCode {
    let args = match Args::try_parse_from(std::env::args_os().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 129 } else { 0 });
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        eprintln!("error: cannot start");
        return ExitCode::from(128);
    };
    let ended = runtime.block_on(serve(&args));
    // The thread that reads standard input may block for good, so it is not waited for.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            eprintln!("hint: 'git aynig flow turn' gives its own socket to the program that it starts");
            ExitCode::from(128)
        }
    }
}

async fn serve(args: &Args) -> Result<(), String> {
    let nobody = |error| format!("no program listens on '{}': {error}", args.socket.display());
    let stream = connect(&args.socket).map_err(nobody)?;
    stream.set_nonblocking(true).map_err(nobody)?;
    let (reads, writes) = UnixStream::from_std(stream).map_err(nobody)?.into_split();
    let turn = Arc::new(Turn {
        writes: tokio::sync::Mutex::new(writes),
        waiting: Mutex::new(Some(HashMap::new())),
        last: AtomicU64::new(0),
    });
    let heard = Arc::clone(&turn);
    tokio::spawn(async move {
        hear(reads, &heard).await;
        // A call that still waits finds its sender gone, and no new one can begin to wait.
        heard.waiting.lock().map(|mut waiting| *waiting = None).unwrap_or_default();
    });
    let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
    let service = Tools { turn }.serve((stdin, stdout)).await.map_err(|error| error.to_string())?;
    service.waiting().await.map_err(|error| error.to_string())?;
    Ok(())
}

/// The turn, at the other end of the socket.
struct Turn {
    writes: tokio::sync::Mutex<OwnedWriteHalf>,
    /// The calls that wait for an answer, by the id of the request; `None` once the turn is gone.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>,
    last: AtomicU64,
}

/// Why a call gets no answer once the turn is gone.
const GONE: &str = "the turn is over";

/// Passes the turn's answers on, until the connection ends.
async fn hear(reads: OwnedReadHalf, turn: &Turn) {
    let mut lines = BufReader::new(reads).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(answer) = serde_json::from_str::<Answer>(&line) else { return };
        let waits = turn.waiting.lock().ok().and_then(|mut all| all.as_mut()?.remove(&answer.id));
        // The answer to a call that was given up is dropped.
        waits.into_iter().for_each(|waits| drop(waits.send(answer.clone())));
    }
}

impl Turn {
    async fn ask(&self, call: Option<Call>) -> Result<Answer, String> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut line = serde_json::to_vec(&Knock { id, call }).map_err(|error| error.to_string())?;
        line.push(b'\n');
        if line.len() > LINE_MAX {
            return Err(format!("a call of {} bytes is too long", line.len()));
        }
        let (to, answer) = oneshot::channel();
        self.waiting
            .lock()
            .ok()
            .and_then(|mut all| all.as_mut().map(|all| all.insert(id, to)))
            .ok_or(GONE)?;
        self.writes.lock().await.write_all(&line).await.map_err(|_| GONE)?;
        answer.await.map_err(|_| GONE.to_owned())
    }
}

/// The server of the tools.
struct Tools {
    turn: Arc<Turn>,
}

impl ServerHandler for Tools {
    fn get_info(&self) -> rmcp::model::ServerConfig {
        rmcp::model::ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("git-aynig", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let answer = self.turn.ask(None).await.map_err(|why| ErrorData::internal_error(why, None))?;
        let tools = answer.tools.unwrap_or_default().into_iter().map(tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        let id = own_id(request.meta.as_ref()).or_else(|| own_id(Some(&context.meta)));
        let call = Call { name: request.name.into_owned(), args, id };
        Ok(result(self.turn.ask(Some(call)).await).into())
    }
}

fn tool(offered: Offered) -> Tool {
    let schema: JsonObject = match offered.schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    Tool::new(offered.name, offered.description, Arc::new(schema))
}

fn own_id(meta: Option<&RequestMetaObject>) -> Option<String> {
    let meta = serde_json::to_value(meta?).ok()?;
    OWN_IDS.iter().find_map(|key| meta[*key].as_str()).map(str::to_owned)
}

/// Returns the result of a call for the program: text, as agents read it.
fn result(answer: Result<Answer, String>) -> CallToolResult {
    let refused = |why: String| CallToolResult::error(vec![ContentBlock::text(why)]);
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return refused(why),
    };
    match (answer.result, answer.error) {
        (Some(result), _) if result.ok => {
            let text = match result.output {
                Some(Value::String(text)) => text,
                Some(output) => output.to_string(),
                None => String::new(),
            };
            CallToolResult::success(vec![ContentBlock::text(text)])
        }
        (_, Some(error)) => refused(error.message),
        (_, None) => refused("it was not done".to_owned()),
    }
}
