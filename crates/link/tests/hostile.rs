//! A peer that overwrites every header, index and sequence word at any time, with random and
//! extreme values: this side never panics, never hangs, never leaves the region (its pages are
//! guarded on both sides). Bounded by counts.
#![cfg(unix)]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use fastrand::Rng;
use sinew_link::observe::look;
use sinew_link::{Layout, Os, Shape, Wait, broadcast, counter, create, latest, queue};

mod support;
use support::{Guarded, Linux};

/// Looks that this side takes at each link during the attack.
const LOOKS: u32 = 200_000;
/// Bursts of overwritten words that must fall within them.
const BURSTS: u32 = 10_000;
const EXTREMES: [u32; 8] =
    [0, 1, 2, u32::MAX, u32::MAX - 1, i32::MAX as u32, i32::MAX as u32 + 1, 64];

/// Ends the attack also when this side panics, so that the proof fails instead of hanging.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `look` while another thread overwrites words of the region.
fn under_attack(memory: &Guarded, mut look: impl FnMut(u32)) {
    let (over, bursts) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Rng::with_seed(1);
            while !over.load(Ordering::Relaxed) {
                for _ in 0..64 {
                    let at = random.usize(..memory.words());
                    let value = match random.u8(..4) {
                        0 => random.u32(..),
                        1 => EXTREMES[random.usize(..EXTREMES.len())],
                        // Near the present value: positions that almost make sense.
                        _ => memory.word(at).load(Ordering::Relaxed).wrapping_add(random.u32(..5)),
                    };
                    memory.word(at).store(value, Ordering::Relaxed);
                }
                bursts.fetch_add(1, Ordering::Relaxed);
                thread::yield_now();
            }
        });
        let _end = End(&over);
        let mut i = 0_u32;
        while i < LOOKS || bursts.load(Ordering::Relaxed) < BURSTS {
            look(i);
            i = i.wrapping_add(1);
            if i.is_multiple_of(64) {
                thread::yield_now();
            }
        }
    });
}

fn soon() -> Option<u64> {
    Some(Linux.now_ns() + 20_000)
}

#[test]
fn a_queue_survives() {
    for layout in [Layout::Index, Layout::Sequence] {
        for (size, capacity) in [(1, 1), (21, 4), (300, 2)] {
            let shape = Shape { layout, ..Shape::queue(size, 0, capacity) }.parking();
            let memory = Guarded::made(&shape);
            let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("made");
            let mut reader = queue::Reader::attach(memory.clone(), &shape).expect("made");
            let mut message = vec![0; size as usize];
            under_attack(&memory, |i| {
                // Any answer will do; they must return.
                let _ = writer.try_send(&message);
                let _ = reader.try_receive(&mut message);
                let ahead = i % (capacity + 1);
                if let Ok(Some(found)) = reader.ahead(ahead) {
                    found.read_at(0, &mut message);
                }
                let place = writer.place_ahead(ahead);
                assert!(place.map_or(true, |place| place.end <= shape.region_len()));
                let seen = look(memory.clone(), &shape);
                assert!(seen.map_or(true, |seen| seen.fill <= capacity));
                let _ = writer.is_peer_closed();
                if i % 256 == 0 {
                    writer.wake(&Linux);
                    reader.wake(&Linux);
                    reader.wait(Wait::Park, soon(), &Linux);
                    writer.wait_room(Wait::SpinThenPark, soon(), &Linux);
                    drop(queue::Reader::attach(memory.clone(), &shape));
                    drop(queue::Writer::attach(memory.clone(), &shape));
                }
            });
        }
    }
}

#[test]
fn latest_survives() {
    for size in [1, 21, 300] {
        let shape = Shape::latest(size, 0).parking();
        let memory = Guarded::made(&shape);
        let mut writer = latest::Writer::attach(memory.clone(), &shape).expect("made");
        let mut reader = latest::Reader::attach(memory.clone(), &shape).expect("made");
        let mut message = vec![0; size as usize];
        under_attack(&memory, |i| {
            writer.send(&message);
            let _ = (reader.has_new(), reader.read(&mut message));
            if i % 256 == 0 {
                writer.wake(&Linux);
                reader.wait(Wait::Park, soon(), &Linux);
                drop(latest::Reader::attach(memory.clone(), &shape));
                drop(latest::Writer::attach(memory.clone(), &shape));
            }
        });
    }
}

#[test]
fn a_broadcast_survives() {
    for (size, capacity) in [(1, 1), (21, 4), (300, 2)] {
        let shape = Shape::broadcast(size, 0, capacity).parking();
        let memory = Guarded::made(&shape);
        let mut writer = broadcast::Writer::attach(memory.clone(), &shape).expect("made");
        let attach = || broadcast::Reader::attach(memory.clone(), &shape);
        let mut reader = attach().expect("made");
        let mut message = vec![0; size as usize];
        under_attack(&memory, |i| {
            writer.send(&message);
            let _ = reader.receive(&mut message);
            if i % 256 == 0 {
                writer.wake(&Linux);
                reader.wait(Wait::Park, soon(), &Linux);
                drop(attach());
                drop(broadcast::Writer::attach(memory.clone(), &shape));
            }
        });
    }
}

#[test]
fn counters_survive() {
    let shape = counter::shape(4, 0);
    let memory = Guarded::made(&shape);
    let mut writer = counter::Writer::attach(memory.clone(), &shape).expect("made");
    let reader = counter::Reader::attach(memory.clone(), &shape).expect("made");
    under_attack(&memory, |i| {
        writer.add(i % 4, u64::from(i));
        let _ = reader.read(i % 6);
    });
}

#[test]
fn a_region_of_noise_is_refused() {
    let shape = Shape::queue(21, 0, 4);
    let memory = Guarded::of(&shape);
    let mut random = Rng::with_seed(1);
    for _ in 0..1000 {
        (0..memory.words()).for_each(|i| memory.word(i).store(random.u32(..), Ordering::Relaxed));
        assert!(queue::Reader::attach(memory.clone(), &shape).is_err());
        assert!(queue::Writer::attach(memory.clone(), &shape).is_err());
    }
    create(&memory, &shape).expect("made anew");
    assert!(queue::Reader::attach(memory, &shape).is_ok());
}
