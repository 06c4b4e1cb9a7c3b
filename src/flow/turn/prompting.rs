//! The prompt of a turn, made from the flow, the node, and what came.
//!
//! Nodes are called what the flow calls them, never what a message calls its sender. Git is asked again for
//! the paths in conflict, because the trigger's own body is for people. Implements N4 (the prompt), N6
//! (promises and conflicts in it).

use super::Ground;
use super::active::Untold;
use super::before::Brought;
use crate::contract::id::{NodeId, PayloadId};
use crate::contract::prompt::{Incoming, Named, OpenPromise, Prompt, PromptKind, Situation, Work, compose};
use crate::contract::words::Expectation;
use crate::flow::letter;
use crate::flow::senders::Senders;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::MessageId;
use crate::store::git_merge::Joined;

/// What one message says, owned, so that a prompt can borrow it.
struct Said {
    id: PayloadId,
    from: String,
    kind: String,
    text: String,
    expectation: Option<Expectation>,
    attached: Option<String>,
    merged: Option<String>,
    paths: Vec<String>,
}

impl Ground<'_> {
    /// Composes the prompt for what came, or for what the agent is told in a turn that goes on.
    pub(super) fn prompt(
        &self,
        kind: PromptKind,
        brought: &[(Brought, Option<ObjectId>)],
        untold: &[Untold],
        catch_up: Option<&str>,
        native_tools: bool,
    ) -> Prompt {
        let flow = &self.kept.flow;
        let senders = Senders::new(&*self.runner.store, flow);
        let said = |(one, to): &(Brought, Option<ObjectId>)| self.said(one, *to, &senders);
        let mut said: Vec<Said> = brought.iter().filter_map(said).collect();
        if !untold.is_empty() {
            said.push(Said {
                id: PayloadId(self.turn.0),
                from: "git-aynig".to_owned(),
                kind: "note".to_owned(),
                text: untold.iter().map(|one| &*one.line).collect::<Vec<_>>().join("\n"),
                expectation: None,
                attached: None,
                merged: None,
                paths: Vec::new(),
            });
        }
        let paths: Vec<Vec<&str>> =
            said.iter().map(|said| said.paths.iter().map(String::as_str).collect()).collect();
        let incoming: Vec<Incoming> = said
            .iter()
            .zip(&paths)
            .map(|(said, paths)| Incoming {
                id: said.id,
                from: &said.from,
                kind: &said.kind,
                text: &said.text,
                expectation: said.expectation,
                work: match (said.merged.as_deref(), &said.attached) {
                    (Some("merged"), _) => Work::Merged,
                    (Some("nothing"), _) => Work::Nothing,
                    (Some("conflict"), Some(commit)) => Work::Conflict { commit, paths },
                    (_, _) => Work::None,
                },
            })
            .collect();
        let roster: Vec<Named> =
            flow.nodes.iter().map(|(id, node)| Named { id: *id, config: &node.config }).collect();
        let edges: Vec<_> = flow.edges.values().map(|file| file.edge.clone()).collect();
        let names: Vec<(String, String, &str)> = flow
            .run
            .promises
            .values()
            .filter(|promise| promise.to == self.node || promise.from == self.node)
            .map(|promise| (self.called(promise.to), self.called(promise.from), promise.about.as_str()))
            .collect();
        let promises: Vec<OpenPromise> =
            names.iter().map(|(to, from, about)| OpenPromise { to, from, about }).collect();
        compose(
            kind,
            &Situation {
                run: self.kept.id,
                name: &flow.run.name,
                mode: flow.run.mode,
                global_mode: flow.run.global_mode,
                node: Named { id: self.node, config: self.config() },
                roster: &roster,
                edges: &edges,
                template: &self.template,
                native_tools,
                workspace: self.is_jsonl(),
                incoming: &incoming,
                promises: &promises,
                catch_up,
            },
        )
    }

    /// Returns what people call a node.
    fn called(&self, node: NodeId) -> String {
        let found = self.kept.flow.nodes.get(&node).map(|node| &node.config);
        found.map_or_else(|| node.to_string(), |config| config.called().to_owned())
    }

    fn said(&self, brought: &Brought, to: Option<ObjectId>, senders: &Senders<'_>) -> Option<Said> {
        let id = PayloadId::parse(&brought.id).ok()?;
        let text = match (&brought.text, &brought.unreadable) {
            (Some(text), _) => text.clone(),
            (None, Some(why)) => format!("(a message that can't be read: {why})"),
            (None, None) => String::new(),
        };
        let trailers = brought.trailers.iter().map(|pair| (pair.key.as_str(), pair.value.as_bytes()));
        let name = MessageId::parse(&brought.id).ok();
        let work = brought.attached.as_deref().and_then(|work| work.parse::<ObjectId>().ok());
        let envelope =
            name.and_then(|name| letter::envelope(senders, (name, self.node), work, trailers, &text));
        let from = match &envelope {
            Some(envelope) => self.called(envelope.from_node_id),
            None => brought.from.clone().unwrap_or_else(|| "?".to_owned()),
        };
        let conflicts = brought.merged.as_deref() == Some("conflict");
        Some(Said {
            id,
            from,
            kind: brought.kind.clone().unwrap_or_else(|| "message".to_owned()),
            expectation: envelope.and_then(|envelope| envelope.payload.response).map(|r| r.expectation),
            text,
            paths: if conflicts { self.conflicts(brought, to) } else { Vec::new() },
            attached: brought.attached.clone(),
            merged: brought.merged.clone(),
        })
    }

    /// Returns the paths on which a message's work conflicts with the branch.
    fn conflicts(&self, brought: &Brought, to: Option<ObjectId>) -> Vec<String> {
        let work = brought.attached.as_deref().and_then(|work| work.parse::<ObjectId>().ok());
        let Some((work, head)) = work.zip(to) else { return Vec::new() };
        match self.runner.repo.git.join_commits(head, work, self.runner.merge_patience()) {
            Ok(Joined::Conflicts(paths)) => paths,
            Ok(Joined::Tree(_) | Joined::Late) | Err(_) => Vec::new(),
        }
    }
}
