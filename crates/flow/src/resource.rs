//! What nodes of a domain share across workers: a resource that the graph names, such as a store,
//! and what the workers' parts of one node share.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sinew_core::fault::Fault;

/// A node that takes no packets and begins no flows: other nodes use it by its name.
pub trait Resource: Send {
    /// The files that it was made of: an edit of one is an edit of the node.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Opens it as the node `name`, once for its domain: before the domain is ready, and again for
    /// each edit of the graph, while flows of the old graph use the old resource. What both are to
    /// share comes from `resources`. It may block.
    ///
    /// # Errors
    /// Something that it needs is not available, such as a file that another process uses.
    fn open(self: Box<Self>, name: &str, resources: &Resources) -> Result<OpenResource, Fault>;
}

/// A resource that is open; its users know its type.
pub type OpenResource = Arc<dyn Any + Send + Sync>;

/// The resources of a graph by their names.
pub(crate) type ByName = Arc<BTreeMap<String, OpenResource>>;

/// Shared things by type and name, as long as anybody has them.
type Kept = BTreeMap<(TypeId, String), Weak<dyn Any + Send + Sync>>;

/// Things that exist as long as any node of the domain has them, also across edits of the graph.
#[derive(Clone, Default)]
pub struct Resources {
    kept: Arc<Mutex<Kept>>,
    is_trial: bool,
}

impl Resources {
    /// The resources of a graph that `sinew test` only tries out.
    pub(crate) fn of_trial() -> Resources {
        Resources { is_trial: true, ..Resources::default() }
    }

    /// Whether the graph is only tried out: then nothing outside the process may be changed
    /// permanently.
    pub fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// The thing of this type and name, which all callers share; the first caller makes it.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn try_share<T: Any + Send + Sync, E>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        // A poisoned lock is still good: a panic under it leaves nothing half done.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (TypeId::of::<T>(), name.to_owned());
        let known = kept.get(&place).and_then(Weak::upgrade);
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        kept.retain(|_, other| other.strong_count() > 0);
        let weak = Arc::downgrade(&made);
        kept.insert(place, weak);
        Ok(made)
    }

    /// The same if `make` cannot fail.
    pub fn share<T: Any + Send + Sync>(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let made: Result<_, std::convert::Infallible> = self.try_share(name, || Ok(make()));
        let Ok(made) = made;
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_name_is_shared_as_long_as_anybody_has_it() {
        let resources = Resources::default();
        let first = resources.share("a", || 1_u32);
        assert_eq!((*resources.share("a", || 2_u32), *resources.share("b", || 3_u32)), (1, 3));
        assert_eq!(*resources.share("a", || "of another type"), "of another type");
        drop(first);
        assert_eq!(*resources.clone().share("a", || 4_u32), 4);
        assert_eq!(resources.try_share("a", || Err::<u32, _>("no")).err(), Some("no"));
    }
}
