//! Measures what mirrors add to zenoh: the round trip of 256 bytes, 1000 times a second, between
//! two processes on this machine.
//!
//! `mirror`: one process asks through its mirror, the other wakes and answers through its own.
//! `zenoh`: the same with bare puts and a subscriber that a thread waits at, over the same kind of
//! session. They take turns, several rounds, each round with processes of its own.
//!
//! `cargo run --release -p sinew-zenoh --example round_trip [rounds] [messages of a round]`

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use sinew_zenoh::{HostState, IncomingPort, Mirror, OutgoingPort, Peer, Setting};
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::Locality;
use zenoh::{Config, Wait};

const BYTES: usize = 256;
const PERIOD: Duration = Duration::from_millis(1);
/// An answer that has not come after this time is lost.
const LOST: Duration = Duration::from_millis(200);
/// Messages at the start of each round that are not counted.
const WARM_UP: u64 = 300;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One of two ends that talk, whatever carries their messages.
trait Talk {
    fn send(&mut self, message: &[u8]);
    /// The next message. Waits for it at most for `time`.
    fn receive(&mut self, time: Duration) -> Option<Vec<u8>>;
}

struct OverMirror(Mirror);

impl OverMirror {
    fn open(is_asking: bool, address: &str) -> Result<OverMirror, Failure> {
        let (own, other) = if is_asking { ("ask", "answer") } else { ("answer", "ask") };
        let here = (!is_asking).then(|| address.to_owned());
        let there = is_asking.then(|| address.to_owned());
        let port = |node: &str| (node.to_owned(), "out".to_owned());
        let (node, port_name) = port(own);
        let outgoing = OutgoingPort { node, port: port_name, hash: 1, bytes: BYTES };
        let (node, port_name) = port(other);
        let incoming = IncomingPort {
            from: other.into(),
            node,
            port: port_name,
            hash: 1,
            bytes: BYTES,
            after_ns: Some(200_000_000),
            newest_only: false,
            capacity: 16,
        };
        let mirror = Mirror::open(&Setting {
            graph: "round_trip".into(),
            host: own.into(),
            version: 1,
            listen: here,
            router: None,
            peers: vec![Peer { name: other.into(), address: there, calls_router: false }],
            tls: None,
            secret: None,
            outgoing: vec![outgoing],
            calls: vec![],
            called: vec![],
            incoming: vec![incoming],
            now_ns,
        })?;
        Ok(OverMirror(mirror))
    }
}

/// This process's monotonic clock.
fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1_000_000_000 + START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

impl Talk for OverMirror {
    fn send(&mut self, message: &[u8]) {
        self.0.begin();
        self.0.send(0, message);
        self.0.end();
    }

    fn receive(&mut self, time: Duration) -> Option<Vec<u8>> {
        let (end, mut bytes) = (Instant::now() + time, vec![0; BYTES]);
        loop {
            if self.0.receive(0, &mut bytes).is_some() {
                return Some(bytes);
            }
            if !self.0.wait(end.saturating_duration_since(Instant::now())) {
                return None;
            }
        }
    }
}

type Next = Box<dyn Fn(Duration) -> Option<Vec<u8>>>;

struct OverZenoh {
    publisher: Publisher<'static>,
    /// Waits for the next message.
    next: Next,
    _session: zenoh::Session,
}

impl OverZenoh {
    fn open(is_asking: bool, address: &str) -> Result<OverZenoh, Failure> {
        let (listen, connect) = match is_asking {
            true => (String::new(), format!("'tcp/{address}'")),
            false => (format!("'tcp/{address}'"), String::new()),
        };
        let session = zenoh::open(Config::from_json5(&format!(
            "{{ mode: 'peer', listen: {{ endpoints: [{listen}] }}, \
             connect: {{ endpoints: [{connect}], exit_on_failure: false, timeout_ms: -1, \
             retry: {{ period_init_ms: 100, period_max_ms: 200 }} }}, \
             scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }} }}"
        ))?)
        .wait()?;
        let (own, other) = if is_asking { ("ask", "answer") } else { ("answer", "ask") };
        let publisher = session
            .declare_publisher(format!("round_trip/{own}"))
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::InteractiveHigh)
            .express(true)
            .allowed_destination(Locality::Remote)
            .wait()?;
        let subscriber = session.declare_subscriber(format!("round_trip/{other}")).wait()?;
        let next = Box::new(move |time| {
            let came = subscriber.recv_timeout(time).ok().flatten();
            came.map(|it| it.payload().to_bytes().into_owned())
        });
        Ok(OverZenoh { publisher, next, _session: session })
    }
}

impl Talk for OverZenoh {
    fn send(&mut self, message: &[u8]) {
        // A message that is not sent counts as lost.
        let _ = self.publisher.put(message).wait();
    }

    fn receive(&mut self, time: Duration) -> Option<Vec<u8>> {
        (self.next)(time)
    }
}

fn open(kind: &str, is_asking: bool, address: &str) -> Result<Box<dyn Talk>, Failure> {
    Ok(match kind {
        "mirror" => {
            let talk = OverMirror::open(is_asking, address)?;
            while is_asking && talk.0.hosts()[0].state != HostState::Heard {
                thread::sleep(PERIOD);
            }
            Box::new(talk)
        }
        _ => Box::new(OverZenoh::open(is_asking, address)?),
    })
}

/// Sends back what it gets, until the process is ended.
fn answer(mut talk: Box<dyn Talk>) {
    loop {
        if let Some(message) = talk.receive(LOST) {
            talk.send(&message);
        }
    }
}

/// Sends so many messages and prints the round trips, ns; one without an answer is printed as 0.
fn ask(mut talk: Box<dyn Talk>, messages: u64) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    // The other side is there as soon as the first answer comes.
    let mut message = vec![0; BYTES];
    while {
        talk.send(&message);
        talk.receive(Duration::from_millis(20)).is_none()
    } {}
    let mut next = Instant::now();
    for number in 1..=WARM_UP + messages {
        next = (next + PERIOD).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
        message[..8].copy_from_slice(&number.to_le_bytes());
        let sent = Instant::now();
        talk.send(&message);
        let took = loop {
            let left = LOST.saturating_sub(sent.elapsed());
            match talk.receive(left) {
                Some(answer) if answer == message => break sent.elapsed().as_nanos(),
                Some(_) => {}
                None => break 0,
            }
        };
        if number > WARM_UP {
            writeln!(out, "{took}")?;
        }
    }
    Ok(())
}

fn start(kind: &str, role: &str, address: &str, messages: u64) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([kind, role, address, &messages.to_string()]).stdout(Stdio::piped());
    Ok(command.spawn()?)
}

/// One round: its round trips in order of size, and how many had no answer.
fn round(kind: &str, messages: u64) -> Result<(Vec<u64>, usize), Failure> {
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let mut answers = start(kind, "answer", &address, messages)?;
    let mut asks = start(kind, "ask", &address, messages)?;
    let lines = asks.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let all = lines.map(|line| Ok(line?.parse()?)).collect::<Result<Vec<u64>, Failure>>();
    asks.wait()?;
    answers.kill()?;
    answers.wait()?;
    let mut found: Vec<_> = all?;
    let count = found.len();
    found.retain(|it| *it > 0);
    found.sort_unstable();
    Ok((found.clone(), count - found.len()))
}

fn at(sorted: &[u64], of_ten_thousand: usize) -> f64 {
    let place = sorted.len() * of_ten_thousand / 10_000;
    sorted.get(place.min(sorted.len().saturating_sub(1))).map_or(f64::NAN, |it| *it as f64 / 1e3)
}

#[expect(clippy::print_stdout, reason = "it is what the program is for")]
fn compare(rounds: usize, messages: u64) -> Result<(), Failure> {
    println!(
        "round trip of {BYTES} B at 1 kHz between two processes over TCP on this machine, \
         {messages} messages in each of {rounds} rounds of each; us"
    );
    let mut ratios = Vec::new();
    for number in 0..rounds {
        let mut kinds = ["mirror", "zenoh"];
        kinds.rotate_left(number % 2);
        let mut medians = [0.0; 2];
        for kind in kinds {
            let (found, lost) = round(kind, messages)?;
            let [median, p99, most] = [5_000, 9_900, 10_000].map(|it| at(&found, it));
            println!("{kind:6}  median {median:7.1}  p99 {p99:7.1}  max {most:8.1}  lost {lost}");
            medians[usize::from(kind == "zenoh")] = median;
        }
        ratios.push(medians[0] / medians[1]);
    }
    ratios.sort_by(f64::total_cmp);
    let shown: Vec<_> = ratios.iter().map(|it| format!("{it:.2}")).collect();
    println!("median of mirror / zenoh, by rounds: {}", shown.join(" "));
    println!("median ratio {:.2}; the bar is 1.20", ratios[ratios.len() / 2]);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [kind, "answer", address, _] => {
            answer(open(kind, false, address)?);
            Ok(())
        }
        [kind, "ask", address, messages] => ask(open(kind, true, address)?, messages.parse()?),
        [] => compare(9, 2000),
        [rounds, ref rest @ ..] => {
            compare(rounds.parse()?, rest.first().map_or(Ok(2000), |it| it.parse())?)
        }
    }
}
