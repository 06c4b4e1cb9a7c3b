//! The records of a run as types: a turn's line in the history, a decision, a request that waits for
//! approval.
//!
//! Each type holds one JSON object and has typed accessors; every key is kept, in its order, so that what
//! another tool put there survives. A missing text reads as empty, and a missing number as 0: foreign records
//! are read, not validated. Implements G1.

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

            /// Returns any field, as on disk.
            pub fn get(&self, key: &str) -> Option<&Value> {
                self.0.get(key)
            }

            /// Returns the record as JSON.
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
    /// Returns the turn's id.
    pub fn turn_id(&self) -> &str {
        self.text("turn_id")
    }

    /// Returns the id of the run that the turn belongs to.
    pub fn run_id(&self) -> &str {
        self.text("run_id")
    }

    /// Returns the role whose turn it was.
    pub fn role(&self) -> &str {
        self.text("role")
    }

    /// Returns the phase that the turn was taken in.
    pub fn phase(&self) -> &str {
        self.text("phase")
    }

    /// Returns the status that the worker declared: `completed`, `blocked`, `needs_human` or `failed`.
    pub fn status(&self) -> &str {
        self.text("status")
    }

    /// Returns what was done, in the worker's words.
    pub fn summary(&self) -> &str {
        self.text("summary")
    }

    /// True if both lines are of the same turn of the same run, accepted at the same sequence number.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        ["turn_id", "accepted_sequence", "run_id"].iter().all(|key| self.get(key) == other.get(key))
    }

    /// Returns the turn's decisions, in their order; an entry that is not an object is left out.
    pub fn decisions(&self) -> Vec<Decision> {
        let all = json::list(&self.0, "decisions").iter();
        all.filter_map(|decision| decision.as_object().cloned().map(Decision::from_object)).collect()
    }

    /// Returns the files that the worker declared as changed, relative to the root.
    pub fn files_changed(&self) -> Vec<&str> {
        json::texts(&self.0, "files_changed")
    }

    /// Returns the run's counter when the turn was assigned.
    pub fn assigned_sequence(&self) -> u64 {
        json::count(&self.0, "assigned_sequence").unwrap_or(0)
    }

    /// Returns the run's counter when the turn was accepted; no two turns of a run have the same.
    pub fn accepted_sequence(&self) -> u64 {
        self.sequence().unwrap_or(0)
    }

    /// Returns the run's counter when the turn was accepted; `None` where the line lacks it.
    pub(super) fn sequence(&self) -> Option<u64> {
        json::count(&self.0, "accepted_sequence")
    }

    /// True for a line that says the turn was given out again.
    pub(super) fn is_reissued(&self) -> bool {
        self.status() == "reissued"
    }

    /// Returns the verification status that the worker declared.
    pub(super) fn verification_status(&self) -> Option<&str> {
        json::text(json::object(&self.0, "verification")?, "status")
    }

    /// Returns the files that were observed as changed; without any, the declared ones.
    pub(super) fn files(&self) -> Vec<&str> {
        let observed = json::object(&self.0, "observed_artifact").map(|o| json::texts(o, "files_changed"));
        observed.filter(|files| !files.is_empty()).unwrap_or_else(|| self.files_changed())
    }

    /// Returns when the turn was accepted, as RFC 3339 in UTC.
    pub fn accepted_at(&self) -> &str {
        self.text("accepted_at")
    }
}

impl Decision {
    /// Returns the decision's name in its turn: `DEC-` and a number. Two turns may use the same number.
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Returns what kind of question the decision answers.
    pub fn category(&self) -> &str {
        self.text("category")
    }

    /// Returns what was decided.
    pub fn statement(&self) -> &str {
        self.text("statement")
    }

    /// Returns why it was decided so.
    pub fn rationale(&self) -> &str {
        self.text("rationale")
    }

    /// Returns the id of the decision that this one overrides.
    pub(super) fn overrides(&self) -> Option<&str> {
        json::text(&self.0, "overrides")
    }

    /// True for a decision that holds beyond its run (`durability: repo`).
    pub fn is_lasting(&self) -> bool {
        self.text("durability") == "repo"
    }
}

impl PendingTransition {
    /// Returns the phase that ends.
    pub fn from(&self) -> &str {
        self.text("from")
    }

    /// Returns the phase that begins.
    pub fn to(&self) -> &str {
        self.text("to")
    }

    /// Returns the id of the gate between the phases; empty where there is none.
    pub fn gate(&self) -> &str {
        self.text("gate")
    }

    /// Returns the id of the turn that asked for it.
    pub fn requested_by_turn(&self) -> &str {
        self.text("requested_by_turn")
    }
}

impl PendingCompletion {
    /// Returns the id of the gate before the end; empty where there is none.
    pub fn gate(&self) -> &str {
        self.text("gate")
    }

    /// Returns the id of the turn that asked for it.
    pub fn requested_by_turn(&self) -> &str {
        self.text("requested_by_turn")
    }

    /// Returns when the completion was asked for, as RFC 3339 in UTC.
    pub fn requested_at(&self) -> &str {
        self.text("requested_at")
    }
}
