//! The scenario `guest`, on machines that have QEMU and the image.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use sinew_agent::BoardRow;
use sinew_lab::report::Row;
use sinew_lab::rounds::Silent;
use sinew_lab::scenario::ScenarioRequest;
use sinew_spec::plan::Board;

use crate::{Test, quick};

/// All tests of this file.
pub(crate) const TESTS: &[Test] =
    &[("every_way_to_a_guest_and_back_is_measured_or_says_why_not", every_way)];

/// What is missing here to run a guest.
fn lack(image: &Path) -> Option<String> {
    let no_image = || "there is no image of trials: cargo build --release in guest/".into();
    (BoardRow::of(Board::Virt).missing)().or_else(|| (!image.is_file()).then(no_image))
}

fn every_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let image = root.join("guest/target/armv7a-none-eabi/release/trials");
    if let Some(lack) = lack(&image) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
        println!("skipped: {lack}");
        return;
    }
    let request = ScenarioRequest { image: Some(image), ..quick() };
    let is_one = request.cpus.len() < 2;
    let stop = AtomicBool::new(false);
    let report = crate::run("guest", &["bytes=8,64"], request, &Silent, &stop).expect("a report");
    let measured = |row: &Row| row.measures.iter().any(|of| of.distribution.n() > 0);
    for row in &report.rows {
        let polls_alone = is_one && row.axis("wait") == Some("polling");
        assert_eq!(measured(row), !polls_alone, "{}: {:?}", row.id(), row.skipped);
    }
    assert!(report.rows.iter().any(|row| row.measure("guest_up").is_some()));
    assert!(report.warning.is_some_and(|warning| warning.contains("emulated: ratios count")));
    assert_eq!((report.tables.len(), report.verdicts.len()), (3, 5));
}
