//! Which messages of a key come in their turn.

/// How far a sequence may jump at once.
const JUMP_MIN: u64 = 8192;
/// And how much further for the time since the last message: so many ns for each number. No
/// sender is faster.
const JUMP_NS: u64 = 20;

/// The order of the messages of one key, at the receiver: each is taken once, and none that was
/// overtaken.
///
/// A message comes in its turn if its sequence is higher than the last one's. But whoever can write
/// under the key could send a high sequence, and all true messages would be out of their turn. So a
/// message also comes in its turn if its stamp was sent after the last message was taken. Then it
/// was made after that one, and cannot have been taken before.
#[derive(Debug, Default)]
pub struct InOrder(Option<Last>);

#[derive(Debug)]
struct Last {
    life: u64,
    sequence: u64,
    /// When it was taken.
    at_ns: u64,
    /// Messages with stamps up to this one were made before the present count of sequences.
    floor_ns: Option<u64>,
}

/// Why a message does not come in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misordered {
    /// It, or a later one, was taken already.
    Old,
    /// Its sequence is further ahead than any sender can have come.
    Ahead,
}

impl InOrder {
    /// Takes a message of a life, with the stamp of this host in it (0: without one), at `now_ns`
    /// by the clock of stamps. Returns how many messages of the same life were skipped before it.
    ///
    /// # Errors
    /// It does not come in its turn; nothing has changed.
    pub fn take(
        &mut self,
        (life, sequence): (u64, u64),
        stamp_ns: u64,
        now_ns: u64,
    ) -> Result<u64, Misordered> {
        let Some(last) = &mut self.0 else {
            self.0 = Some(Last { life, sequence, at_ns: now_ns, floor_ns: None });
            return Ok(0);
        };
        let passed_ns = now_ns.saturating_sub(last.at_ns);
        let is_same = life == last.life;
        if is_same && sequence.saturating_sub(last.sequence) > JUMP_MIN + passed_ns / JUMP_NS {
            return Err(Misordered::Ahead);
        }
        let is_next = is_same && sequence > last.sequence;
        let skipped = if is_next { sequence - last.sequence - 1 } else { 0 };
        if !is_next || last.floor_ns.is_some_and(|floor_ns| stamp_ns <= floor_ns) {
            if stamp_ns <= last.at_ns {
                return Err(Misordered::Old);
            }
            last.floor_ns = Some(last.at_ns);
        }
        (last.life, last.sequence, last.at_ns) = (life, sequence, now_ns);
        Ok(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_rise_within_a_life() {
        let mut order = InOrder::default();
        assert_eq!(order.take((1, 5), 0, 100), Ok(0));
        assert_eq!(order.take((1, 5), 0, 100), Err(Misordered::Old), "a replay");
        assert_eq!(order.take((1, 8), 0, 100), Ok(2));
        assert_eq!(order.take((1, 7), 0, 100), Err(Misordered::Old), "overtaken");
        assert_eq!(order.take((2, 9), 0, 100), Err(Misordered::Old), "another life, unstamped");
    }

    /// One message of a stranger that knows the life.
    #[test]
    fn a_forged_sequence_locks_nobody_out() {
        let mut order = InOrder::default();
        assert_eq!(order.take((1, 5), 90, 100), Ok(0));
        assert_eq!(order.take((1, u64::MAX), 95, 110), Err(Misordered::Ahead));
        let forged = 5 + JUMP_MIN;
        assert_eq!(order.take((1, forged), 95, 110), Ok(JUMP_MIN - 1), "as if they were lost");
        assert_eq!(order.take((1, 6), 105, 115), Err(Misordered::Old));
        assert_eq!(order.take((1, 7), 111, 120), Ok(0), "its stamp is newer than the forged one");
        assert_eq!(order.take((1, 8), 111, 121), Ok(0));
        for (sequence, stamp_ns) in [(5, 90), (forged, 95)] {
            let again = order.take((1, sequence), stamp_ns, 130);
            assert_eq!(again, Err(Misordered::Old), "{sequence} was taken before");
        }
        assert_eq!(order.take((1, 9), 111, 131), Ok(0));
    }

    #[test]
    fn after_a_pause_a_sequence_may_be_far_ahead() {
        let mut order = InOrder::default();
        assert_eq!(order.take((1, 1), 0, 0), Ok(0));
        let hour_ns = 3_600_000_000_000;
        assert_eq!(order.take((1, 3_600_000), 0, hour_ns), Ok(3_599_998));
        assert_eq!(order.take((1, u64::MAX), 0, 2 * hour_ns), Err(Misordered::Ahead));
    }

    /// Whatever comes, in whatever order: no message is taken twice.
    #[test]
    fn no_message_is_taken_twice() {
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..200 {
            let (mut order, mut all, mut now_ns) = (InOrder::default(), vec![], 0);
            let (mut life, mut sequence) = (1, 0);
            for _ in 0..300 {
                now_ns += random.u64(..50);
                match random.u8(..10) {
                    0 => (life, sequence) = (random.u64(1..4), random.u64(..400)),
                    1 => sequence += random.u64(..JUMP_MIN),
                    _ => sequence += 1,
                }
                let made = (life, sequence, now_ns.saturating_sub(random.u64(..30)));
                let taken = order.take((made.0, made.1), made.2, now_ns).is_ok();
                all.extend(taken.then_some(made));
                if let Some(&(life, sequence, stamp_ns)) = random.choice(&all) {
                    let again = order.take((life, sequence), stamp_ns, now_ns);
                    assert!(again.is_err(), "{life} {sequence} {stamp_ns} at {now_ns}");
                }
            }
            assert!(all.len() > 50, "not shown: {} were taken", all.len());
        }
    }
}
