//! Our tools, offered to a program by a server of tools: `git-aynig-serve mcp`, where that is installed.
//!
//! The program starts the server, which comes back through the turn's door. So a call through the server has
//! the same checks, gates, ids and events as one that a line of text makes, and `route` performs it. A
//! program that speaks our own lines needs no server. Implements N7.

use super::active::Active;
use super::door::Door;
use super::round::Talking;
use super::{TurnError, home};
use crate::agents::Tools;
use crate::agents::tool_calls::Written;
use crate::contract::offered::{SERVER, offered};
use crate::contract::words::Provider;
use std::path::PathBuf;
use std::rc::Rc;

/// The server, as a program is told of it, and for gemini the home whose settings name it.
pub struct Offer {
    program: String,
    args: Vec<String>,
    home: Option<PathBuf>,
}

impl Offer {
    /// Returns the offer in the form that a program's call takes.
    pub fn as_tools(&self) -> Tools<'_> {
        Tools { name: SERVER, program: &self.program, args: &self.args, home: self.home.as_deref() }
    }
}

impl Active<'_> {
    /// Opens the door, if there is a server that would come through it.
    pub(super) fn open_door(&mut self) {
        let known = match self.ground.config().provider {
            Provider::Claude | Provider::Codex | Provider::Gemini => true,
            Provider::Custom => false,
        };
        if !known || self.ground.server.is_none() {
            return;
        }
        // The socket is in a folder that a confined program may reach.
        match Door::open(&self.ground.folder.join("tmp")) {
            Ok(door) => {
                self.reporter.offers();
                self.door = Some(Rc::new(door));
            }
            Err(error) => self.note(&format!("tools are called by lines of text: no socket: {error}")),
        }
    }

    /// Returns what the next program is offered; `None` where it calls tools by lines of text.
    pub(super) fn tools(&mut self) -> Option<Offer> {
        let server = self.ground.server.as_ref()?.to_str()?;
        let socket = self.door.as_ref()?.path().to_str()?.to_owned();
        let args = vec!["mcp".to_owned(), "--socket".to_owned(), socket];
        let mut offer = Offer { program: server.to_owned(), args, home: None };
        if self.ground.config().provider == Provider::Gemini {
            match home::with_server(self.ground, &offer.as_tools()) {
                Ok(home) => offer.home = Some(home),
                Err(why) => {
                    self.note(&format!("tools are called by lines of text: {why}"));
                    return None;
                }
            }
        }
        Some(offer)
    }

    /// Takes in what came through the door.
    pub(super) fn knocked(&mut self, talking: &mut Talking<'_>) -> Result<(), TurnError> {
        let Some(door) = self.door.clone() else { return Ok(()) };
        for came in door.knocks() {
            talking.served(self.ground.runner.clock.instant());
            match came.call {
                None => came.reply.tools(offered(&self.ground.config().capabilities)),
                Some(_) if talking.is_stopping() => came.reply.refuse("the turn ends"),
                Some(call) => {
                    let written = Written { id: call.id, name: call.name, args: call.args };
                    let call = self.reporter.called(written);
                    self.replies.insert(call.id, came.reply);
                    self.make(call, Some(talking))?;
                }
            }
        }
        Ok(())
    }
}
