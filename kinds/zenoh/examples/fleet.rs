//! Simulates a fleet: robots that speak through one router, and an observer who hears all of them.
//!
//! Three processes on this machine: the router, a session of zenoh in mode `router`; the observer,
//! a client that subscribes to all keys; and one process for all robots. Each robot has a mirror,
//! as a host has one, with its own session and threads. It is host `robot` of a graph of its own,
//! and sends 120 bytes 50 times a second and ten stamps a second. With `--guarded` each has a
//! certificate, and the router a list of who may write what.
//!
//! `cargo run --release -p sinew-zenoh --example fleet [--json] [--guarded] [--seconds 10] [N ...]`
//!
//! Bytes are those of all programs on `lo`. To have only those of the fleet, give it a network of
//! its own: `unshare -n sh -c 'ip link set lo up; target/release/examples/fleet'`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _, stdin};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use sinew_core::clock::now_ns;
use sinew_hosts::MessageHeader;
use sinew_zenoh::{HostState, Mirror, OutgoingPort, Peer, Setting, TlsFiles};
use zenoh::{Config, Session, Wait};

/// Bytes of a message, as the arm's feedback has.
const BYTES: usize = 120;
/// Time between two messages of a robot.
const PERIOD: Duration = Duration::from_millis(20);
/// Sizes of fleets that are tried if none is given.
const FLEETS: [usize; 5] = [1, 10, 50, 100, 200];
/// Time between the moment at which all are there and the first count.
const SETTLES: Duration = Duration::from_secs(2);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a process is told: where the router is, and where the certificates are, if there are any.
struct Place<'a> {
    address: &'a str,
    folder: Option<&'a Path>,
    robots: usize,
}

impl Place<'_> {
    fn endpoint(&self) -> String {
        match self.folder {
            Some(_) => format!("quic/{}?multistream=0", self.address),
            None => format!("tcp/{}", self.address),
        }
    }

    fn files(&self, name: &str) -> Option<TlsFiles> {
        let file = |name: String| Some(self.folder?.join(name));
        Some(TlsFiles {
            authority: file("ca.pem".into())?,
            certificate: file(format!("{name}.pem"))?,
            key: file(format!("{name}.key"))?,
        })
    }

    /// The settings of zenoh for the end that listens or connects.
    fn tls(&self, name: &str, end: &str) -> String {
        let Some(files) = self.files(name) else { return String::new() };
        let [ca, certificate, key] =
            [files.authority, files.certificate, files.key].map(|it| it.display().to_string());
        format!(
            "tls: {{ root_ca_certificate: '{ca}', enable_mtls: true, \
             {end}_certificate: '{certificate}', {end}_private_key: '{key}' }},"
        )
    }
}

fn session(text: &str) -> Result<Session, Failure> {
    zenoh::open(Config::from_json5(text)?).wait()
}

/// Runs the router until the process is ended.
fn route(place: &Place<'_>) -> Result<(), Failure> {
    let access = place.folder.map(|_| access(place.robots)).unwrap_or_default();
    let _session = session(&format!(
        "{{ mode: 'router', listen: {{ endpoints: ['{}'] }}, adminspace: {{ enabled: false }}, \
         scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }}, \
         timestamping: {{ enabled: false }}, {access} \
         transport: {{ unicast: {{ max_sessions: {}, accept_pending: 1000 }}, \
         link: {{ tx: {{ lease: 500 }}, {} }} }} }}",
        place.endpoint(),
        place.robots * 2 + 100,
        place.tls("router", "listen"),
    ))?;
    ready()?;
    loop {
        sleep(PERIOD);
    }
}

/// The rules of who may write what, as in `graphs/cell/router.json5`, for this many graphs.
fn access(robots: usize) -> String {
    let (mut rules, mut subjects, mut policies) = (String::new(), String::new(), String::new());
    let asks = "'declare_subscriber', 'declare_liveliness_subscriber', 'liveliness_query'";
    let mut add = |name: &str, cn: &str, hears: &str, says: &str| {
        let keys = |below: &str| format!("'sinew/{below}/**'");
        let heard = format!("{0}, 'sinew/{hears}/*/@stamp', 'sinew/{hears}/*/@alive'", keys(hears));
        // Hosts subscribe to patterns.
        let asked = heard.replace("'sinew/", "'sinew$*/");
        let said = format!("{0}, 'sinew/{says}/@stamp', 'sinew/{says}/@alive'", keys(says));
        let all = "'sinew$*/**', 'sinew$*/*/*/@stamp', 'sinew$*/*/*/@alive'";
        let says = "'put', 'liveliness_token'";
        for (id, flow, messages, keys) in [
            ("ask", "ingress", asks, asked.as_str()),
            ("asked", "egress", asks, all),
            ("hear", "egress", says, &heard),
            ("say", "ingress", says, &said),
        ] {
            let _ = write!(
                rules,
                "{{ id: '{id}_{name}', permission: 'allow', flows: ['{flow}'], \
                 messages: [{messages}], key_exprs: [{keys}] }},"
            );
        }
        let _ = write!(subjects, "{{ id: '{name}', cert_common_names: ['{cn}'] }},");
        let _ = write!(
            policies,
            "{{ rules: ['ask_{name}', 'asked_{name}', 'hear_{name}', 'say_{name}'], \
             subjects: ['{name}'] }},"
        );
    };
    for robot in 0..robots {
        let graph = graph(robot);
        add(&graph, &format!("{graph}@robot"), &graph, &format!("{graph}/robot"));
    }
    // The observer may write only below its own name, and so to nobody.
    add("observer", "fleet@observer", "*", "fleet/observer");
    format!(
        "access_control: {{ enabled: true, default_permission: 'deny', rules: [{rules}], \
         subjects: [{subjects}], policies: [{policies}] }},"
    )
}

fn graph(robot: usize) -> String {
    format!("robot{robot}")
}

/// Tells the process that started this one that it is ready.
#[expect(clippy::print_stdout, reason = "who started it waits for this word")]
fn ready() -> Result<(), Failure> {
    println!("ready");
    Ok(std::io::stdout().flush()?)
}

/// Runs all robots until the process is ended.
fn drive(place: &Place<'_>) -> Result<(), Failure> {
    let open = |robot: usize| {
        let graph = graph(robot);
        // The office that each robot would speak with.
        let office = Peer { name: "office".into(), address: None, calls_router: true };
        let port = ("arm".into(), "feedback".into());
        Mirror::open(&Setting {
            tls: place.files(&graph),
            secret: None,
            graph,
            host: "robot".into(),
            version: 1,
            listen: None,
            router: Some(place.address.into()),
            peers: vec![office],
            outgoing: vec![OutgoingPort { node: port.0, port: port.1, hash: 1, bytes: BYTES }],
            incoming: vec![],
            calls: vec![],
            called: vec![],
            now_ns,
        })
    };
    let mut mirrors = (0..place.robots).map(open).collect::<Result<Vec<_>, _>>()?;
    while mirrors.iter().any(|it| it.router() != Some(HostState::Heard)) {
        sleep(PERIOD);
    }
    ready()?;
    // They send one after the other, not all at once.
    let (start, step) = (Instant::now(), PERIOD / u32::try_from(place.robots)?);
    let mut message = [0; BYTES];
    for turn in 0_u32.. {
        let due = start + step * turn;
        sleep(due.saturating_duration_since(Instant::now()));
        let mirror = &mut mirrors[turn as usize % place.robots];
        mirror.begin();
        message[..8].copy_from_slice(&now_ns().to_le_bytes());
        mirror.send(0, &message);
        mirror.end();
    }
    Ok(())
}

/// What the observer has heard since it was asked last.
#[derive(Default)]
struct Heard {
    /// Of each robot: messages, and the first and the last sequence.
    robots: HashMap<String, (u64, u64, u64)>,
    delays_us: Vec<u64>,
    stamps: u64,
}

impl Heard {
    fn take(&mut self, it: &zenoh::sample::Sample) {
        let bytes = it.payload().to_bytes();
        let Ok((header, message)) = MessageHeader::read(&bytes, BYTES) else { return };
        let sent = message[..8].try_into().map_or(0, u64::from_le_bytes);
        self.delays_us.push(now_ns().saturating_sub(sent) / 1000);
        let first = (0, header.sequence, 0);
        let of_it = self.robots.entry(it.key_expr().to_string()).or_insert(first);
        *of_it = (of_it.0 + 1, of_it.1, header.sequence.max(of_it.2));
    }

    /// Robots, messages, messages missing between them, stamps, and two delays in us.
    fn told(&mut self) -> String {
        let messages: u64 = self.robots.values().map(|it| it.0).sum();
        let all: u64 = self.robots.values().map(|(_, first, last)| last + 1 - first).sum();
        self.delays_us.sort_unstable();
        let at = |percent: usize| {
            let last = self.delays_us.len().saturating_sub(1);
            self.delays_us.get(last * percent / 100).copied().unwrap_or_default()
        };
        let (lost, stamps) = (all.saturating_sub(messages), self.stamps);
        format!("{} {messages} {lost} {stamps} {} {}", self.robots.len(), at(50), at(99))
    }
}

/// The observer: at each line of its input it prints what it has heard since the line before.
#[expect(clippy::print_stdout, reason = "who started it reads this")]
fn observe(place: &Place<'_>) -> Result<(), Failure> {
    let session = session(&format!(
        "{{ mode: 'client', connect: {{ endpoints: ['{}'] }}, \
         scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }}, \
         transport: {{ link: {{ {} }} }} }}",
        place.endpoint(),
        place.tls("observer", "connect"),
    ))?;
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let [for_messages, for_stamps] = [(); 2].map(|()| Arc::clone(&heard));
    let take = move |it: zenoh::sample::Sample| {
        for_messages.lock().expect("nobody panics with it").take(&it)
    };
    session.declare_subscriber("sinew/*/robot/**").callback(take).background().wait()?;
    let take = move |_: zenoh::sample::Sample| {
        for_stamps.lock().expect("nobody panics with it").stamps += 1
    };
    session.declare_subscriber("sinew/*/*/@stamp").callback(take).background().wait()?;
    ready()?;
    for line in stdin().lines() {
        line?;
        let mut heard = std::mem::take(&mut *heard.lock().expect("nobody panics with it"));
        println!("{}", heard.told());
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// A process of this program, ended when it is dropped.
struct Part {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Part {
    /// Starts a process and waits until it is ready.
    fn start(role: &str, place: &Place<'_>) -> Result<Part, Failure> {
        let folder = place.folder.map_or("-".into(), |it| it.display().to_string());
        let mut command = Command::new(std::env::current_exe()?);
        command.args([role, place.address, &folder, &place.robots.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = input.zip(output).ok_or("a process without pipes")?;
        let mut part = Part { child, input, output: BufReader::new(output) };
        match part.line()?.trim() {
            "ready" => Ok(part),
            _ => Err(format!("the process '{role}' has ended").into()),
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    /// What the observer tells.
    fn ask(&mut self) -> Result<Vec<u64>, Failure> {
        self.input.write_all(b"\n")?;
        Ok(self.line()?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }

    /// CPU time of all its threads, s.
    fn cpu_s(&self) -> Result<f64, Failure> {
        let mut all_ns = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may have ended since.
            let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            all_ns += text.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0_u64);
        }
        Ok(all_ns as f64 / 1e9)
    }

    /// Resident memory, KiB.
    fn resident_kib(&self) -> Result<f64, Failure> {
        let text = fs::read_to_string(format!("/proc/{}/statm", self.child.id()))?;
        Ok(text.split(' ').nth(1).ok_or("no memory")?.parse::<f64>()? * 4.0)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// Bytes that have gone over `lo`.
fn lo_bytes() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/net/dev")?;
    let row = text.lines().find_map(|line| line.trim().strip_prefix("lo:")).ok_or("no lo")?;
    Ok(row.split_whitespace().next().ok_or("no figure")?.parse()?)
}

/// Makes an authority, and a certificate for each host, the observer and the router.
fn sign_all(folder: &Path, robots: usize) -> Result<(), Failure> {
    let key = KeyPair::generate()?;
    let mut its = CertificateParams::new(vec![])?;
    its.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    its.distinguished_name.push(DnType::CommonName, "the authority of a fleet");
    fs::write(folder.join("ca.pem"), its.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(its, key);
    let robots = (0..robots).map(|it| (graph(it), format!("{}@robot", graph(it))));
    let others = [("router", "router"), ("observer", "fleet@observer")];
    for (name, cn) in others.map(|(name, cn)| (name.into(), cn.into())).into_iter().chain(robots) {
        let key = KeyPair::generate()?;
        let mut its = CertificateParams::new(vec!["127.0.0.1".into()])?;
        its.distinguished_name.push(DnType::CommonName, cn);
        its.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        fs::write(folder.join(format!("{name}.pem")), its.signed_by(&key, &issuer)?.pem())?;
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem())?;
    }
    Ok(())
}

/// The figures of a fleet, with the names under which they are shown.
type Row = Vec<(&'static str, f64)>;

fn measure(robots: usize, seconds: u64, is_guarded: bool) -> Result<Row, Failure> {
    let folder = is_guarded.then(tempfile::tempdir).transpose()?;
    let folder = folder.as_ref().map(tempfile::TempDir::path);
    folder.map(|it| sign_all(it, robots)).transpose()?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let place = Place { address: &address, folder, robots };
    let router = Part::start("router", &place)?;
    let mut observer = Part::start("observer", &place)?;
    sleep(SETTLES);
    let alone_kib = router.resident_kib()?;
    let all = Part::start("robots", &place)?;
    sleep(SETTLES);
    observer.ask()?;
    let look = || Ok::<_, Failure>((Instant::now(), router.cpu_s()?, all.cpu_s()?, lo_bytes()?));
    let before = look()?;
    sleep(Duration::from_secs(seconds));
    let heard = observer.ask()?;
    let after = look()?;
    let [seen, messages, lost, stamps, p50_us, p99_us] = heard[..] else {
        return Err("the observer tells nothing".into());
    };
    let (count, took_s) = (robots as f64, (after.0 - before.0).as_secs_f64());
    let cpu = |used_s: f64| used_s / took_s * 100.0;
    let router_kib = router.resident_kib()?;
    Ok(vec![
        ("robots", count),
        ("robots_heard", seen as f64),
        ("messages_per_s", messages as f64 / took_s),
        ("stamps_per_s", stamps as f64 / took_s),
        ("lost", lost as f64),
        ("delay_us_p50", p50_us as f64),
        ("delay_us_p99", p99_us as f64),
        ("router_cpu_percent", cpu(after.1 - before.1)),
        ("router_cpu_percent_per_robot", cpu(after.1 - before.1) / count),
        ("robots_cpu_percent", cpu(after.2 - before.2)),
        ("router_alone_kib", alone_kib),
        ("router_kib", router_kib),
        ("router_kib_per_robot", (router_kib - alone_kib) / count),
        ("robot_kib", all.resident_kib()? / count),
        ("lo_bytes_per_s_per_robot", (after.3 - before.3) / took_s / count),
    ])
}

/// Shows all rows: each figure of a fleet in its column.
#[expect(clippy::print_stdout, reason = "it is what the program is for")]
fn show(rows: &[Row], is_json: bool) {
    let digits = |name: &str| if name.contains("cpu") { 3 } else { 0 };
    if is_json {
        let pair = |(name, it): &(&str, f64)| format!("\"{name}\": {it:.*}", digits(name));
        let row = |row: &Row| row.iter().map(pair).collect::<Vec<_>>().join(", ");
        let rows: Vec<_> = rows.iter().map(|it| format!("{{{}}}", row(it))).collect();
        return println!("[{}]", rows.join(",\n"));
    }
    for at in 0..rows.first().map_or(0, Vec::len) {
        let name = rows[0][at].0;
        let figures = rows.iter().map(|row| format!("{:>10.*}", digits(name), row[at].1));
        println!("{name:30}{}", figures.collect::<String>());
    }
}

fn number<T: TryFrom<u16>>(what: &str, word: &str) -> Result<T, Failure> {
    let number = word.parse::<u16>().ok().filter(|it| (1..=1000).contains(it));
    let number = number.and_then(|it| T::try_from(it).ok());
    Ok(number.ok_or(format!("{what} is '{word}'; expected a number from 1 to 1000"))?)
}

fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    if let [role @ ("router" | "robots" | "observer"), address, folder, robots] = words[..] {
        let folder = (folder != "-").then_some(Path::new(folder));
        let place = Place { address, folder, robots: robots.parse()? };
        return match role {
            "router" => route(&place),
            "robots" => drive(&place),
            _ => observe(&place),
        };
    }
    let (mut fleets, mut seconds, mut is_json, mut is_guarded) = (vec![], 10_u64, false, false);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word {
            "--json" => is_json = true,
            "--guarded" => is_guarded = true,
            "--seconds" => seconds = number("--seconds", words.next().unwrap_or_default())?,
            robots => fleets.push(number("a fleet", robots)?),
        }
    }
    let fleets: Vec<usize> = if fleets.is_empty() { FLEETS.to_vec() } else { fleets };
    let rows = fleets.iter().map(|&it| measure(it, seconds, is_guarded));
    show(&rows.collect::<Result<Vec<_>, _>>()?, is_json);
    Ok(())
}
