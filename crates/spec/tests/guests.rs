//! Guests: their kinds come from the image, their links are in its memory, and errors are reported.

use sinew_carve_out::image::{KindRecord, numbers, port};
use sinew_spec::catalogue::Kind;
use sinew_spec::guest::{node_rows, rows};
use sinew_spec::plan::{Board, Delivery, Plan, TargetMachine, Transport};
use sinew_spec::{Diagnostic, GuestImage, SpecSource, compile, images_of, picture, render};
use zerocopy::IntoBytes;

use crate::kinds::{FRAME, JOINTS, KINDS};

const GUARD: KindRecord = KindRecord::new(
    "guard",
    "Watches.",
    4096,
    &[port("in", "What is asked.", 0, &FRAME), port("out", "What may be.", 1, &FRAME)],
    &[
        numbers("after", "Cycles.", "cycles", "10", 1, (1.0, 100.0)),
        numbers("speed_max", "Limits.", "rad/s", "", 2, (0.0, 10.0)),
    ],
    &["silent"],
);

/// The arm with a guard before its drives.
const TEXT: &str = "
name: dual
domains:
  control: {realtime: {period: 1ms}}
  plant: {realtime: {period: 1ms}}
  guard: {guest: {image: guard.elf, board: virt, memory: 1MiB, period: 2ms}}
nodes:
  - {kind: filter, name: filter, domain: control, ports: {out: [{name: ethercat, port: in}]}}
  - kind: ethercat_master
    name: ethercat
    domain: control
    ports: {out: [{name: guard, port: in, delivery: latest}]}
  - kind: guard
    domain: guard
    speed_max: [1, 2.5]
    ports: {out: [{name: drives, port: in}]}
  - kind: drives
    name: drives
    domain: plant
    safe: {in: {value: quick_stop, after: 5}}
";

fn image(table: Result<Vec<u8>, String>) -> GuestImage {
    GuestImage { image: "guard.elf".into(), board: Board::Virt, table }
}

fn compile_with(text: &str, images: &[GuestImage]) -> Result<Plan, Vec<Diagnostic>> {
    let kinds: Vec<&'static Kind> = KINDS.to_vec();
    let source = SpecSource { images, ..SpecSource::of("graph.yaml", text) };
    compile(&source, &kinds, &TargetMachine::of(vec![0, 1]))
}

fn table(kinds: &[KindRecord]) -> GuestImage {
    image(Ok(kinds.iter().flat_map(|kind| kind.as_bytes().to_vec()).collect()))
}

fn good() -> Plan {
    compile_with(TEXT, &[table(&[GUARD])])
        .unwrap_or_else(|errors| panic!("{}", render(&errors, TEXT, false)))
}

fn errors(text: &str, images: &[GuestImage]) -> String {
    render(&compile_with(text, images).expect_err("a bad graph"), text, false)
}

#[test]
fn the_kinds_of_an_image_are_those_of_its_domain() {
    let plan = good();
    let guest = plan.domains.iter().position(|domain| domain.name == "guard").expect("a domain");
    let planned = plan.domains[guest].guest().expect("a guest");
    let said = (&*planned.image, planned.board, planned.memory_bytes, planned.period_ns);
    assert_eq!(said, ("guard.elf", Board::Virt, 1 << 20, 2_000_000));
    let nodes = node_rows(&plan, guest);
    assert_eq!(nodes.len(), 1);
    assert_eq!((nodes[0].name.as_str(), nodes[0].kind.as_str()), ("guard", "guard"));
    assert_eq!((nodes[0].period_us, nodes[0].value_count), (2000, 3));
    assert_eq!(nodes[0].values[..3], [10.0, 1.0, 2.5]);
}

#[test]
fn links_to_a_guest_lie_in_its_memory_and_may_command_an_actuator() {
    let plan = good();
    let links = plan.links.iter().filter(|link| plan.carve_out(link).is_some());
    let links: Vec<_> = links.map(|link| (link.transport, link.delivery)).collect();
    let carve_out = Transport::CarveOut;
    assert_eq!(links, [(carve_out, Delivery::Latest), (carve_out, Delivery::Queue)]);
    let guest = plan.domains.iter().position(|domain| domain.guest().is_some()).expect("one");
    let rows: Vec<_> = rows(&plan, guest).into_iter().map(|(_, row)| row).collect();
    assert_eq!(rows[0].name.as_str(), "ethercat.out>guard.in");
    assert!(rows.iter().all(|row| row.lies_in(1 << 20) && row.hash == FRAME.hash));
    assert!(rows[0].offset + rows[0].size <= rows[1].offset, "{rows:?}");
    let drawn = picture::text(&plan, 100);
    assert!(drawn.contains("guest on board virt") && drawn.contains("carve_out"), "{drawn}");
}

#[test]
fn limits_below_what_its_emulator_needs_are_refused() {
    let with = |limits: &str| {
        let end = "period: 2ms}}";
        TEXT.replacen(end, &format!("period: 2ms}}, limits: {{{limits}}}}}"), 1)
    };
    let images = [table(&[GUARD])];
    let least = with("memory: 288MiB, processes: 4, descriptors: 33");
    assert!(compile_with(&least, &images).is_ok(), "{}", errors(&least, &images));
    let said = errors(&with("memory: 287MiB, processes: 3, descriptors: 32"), &images);
    for expected in [
        "guest 'guard' cannot run with memory: 287MiB; it needs 288MiB",
        "write memory: 288MiB or more: the emulator of board 'virt' takes so much",
        "guest 'guard' cannot run with processes: 3; it needs 4",
        "guest 'guard' cannot run with descriptors: 32; it needs 33",
    ] {
        assert!(said.contains(expected), "not said: '{expected}' in\n{said}");
    }
}

#[test]
fn a_guest_has_the_cpus_that_its_domain_names() {
    let with = |cpus: &str| TEXT.replace("guard: {guest", &format!("guard: {{cpus: {cpus}, guest"));
    let plan = compile_with(&with("[1]"), &[table(&[GUARD])]).expect("a good graph");
    let guard = plan.domains.iter().find(|domain| domain.guest().is_some()).expect("a guest");
    assert_eq!(guard.service().expect("a service").cpus, Some(vec![1]));
    let errors = errors(&with("[2]"), &[table(&[GUARD])]);
    assert!(errors.contains("cpu 2 does not exist or may not be used"), "{errors}");
}

#[test]
fn the_images_of_a_text_are_found_before_it_is_compiled() {
    assert_eq!(images_of(TEXT), [("guard.elf".to_owned(), Board::Virt)]);
    assert_eq!(images_of("guest: ["), []);
    assert_eq!(images_of("name: x"), []);
}

#[test]
fn an_image_that_cannot_be_had_is_the_only_error() {
    let why = "no such file; build it".to_owned();
    let errors = compile_with(TEXT, &[image(Err(why))]).expect_err("no image");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].message, "image 'guard.elf': no such file");
    assert_eq!((errors[0].line, &*errors[0].help), (6, "build it"));
    let errors = self::errors(TEXT, &[image(Ok(vec![0; 8]))]);
    assert!(errors.contains("its table of kinds has 8 bytes"), "{errors}");
}

#[test]
fn an_image_built_against_another_message_is_refused() {
    let other = KindRecord {
        ports: {
            let mut ports = GUARD.ports;
            ports[0] = port("in", "What is asked.", 0, &JOINTS);
            ports
        },
        ..GUARD
    };
    let errors = errors(TEXT, &[table(&[other])]);
    assert!(
        errors.contains("'ethercat.out' sends Frame (80 bytes), but 'guard.in' takes"),
        "{errors}"
    );
    let mut of_c = GUARD;
    of_c.ports.iter_mut().for_each(|port| port.hash = 0);
    let plan = compile_with(TEXT, &[table(&[of_c])]).expect("it is counted from the fields");
    let mut links = plan.links.iter().filter(|link| plan.carve_out(link).is_some());
    assert!(links.all(|link| link.message.hash == FRAME.hash));
    let mut turned = GUARD;
    turned.ports[0].fields[0].count = 9;
    let errors = self::errors(TEXT, &[table(&[turned])]);
    assert!(errors.contains("message Frame of port 'in' of its kind 'guard' has hash"), "{errors}");
}

#[test]
fn what_cannot_be_in_a_guest_is_said() {
    let images = [table(&[GUARD])];
    let says = |from: &str, to: &str, expected: &str| {
        assert!(TEXT.contains(from), "{from}");
        let errors = errors(&TEXT.replacen(from, to, 1), &images);
        assert!(errors.contains(expected), "{from} -> {to}:\n{errors}");
    };
    says("memory: 1MiB", "memory: 192KiB", "no power of two");
    says("memory: 1MiB", "memory: 32KiB", "memory cannot be '32KiB'");
    says("period: 2ms", "period: 1500us", "is not whole milliseconds");
    says("board: virt", "board: stm32", "board cannot be 'stm32'");
    says("image: guard.elf, ", "", "a guest lacks 'image'");
    says("domain: control, ports", "domain: guard, ports", "has no kind 'filter'");
    says("    domain: guard\n", "    domain: plant\n", "runs in a guest, and 'plant' is another");
    says("delivery: latest", "transport: pipe", "transport pipe cannot cross to another operating");
    says("delivery: latest", "sync: mutex", "two operating systems cannot share a mutex");
    says("delivery: latest", "delivery: queue", "a queue cannot lead from the core to a service");
    says("{name: drives, port: in}", "{name: drives, port: in, capacity: 32768}", "need");
    says("    speed_max: [1, 2.5]\n", "", "lacks 'speed_max'");
    says(
        "kind: guard\n",
        "kind: guard\n    name: a_name_that_is_longer_than_32_bytes\n",
        "too long",
    );
    says(
        "{realtime: {period: 1ms}}\n  guard",
        "{realtime: {period: 1ms}, guest: {image: x}}\n  guard",
        "has no meaning in 'plant'",
    );
    let twice =
        [table(&[GUARD, KindRecord { name: sinew_carve_out::image::text("filter"), ..GUARD }])];
    let errors = errors(TEXT, &twice);
    assert!(
        errors.contains("has a kind 'filter', and there is one of this name already"),
        "{errors}"
    );
}
