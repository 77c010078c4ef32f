//! The scenario `player`, as far as a program without FFmpeg can show it.

use std::sync::atomic::AtomicBool;

use sinew_lab::ScenarioReport;
use sinew_lab::rounds::Silent;
use sinew_lab::scenario::{CannotRun, ScenarioRequest, table};
use sinew_runtime::{Kinds, ServiceEntry};
use sinew_services::SERVICES;

use crate::{Test, quick};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("a_film_is_played_or_the_program_says_how_to_build_it_with_ffmpeg", a_film),
    ("a_program_without_a_player_is_told_which_kind_is_missing", missing_kinds),
];

fn run(services: &[ServiceEntry]) -> Result<ScenarioReport, CannotRun> {
    let kinds = Kinds { services: services.to_vec(), ..Kinds::default() };
    let request = ScenarioRequest { kinds: table(&kinds), ..quick() };
    let only = ["decoder=one_cpu", "load=none"];
    crate::run("player", &only, request, &Silent, &AtomicBool::new(false))
}

fn a_film() {
    match run(SERVICES) {
        Ok(report) => {
            let [row] = &report.rows[..] else { panic!("one row: {:?}", report.rows) };
            assert_eq!(row.skipped, None);
            let n = |name| row.measure(name).map_or(0, |measure| measure.distribution.n());
            assert!(n("decode") > 0 && n("first_picture") == 1, "{row:?}");
            assert_eq!(row.figure("copies"), Some(0.0));
        }
        Err(CannotRun(why)) => {
            assert!(why.contains("built without FFmpeg; install "), "{why}");
            assert!(why.contains("'cargo build --release --features media'"), "{why}");
        }
    }
}

fn missing_kinds() {
    let Err(CannotRun(why)) = run(&[]) else { panic!("there are no services") };
    assert!(why.contains("no kind 'media_source'; give the lab its services' nodes"), "{why}");
}
