//! A packet that is held before a node until somebody lets it go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_control::tap::{TapLine, TapPacket};
use tokio::sync::oneshot;

use crate::Flow;

use super::{Tap, lock};

/// While a flow is held, its deadline is put off by this much; the time in which it was held does
/// not count.
const HOLD_MAX: Duration = Duration::from_hours(24);

/// What a tap holds.
#[derive(Default)]
pub(super) struct Hold {
    /// The flow that is held, or that goes on by a step.
    flow: Option<u64>,
    /// Lets its packet go on; `None` while the packet goes on.
    order: Option<oneshot::Sender<()>>,
    /// How many other wanted packets have passed meanwhile.
    passed: u64,
}

/// A packet that is held until this is dropped.
pub(super) struct HeldPacket {
    tap: Arc<Tap>,
    flow: u64,
    order: oneshot::Receiver<()>,
    is_released: bool,
}

impl Tap {
    /// Holds the packet of this flow that comes to a node, if it is to be held. `is_wanted`:
    /// whether the tap asks for it.
    pub(super) fn hold(
        self: &Arc<Tap>,
        flow: u64,
        is_wanted: bool,
        packet: impl FnOnce() -> TapPacket,
    ) -> Option<HeldPacket> {
        let mut hold = lock(&self.hold);
        match hold.flow {
            None if is_wanted => {}
            Some(stepping) if stepping == flow && hold.order.is_none() => {}
            Some(_) if is_wanted => {
                hold.passed += 1;
                return None;
            }
            _ => return None,
        }
        let (sender, order) = oneshot::channel();
        (hold.flow, hold.order) = (Some(flow), Some(sender));
        let passed = std::mem::take(&mut hold.passed);
        drop(hold);
        self.say(TapLine::Held { packet: packet(), passed });
        Some(HeldPacket { tap: Arc::clone(self), flow, order, is_released: false })
    }

    /// Lets the held packet go on, only to its next node if `is_step`. Whether a packet was held.
    pub(crate) fn go_on(&self, is_step: bool) -> bool {
        let mut hold = lock(&self.hold);
        let Some(order) = hold.order.take() else { return false };
        if !is_step {
            hold.flow = None;
        }
        // An error means that its flow has just been dropped.
        let _ = order.send(());
        true
    }

    /// Lets the held packet go on, because nobody looks any more.
    pub(super) fn release(&self) {
        *lock(&self.hold) = Hold::default();
    }

    /// The flow has ended. If it was held or stepping, another flow may be held now.
    pub(super) fn ended(&self, flow: u64) {
        let mut hold = lock(&self.hold);
        if hold.flow == Some(flow) {
            *hold = Hold { passed: hold.passed, ..Hold::default() };
            drop(hold);
            self.say(TapLine::Ended(flow));
        }
    }
}

impl HeldPacket {
    /// Waits until the packet may go on. The wait does not count against the flow's deadline.
    pub(super) async fn released(mut self, flow: &Flow) {
        let begun = Instant::now();
        let deadline = flow.deadline();
        flow.defer(deadline.and_then(|deadline| deadline.checked_add(HOLD_MAX)));
        // An error means that the tap is gone; then the packet goes on.
        let _ = (&mut self.order).await;
        flow.defer(deadline.and_then(|deadline| deadline.checked_add(begun.elapsed())));
        self.is_released = true;
    }
}

impl Drop for HeldPacket {
    fn drop(&mut self) {
        if !self.is_released {
            self.tap.ended(self.flow);
        }
    }
}
