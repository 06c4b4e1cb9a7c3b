//! What is shipped beside the program: README, example packs, installer, package.

mod examples;
mod install;
mod packaging;
mod readme;
