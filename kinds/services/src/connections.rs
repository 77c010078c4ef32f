//! The connections of a server that is open to strangers: bounded in number, and who is new always
//! gets in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

/// The connections that are open, the oldest first.
pub(crate) struct Connections {
    max: usize,
    open: VecDeque<Connection>,
}

struct Connection {
    work: AbortHandle,
    asked: Asked,
}

/// Whether a whole request has come over a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(Arc<AtomicBool>);

impl Asked {
    /// One has come.
    pub(crate) fn set(&self) {
        // Relaxed, here and below: a hint, and nothing that goes with it.
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connections {
    /// So many at a time.
    pub(crate) fn at_most(max: usize) -> Connections {
        Connections { max, open: VecDeque::with_capacity(max) }
    }

    /// Begins to serve a further one. If there is no room, it takes the place of the oldest over
    /// which no whole request has come, else of the oldest.
    pub(crate) fn begin<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        serve: impl FnOnce(Asked) -> F,
    ) {
        self.open.retain(|connection| !connection.work.is_finished());
        if self.open.len() == self.max {
            let place = self.open.iter().position(|it| !it.asked.is_set()).unwrap_or(0);
            self.open.remove(place).inspect(|connection| connection.work.abort());
        }
        let asked = Asked::default();
        let work = tokio::spawn(serve(asked.clone())).abort_handle();
        self.open.push_back(Connection { work, asked });
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::runtime::Builder;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// Says that its connection is closed.
    struct Closes(usize, tokio::sync::mpsc::UnboundedSender<usize>);

    impl Drop for Closes {
        fn drop(&mut self) {
            let _ = self.1.send(self.0);
        }
    }

    #[test]
    fn the_oldest_that_has_asked_nothing_makes_room_for_the_newest() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (closed, mut closes) = unbounded_channel();
            let mut connections = Connections::at_most(3);
            let mut begin = |number, has_asked: bool| {
                let closed = Closes(number, closed.clone());
                connections.begin(|asked| async move {
                    let _closed = closed;
                    if has_asked {
                        asked.set();
                    }
                    pending().await
                });
            };
            for (number, has_asked, closes_next) in [
                (0, true, None),
                (1, false, None),
                (2, false, None),
                (3, true, Some(1)),
                (4, true, Some(2)),
                (5, true, Some(0)),
                (6, false, Some(3)),
            ] {
                begin(number, has_asked);
                // Every connection gets a turn.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                assert_eq!(closes.try_recv().ok(), closes_next, "after {number}");
            }
        });
    }
}
