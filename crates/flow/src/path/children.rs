//! Flows that go on by themselves: the children that [`At::fork`](crate::At::fork) makes.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::Error;

/// Most children of a worker that are under way at once: about ten megabytes of flows. A fork past
/// that is an error, because a graph that forks faster than its children end would grow without
/// limit.
const CHILDREN_MAX: usize = 10_000;

/// The children of a worker that are under way.
#[derive(Default)]
pub(crate) struct Children {
    open: Cell<usize>,
    ended: Notify,
}

impl Children {
    /// A child begins. It is under way until the result is dropped.
    ///
    /// # Errors
    /// Too many children are under way (503).
    pub(crate) fn begin(self: &Rc<Children>) -> Result<Child, Error> {
        if self.open.get() == CHILDREN_MAX {
            return Err(too_many());
        }
        self.open.set(self.open.get() + 1);
        Ok(Child(Rc::clone(self)))
    }

    /// How many children are under way.
    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    /// Waits until no child is under way.
    pub(crate) async fn all_ended(&self) {
        while self.open.get() > 0 {
            self.ended.notified().await;
        }
    }
}

#[cold]
fn too_many() -> Error {
    Error::new(format_args!(
        "{CHILDREN_MAX} forked flows of this worker are under way; fork less, or give them a \
         shorter deadline"
    ))
    .with_status(503)
}

/// A child that is under way.
pub(crate) struct Child(Rc<Children>);

impl Drop for Child {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_too_many_is_refused_until_another_has_ended() {
        let children = Rc::new(Children::default());
        let mut open: Vec<_> = (0..CHILDREN_MAX).map(|_| children.begin().expect("room")).collect();
        let error = children.begin().err().expect("no room");
        assert_eq!(error.status(), 503);
        open.pop();
        assert!(children.begin().is_ok());
        drop(open);
        assert_eq!(children.open(), 0);
    }
}
