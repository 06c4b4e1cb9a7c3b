//! Records of a run as types: what stands in the history for a turn, a decision, what waits for approval.
//!
//! Each is one JSON object, asked by typed questions; every key is kept in its order, so that what another tool put there
//! survives. A text that is missing is empty, a number that is missing is 0: foreign records are read, not judged.
//! Implements G1.

use super::json::{self, Object};
use serde::Serialize;
use serde_json::Value;

macro_rules! record {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize)]
        #[serde(transparent)]
        pub struct $name(Object);

        impl $name {
            pub(super) fn from_object(object: Object) -> Self {
                Self(object)
            }

            /// Any field, as on disk.
            pub fn get(&self, key: &str) -> Option<&Value> {
                self.0.get(key)
            }

            /// The record as JSON.
            pub fn to_value(&self) -> Value {
                Value::Object(self.0.clone())
            }

            fn text(&self, key: &str) -> &str {
                json::text(&self.0, key).unwrap_or_default()
            }
        }
    };
}

record!(
    /// An accepted turn, as its line in `history.jsonl`.
    HistoryEntry
);
record!(
    /// A decision, as a turn made it and the ledger has it.
    Decision
);
record!(
    /// A phase transition that waits for a person's approval, or that got it.
    PendingTransition
);
record!(
    /// A run's completion that waits for a person's approval, or that got it.
    PendingCompletion
);

impl HistoryEntry {
    /// The turn.
    pub fn turn_id(&self) -> &str {
        self.text("turn_id")
    }

    /// The run that it belongs to.
    pub fn run_id(&self) -> &str {
        self.text("run_id")
    }

    /// Whose turn it was.
    pub fn role(&self) -> &str {
        self.text("role")
    }

    /// The phase that it was taken in.
    pub fn phase(&self) -> &str {
        self.text("phase")
    }

    /// What its worker said of it: `completed`, `blocked`, `needs_human` or `failed`.
    pub fn status(&self) -> &str {
        self.text("status")
    }

    /// What was done, in the worker's words.
    pub fn summary(&self) -> &str {
        self.text("summary")
    }

    /// True for the same turn of the same run, accepted at the same point.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        ["turn_id", "accepted_sequence", "run_id"].iter().all(|key| self.get(key) == other.get(key))
    }

    /// The decisions that it made, in their order; what is none is left out.
    pub fn decisions(&self) -> Vec<Decision> {
        let all = json::list(&self.0, "decisions").iter();
        all.filter_map(|decision| decision.as_object().cloned().map(Decision::from_object)).collect()
    }

    /// The files that its worker declared as changed, below the root.
    pub fn files_changed(&self) -> Vec<&str> {
        json::texts(&self.0, "files_changed")
    }

    /// The run's counter when it was assigned.
    pub fn assigned_sequence(&self) -> u64 {
        json::count(&self.0, "assigned_sequence").unwrap_or(0)
    }

    /// The run's counter when it was accepted; no two turns of a run have the same.
    pub fn accepted_sequence(&self) -> u64 {
        self.sequence().unwrap_or(0)
    }

    /// That counter, where the line has it.
    pub(super) fn sequence(&self) -> Option<u64> {
        json::count(&self.0, "accepted_sequence")
    }

    /// True for a line that says the turn was given out again.
    pub(super) fn is_reissued(&self) -> bool {
        self.status() == "reissued"
    }

    /// What its worker declared of its verification.
    pub(super) fn verification_status(&self) -> Option<&str> {
        json::text(json::object(&self.0, "verification")?, "status")
    }

    /// The files that were seen changed, else those that it declared.
    pub(super) fn files(&self) -> Vec<&str> {
        let observed = json::object(&self.0, "observed_artifact").map(|o| json::texts(o, "files_changed"));
        observed.filter(|files| !files.is_empty()).unwrap_or_else(|| self.files_changed())
    }

    /// When it was accepted, as RFC 3339 in UTC.
    pub fn accepted_at(&self) -> &str {
        self.text("accepted_at")
    }
}

impl Decision {
    /// Its name in its turn, `DEC-` and a number. Two turns may number theirs alike.
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// What kind of question it answers.
    pub fn category(&self) -> &str {
        self.text("category")
    }

    /// What was decided.
    pub fn statement(&self) -> &str {
        self.text("statement")
    }

    /// Why.
    pub fn rationale(&self) -> &str {
        self.text("rationale")
    }

    /// The decision that it overrides.
    pub(super) fn overrides(&self) -> Option<&str> {
        json::text(&self.0, "overrides")
    }

    /// True for one that holds beyond its run (`durability: repo`).
    pub fn is_lasting(&self) -> bool {
        self.text("durability") == "repo"
    }
}

impl PendingTransition {
    /// The phase that ends.
    pub fn from(&self) -> &str {
        self.text("from")
    }

    /// The phase that begins.
    pub fn to(&self) -> &str {
        self.text("to")
    }

    /// The gate between them; empty where there is none.
    pub fn gate(&self) -> &str {
        self.text("gate")
    }

    /// The turn that asked for it.
    pub fn requested_by_turn(&self) -> &str {
        self.text("requested_by_turn")
    }
}

impl PendingCompletion {
    /// The gate before the end; empty where there is none.
    pub fn gate(&self) -> &str {
        self.text("gate")
    }

    /// The turn that asked for it.
    pub fn requested_by_turn(&self) -> &str {
        self.text("requested_by_turn")
    }

    /// When it was asked for, as RFC 3339 in UTC.
    pub fn requested_at(&self) -> &str {
        self.text("requested_at")
    }
}
