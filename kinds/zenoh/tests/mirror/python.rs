//! A program in Python that reads what a host sends and sends it commands.

use std::path::Path;
use std::process::{Command, Stdio};

use sinew_zenoh::{CallPort, Mirror};

use crate::stage::{HASH, free_address, incoming, numbers, outgoing, setting, turn, until};

/// The host `py`: answers each number with the next one.
const SCRIPT: &str = "
import struct, sys, threading, zenoh
sys.path.insert(0, sys.argv[1])
import sinew_hosts
settings = zenoh.Config.from_json5('''{
    mode: 'peer', listen: { endpoints: [] },
    connect: { endpoints: ['tcp/%s'], exit_on_failure: false, timeout_ms: -1 },
    scouting: { multicast: { enabled: false }, gossip: { enabled: false } },
    transport: { shared_memory: { enabled: false } },
}''' % sys.argv[2])
type_hash = int(sys.argv[3])
secret = open(sys.argv[4], 'rb').read() if len(sys.argv) > 4 else None
session = zenoh.open(settings)
with session, sinew_hosts.Host(session, 'g', 'py', 1, secret=secret) as host:
    def answer(it):
        stamps = host.stamps()
        heard = sinew_hosts.parse(it.payload.to_bytes(), secret)
        number, = struct.unpack('<Q', heard.message)
        host.send('n', 'answers', type_hash, struct.pack('<Q', number + 1), stamps)
    key = sinew_hosts.heard(sinew_hosts.message_key('g', 'a', 'n', 'numbers', type_hash))
    subscriber = session.declare_subscriber(key, answer)
    sys.stdin.read()
";

/// The same host: asks until it has ten answers, and then ends.
const ASKS: &str = "
    answers = 0
    while answers < 10:
        packet = b'packet %d' % answers
        said = host.ask('a', 'block/n', 'in', packet, 5, host.stamps())
        answers += said == packet + b' of a'
";

/// A Python that has zenoh; `None` if there is none.
#[expect(clippy::print_stderr, reason = "whoever runs the tests is told what was skipped")]
fn python() -> Option<String> {
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_it = Command::new(&python).args(["-c", "import zenoh"]).output();
    if !has_it.is_ok_and(|output| output.status.success()) {
        let missing = format!("'{python}' cannot import zenoh; name another in SINEW_TEST_PYTHON");
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        eprintln!("skipped: {missing}");
        return None;
    }
    Some(python)
}

#[test]
fn a_program_in_python_asks_and_is_answered() {
    let Some(python) = python() else { return };
    let address = free_address();
    let mut a = setting("a", Some(&address), &[("py", None)]);
    a.called = vec![CallPort { host: "py".into(), node: "block/n".into(), input: "in".into() }];
    let a = Mirror::open(&a).expect("a");
    a.exchange().take(|call| {
        let reply = [&call.packet[..], b" of a"].concat();
        call.answer(reply);
    });
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/python");
    let (begins, _) = SCRIPT.split_once("    def answer").expect("it answers");
    let script = format!("{begins}{}", ASKS.trim_start_matches('\n'));
    let mut script = Command::new(&python)
        .args(["-c", &script, folder, &address, &HASH.to_string()])
        .spawn()
        .expect("it runs");
    until("it has its answers", || script.try_wait().expect("a child").is_some());
    assert!(script.wait().expect("it has ended").success());
    let counted = a.exchange().counted()[0];
    assert!(counted.taken >= 10 && counted.late == 0, "{counted:?}");
}

#[test]
fn a_program_in_python_reads_and_is_obeyed() {
    reads_and_is_obeyed(None);
}

#[test]
fn a_program_in_python_has_the_secret_of_the_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("hosts.key");
    std::fs::write(&secret, "a secret of the hosts of this graph").expect("written");
    reads_and_is_obeyed(Some(&secret));
}

fn reads_and_is_obeyed(secret: Option<&Path>) {
    let Some(python) = python() else { return };
    let address = free_address();
    let mut a = setting("a", Some(&address), &[("py", None)]);
    a.outgoing.push(outgoing("numbers", 8));
    a.incoming.push(incoming("py", "answers", 8, Some(1000)));
    a.secret = secret.map(Path::to_owned);
    let mut a = Mirror::open(&a).expect("a");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/python");
    let mut script = Command::new(&python)
        .args(["-c", SCRIPT, folder, &address, &HASH.to_string()])
        .args(secret)
        .stdin(Stdio::piped())
        .spawn()
        .expect("it runs");
    let (mut number, mut answers) = (0_u64, vec![]);
    until("answers that are obeyed", || {
        number += 2;
        turn(&mut a, &[&number.to_le_bytes()]);
        answers.extend(numbers(&mut a, 0));
        answers.len() >= 10
    });
    assert!(answers.is_sorted() && answers.iter().all(|it| it % 2 == 1), "{answers:?}");
    until("its round trip", || a.hosts()[0].round_trip_ns.is_some());
    assert!(a.hosts()[0].is_alive);
    assert_eq!(a.not_taken()[0].refused(), 0, "{:?}", a.not_taken());
    drop(script.stdin.take());
    assert!(script.wait().expect("it ends").success());
}
