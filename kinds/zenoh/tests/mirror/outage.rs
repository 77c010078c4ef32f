//! Hosts over a line that stands still and then delivers all that it held. `SINEW_OUTAGES` says how
//! many outages there are in all.

use std::thread;
use std::time::{Duration, Instant};

use sinew_zenoh::Mirror;
use zenoh::Session;

use crate::proxy::Proxy;
use crate::router::{guarded, router};
use crate::stage::{free_address, incoming, now_ns, outgoing, said_ns, setting, turn, until};
use crate::tls::Authority;

const AFTER_MS: u64 = 30;
/// Pairs of hosts at once.
const PAIRS: u64 = 4;
/// Ports of the receiver: one that obeys nothing old, and the same port without a limit.
const STRICT: usize = 0;
const LAX: usize = 1;

/// What outages have shown.
#[derive(Debug, Default)]
struct Shown {
    outages: u64,
    /// Outages after which something came too late.
    late_in: u64,
    late: u64,
    /// The oldest message that was handed out, ns: with the limit, and without.
    oldest_ns: [u64; 2],
    received: u64,
}

struct Pair {
    proxy: Proxy,
    receiver: Mirror,
    sender: Mirror,
    shown: Shown,
    _router: Option<Session>,
}

impl Pair {
    /// The sender dials the receiver, or both dial a router. The line that fails is the sender's.
    fn open(authority: Option<&Authority>, with_router: bool) -> Pair {
        let address = free_address();
        // With certificates they speak QUIC.
        let to = if authority.is_some() { Proxy::of_datagrams_to } else { Proxy::to };
        let proxy = to(&address);
        let mut cell = setting("cell", Some(&address), &[("office", None)]);
        let mut office = setting("office", None, &[("cell", Some(&proxy.address))]);
        office.outgoing.push(outgoing("x", 8));
        cell.incoming =
            [Some(AFTER_MS), None].map(|after_ms| incoming("office", "x", 8, after_ms)).to_vec();
        cell.tls = authority.map(|it| it.sign("g@cell", "cell", 2100));
        office.tls = authority.map(|it| it.sign("g@office", "office", 2100));
        let router = with_router.then(|| {
            cell.listen = None;
            (cell.router, office.router) = (Some(address.clone()), Some(proxy.address.clone()));
            (cell.peers[0].calls_router, office.peers[0].calls_router) = (true, true);
            authority.map_or_else(|| router(&address), |it| guarded(&address, "g", it))
        });
        let (receiver, sender) = (Mirror::open(&cell), Mirror::open(&office));
        let (receiver, sender) = (receiver.expect("a host"), sender.expect("a host"));
        Pair { proxy, receiver, sender, shown: Shown::default(), _router: router }
    }

    /// The sender sends the time, and the receiver takes what is there.
    fn pass(&mut self) {
        let written = now_ns();
        turn(&mut self.sender, &[&written.to_le_bytes()]);
        for port in [STRICT, LAX] {
            let mut bytes = [0; 8];
            while self.receiver.receive(port, &mut bytes).is_some() {
                // By the clock by which the message was judged.
                let age_ns = said_ns() - u64::from_le_bytes(bytes);
                let oldest = &mut self.shown.oldest_ns[port];
                *oldest = age_ns.max(*oldest);
            }
        }
        thread::sleep(Duration::from_millis(1));
    }

    fn pass_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.pass();
        }
    }

    fn talks(&mut self) {
        let before = self.receiver.counted_at(STRICT).received;
        until("fresh messages", || {
            self.pass();
            self.receiver.counted_at(STRICT).received >= before + 5
        });
    }

    /// An outage. The sender has dialled, so messages go there and stamps come back.
    fn outage(&mut self, is_open: [bool; 2], time: Duration) {
        let before = self.receiver.counted_at(STRICT).late;
        self.proxy.set_open(is_open);
        self.pass_for(time);
        self.proxy.set_open([true; 2]);
        self.talks();
        let late = self.receiver.counted_at(STRICT).late - before;
        self.shown.outages += 1;
        self.shown.late += late;
        self.shown.late_in += u64::from(late > 0);
    }
}

/// Half of the outages are in both directions, the others in one.
fn ways(random: &mut fastrand::Rng) -> [bool; 2] {
    [[false, true], [true, false], [false; 2], [false; 2]][random.usize(..4)]
}

/// One outage in ten is longer than zenoh's lease, so that it ends the connection.
fn length(random: &mut fastrand::Rng) -> Duration {
    Duration::from_millis(if random.u8(..10) == 0 {
        random.u64(600..2000)
    } else {
        random.u64(50..400)
    })
}

#[test]
#[expect(clippy::print_stderr, reason = "how much was shown")]
fn nothing_old_is_obeyed_after_an_outage() {
    let outages = std::env::var("SINEW_OUTAGES").ok().and_then(|it| it.parse().ok());
    let outages: u64 = outages.unwrap_or(12);
    let run = |seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        // Every second pair over TLS; half of the pairs through a router.
        let authority = (seed % 2 == 1).then(Authority::new);
        let mut pair = Pair::open(authority.as_ref(), seed >= PAIRS / 2);
        pair.talks();
        (0..outages.div_ceil(PAIRS)).for_each(|_| {
            pair.outage(ways(&mut random), length(&mut random));
        });
        pair.shown.received = pair.receiver.counted_at(STRICT).received;
        pair.shown
    };
    let shown: Vec<_> = thread::scope(|scope| {
        let pairs: Vec<_> = (0..PAIRS).map(|seed| scope.spawn(move || run(seed))).collect();
        pairs.into_iter().map(|it| it.join().expect("it ends")).collect()
    });
    for shown in shown {
        eprintln!("{shown:?}");
        let [strict_ns, lax_ns] = shown.oldest_ns;
        assert!(strict_ns <= AFTER_MS * 1_000_000, "one of {strict_ns} ns was obeyed");
        assert!(shown.late > 0, "not shown: nothing came late");
        assert!(shown.late_in * 2 >= shown.outages, "not shown by most outages: {shown:?}");
        // Without the limit they would have been obeyed.
        assert!(lax_ns > AFTER_MS * 1_000_000, "not shown: the oldest was of {lax_ns} ns");
    }
}
