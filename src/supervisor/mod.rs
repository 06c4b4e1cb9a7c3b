//! Child processes: spawn, guardian, one wait loop, logs. Knows nothing of Git.
