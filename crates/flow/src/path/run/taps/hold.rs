//! A packet that is held before a node until somebody lets it go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_control::tap::{TapLine, TapPacket};
use tokio::sync::oneshot;

use crate::Flow;

use super::{Tap, lock};

/// A flow that is held has so much time more, and no time passes for it.
const HOLD_MAX: Duration = Duration::from_hours(24);

/// What a tap holds.
#[derive(Default)]
pub(super) struct Hold {
    /// The flow that is held, or that goes on by a step.
    flow: Option<u64>,
    /// Lets its packet go on; `None` while it does.
    order: Option<oneshot::Sender<()>>,
    /// So many others have passed meanwhile.
    passed: u64,
}

/// A packet that is held, until this is dropped.
pub(super) struct HeldPacket {
    tap: Arc<Tap>,
    flow: u64,
    order: oneshot::Receiver<()>,
    is_released: bool,
}

impl Tap {
    /// Whether the packet of this flow that comes to a node is to be held. `is_wanted`: whether the
    /// tap asks for it.
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

    /// Lets the packet go on that is held, to its next node at most if `is_step`; whether one is.
    pub(crate) fn go_on(&self, is_step: bool) -> bool {
        let mut hold = lock(&self.hold);
        let Some(order) = hold.order.take() else { return false };
        if !is_step {
            hold.flow = None;
        }
        // If its flow has just been dropped it needs no word.
        let _ = order.send(());
        true
    }

    /// Lets go of whatever is held, for nobody looks any more.
    pub(super) fn release(&self) {
        *lock(&self.hold) = Hold::default();
    }

    /// The flow has ended: if it was to be held again, another one may be.
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
    /// Waits until it may go on. That takes no time of the flow's deadline.
    pub(super) async fn released(mut self, flow: &Flow) {
        let begun = Instant::now();
        let deadline = flow.deadline();
        flow.defer(deadline.and_then(|deadline| deadline.checked_add(HOLD_MAX)));
        // A tap that is gone lets everything go.
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
