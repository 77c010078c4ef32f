//! What is played, and by which graph: films that a script makes, and the same graphs that users
//! run, on the CPUs of this run.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sinew_agent::boards::BoardRow;
use sinew_agent::image;
use sinew_runtime::Kinds;
use sinew_runtime::run::RunRequest;
use sinew_spec::plan::Board;

use super::case::Decoder;
use crate::graph::{compiled, folder};
use crate::harness::Cpus;
use crate::rounds::Session;
use crate::scenario::CannotRun;

/// The file name of its specs in messages.
const FILE: &str = "lab player";
const PLAYER: &str = include_str!("../../../../../graphs/dual_os/player.yaml");
const PLAYER_GUEST: &str = include_str!("../../../../../graphs/dual_os/player_guest.yaml");
/// The script that makes the films that these graphs name, in its own folder.
const MAKE_FILMS: &str = include_str!("../../../../../graphs/dual_os/make_films.sh");
/// The image as the graph names it. Without the steps upwards it is also the path from the top of
/// the repository.
const IMAGE: &str = "../../guest/target/armv7a-none-eabi/release/player";
/// The image's name in the scenario's folder.
const OWN_IMAGE: &str = "guest_image";
/// The name of the screen's log in that folder.
const LOG: &str = "shown.csv";
/// The node whose film does not exist before it is made.
const SOURCE: &str = "source";

/// What the graphs of all rows are made from.
pub(super) struct PlayerSetup<'a> {
    pub(super) cpus: Cpus,
    pub(super) allowed: &'a [u32],
    pub(super) kinds: &'a Kinds,
}

impl PlayerSetup<'_> {
    /// Refuses a program that has the kinds but cannot make them, which is a program without
    /// FFmpeg.
    pub(super) fn check(&self, decoder: Decoder) -> Result<(), String> {
        let RunRequest { plan, spec, .. } = self.graph(decoder, ([127, 0, 0, 1], 1).into())?;
        let made = |at: usize| match plan.nodes[at].name.as_str() {
            SOURCE => Ok(()),
            name => self.kinds.check_node(&plan, at, &spec.base).map_err(|refusals| {
                let why: Vec<_> = refusals.iter().map(ToString::to_string).collect();
                format!("node '{name}': {}", why.join("; "))
            }),
        };
        (0..plan.nodes.len()).try_for_each(made)
    }

    /// The graph, with its page at this address.
    pub(super) fn graph(&self, decoder: Decoder, page: SocketAddr) -> Result<RunRequest, String> {
        let overrides = [
            ("screen.listen", page.to_string()),
            ("screen.log", LOG.into()),
            // With a sound device, the films would be audible, and such a machine would differ from
            // one without.
            ("speaker.output", "clock".into()),
        ];
        let overrides = overrides.map(|(name, value)| (name.into(), value)).to_vec();
        let text = text(decoder, self.cpus);
        compiled(FILE, text, overrides, &self.kinds.catalogue(), self.allowed)
    }
}

/// The graph of a decoder on these CPUs.
fn text(decoder: Decoder, Cpus { near, far }: Cpus) -> String {
    let (text, second) = match decoder {
        Decoder::OneCpu => (PLAYER, near),
        Decoder::TwoCpus => (PLAYER, far),
        Decoder::Guest => (PLAYER_GUEST, far),
    };
    // The second CPU is replaced first: if it is CPU 0, both places have CPU 0 then.
    let text = text.replace("cpus: [1]", &format!("cpus: [{second}]"));
    text.replace("cpus: [0]", &format!("cpus: [{near}]")).replace(IMAGE, OWN_IMAGE)
}

/// The log of the screen.
pub(super) fn log() -> PathBuf {
    folder().join(LOG)
}

/// What is missing for a guest, with the image at `path` or where it is built. If nothing is
/// missing, the graph of the guest finds the image from now on.
pub(super) fn guest_lack(path: Option<&Path>) -> Option<String> {
    let board = BoardRow::of(Board::Virt);
    let path = path.unwrap_or_else(|| Path::new(IMAGE.trim_start_matches("../")));
    if let Err(why) = image::read(path, board) {
        return Some(format!("{why}; --image names another one"));
    }
    let linked = fs::canonicalize(path).and_then(|path| symlink(path, folder().join(OWN_IMAGE)));
    let linked = linked.err().map(|error| format!("cannot link to the image: {error}"));
    (board.missing)().or(linked)
}

/// Makes the films, each of this length.
pub(super) fn make_films(length: Duration, session: &Session<'_>) -> Result<(), CannotRun> {
    session.progress.at("make films", Duration::ZERO, length);
    let script = folder().join("make_films.sh");
    let failed = |why: String| CannotRun(format!("the films cannot be made: {why}"));
    fs::write(&script, MAKE_FILMS).map_err(|error| failed(error.to_string()))?;
    let seconds = length.as_secs_f64().ceil().to_string();
    let mut command = Command::new("sh");
    command.arg(script).arg(seconds).stdin(Stdio::null());
    match command.output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(failed(String::from_utf8_lossy(&done.stderr).trim_end().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(failed("there is no 'sh'".into())),
        Err(error) => Err(failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use sinew_services::SERVICES;
    use sinew_spec::plan::Plan;

    use super::*;

    fn plan(decoder: Decoder, near: u32, far: u32) -> Plan {
        let kinds = Kinds { services: SERVICES.to_vec(), ..Kinds::default() };
        let setup = PlayerSetup { cpus: Cpus { near, far }, allowed: &[0, 1, 2, 5], kinds: &kinds };
        let graph = setup.graph(decoder, ([127, 0, 0, 1], 8610).into()).expect("it compiles");
        graph.plan
    }

    #[test]
    fn the_graphs_of_users_stand_on_the_cpus_of_the_run() {
        for (decoder, near, far, expected) in [
            (Decoder::OneCpu, 0, 1, 0),
            (Decoder::OneCpu, 1, 2, 1),
            (Decoder::TwoCpus, 0, 1, 1),
            (Decoder::TwoCpus, 1, 5, 5),
            (Decoder::TwoCpus, 0, 0, 0),
        ] {
            let plan = plan(decoder, near, far);
            assert_eq!(plan.domains.len(), 4);
            for domain in &plan.domains {
                let cpu = if domain.name == "decoder" { expected } else { near };
                assert!(text(decoder, Cpus { near, far }).contains(&format!("[{cpu}]")));
                let found = format!("{domain:?}");
                assert!(found.contains(&format!("[{cpu}]")), "{decoder:?}: {cpu} in {found}");
            }
        }
    }

    #[test]
    fn the_guest_s_graph_names_the_image_and_the_second_cpu() {
        let text = text(Decoder::Guest, Cpus { near: 2, far: 5 });
        assert!(text.contains("guest: {image: guest_image, board: virt"), "{text}");
        assert_eq!(text.matches("cpus: [5]").count(), 1, "{text}");
        assert_eq!(text.matches("cpus: [2]").count(), 3, "{text}");
    }

    #[test]
    fn the_films_of_the_graphs_are_those_that_the_script_makes() {
        for graph in [PLAYER, PLAYER_GUEST] {
            let film = graph.lines().find_map(|line| line.trim().strip_prefix("film: "));
            let film = film.expect("a film");
            assert!(MAKE_FILMS.contains(&format!("\nmake {film} ")), "{film}");
        }
    }
}
