//! Flows: what follows from turns, and what all of it looks like.

mod project;
mod route;
mod stage;
mod turn;
mod turn_ends;
