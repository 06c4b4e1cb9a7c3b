//! A home for gemini that is the user's own, except that its settings also name our server.
//!
//! No argument of gemini's names a server, and the settings that it reads by itself are the branch's or the
//! user's, which are not ours to write. So `GEMINI_CLI_HOME` is a folder of the turn whose `.gemini` links,
//! entry by entry, to the user's: sessions, logins and extensions are the user's, and stay where they are.
//! Implements N7, N9a.

use super::Ground;
use crate::agents::Tools;
use crate::agents::gemini;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// The folders that gemini keeps for a user. Those that do not exist yet are made in the user's own folder,
/// so that what gemini writes ends up there.
const FOLDERS: [&str; 2] = ["tmp", "history"];
const SETTINGS: &str = "settings.json";
/// Most bytes of settings.
const SETTINGS_MAX: u64 = 4 << 20;

/// Makes the home, a new one for each program.
///
/// # Errors
/// Why there can be no such home, in a few words.
pub fn with_server(ground: &Ground<'_>, tools: &Tools<'_>) -> Result<PathBuf, String> {
    let words = |error: std::io::Error| format!("no home for gemini: {error}");
    let user = ground.gemini_home().ok_or("gemini has no home")?.join(".gemini");
    for name in FOLDERS {
        fs::create_dir_all(user.join(name)).map_err(words)?;
    }
    // The folder is one that a confined program may write to, so the home has a new name: no link can have
    // been put there.
    let home = ground.folder.join("tmp").join(format!("gemini-{}", uuid::Uuid::new_v4()));
    fs::create_dir(&home).map_err(words)?;
    let own = home.join(".gemini");
    fs::create_dir(&own).map_err(words)?;
    for entry in fs::read_dir(&user).map_err(words)? {
        let name = entry.map_err(words)?.file_name();
        if name != SETTINGS {
            symlink(user.join(&name), own.join(&name)).map_err(words)?;
        }
    }
    let known = match fs::metadata(user.join(SETTINGS)) {
        Err(error) if error.kind() == ErrorKind::NotFound => "{}".to_owned(),
        Err(error) => return Err(words(error)),
        Ok(meta) if meta.len() > SETTINGS_MAX => return Err("its settings are too large".to_owned()),
        Ok(_) => fs::read_to_string(user.join(SETTINGS)).map_err(words)?,
    };
    let settings = gemini::settings(&known, tools).ok_or("its settings are no JSON object")?;
    fs::write(own.join(SETTINGS), settings).map_err(words)?;
    Ok(home)
}
