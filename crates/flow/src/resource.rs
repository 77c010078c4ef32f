//! What nodes of a domain share, in whichever worker they are: a resource that stands in
//! the graph, such as a store, and what the workers' parts of one node share.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sinew_core::fault::Fault;

/// A node that takes no packets and begins no flows: others use it by its name.
pub trait Resource: Send {
    /// The files that it was made of: an edit of one is an edit of the node.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Opens it as the node `name`, once for its domain: before the domain is ready, and again for
    /// each edit of the graph, while flows of the graph before use the old one. What both are to
    /// share comes from `resources`. It may block.
    ///
    /// # Errors
    /// What it needs cannot be had: a file that another process uses.
    fn open(self: Box<Self>, name: &str, resources: &Resources) -> Result<OpenResource, Fault>;
}

/// A resource that is open; who uses it knows its type.
pub type OpenResource = Arc<dyn Any + Send + Sync>;

/// The resources of a graph by their names.
pub(crate) type ByName = Arc<BTreeMap<String, OpenResource>>;

/// What is shared, by its type and name, as long as anybody has it.
type Kept = BTreeMap<(TypeId, String), Weak<dyn Any + Send + Sync>>;

/// What lives as long as any node of the domain has it: over edits of the graph, too.
#[derive(Clone, Default)]
pub struct Resources {
    kept: Arc<Mutex<Kept>>,
    is_trial: bool,
}

impl Resources {
    /// Those of a graph that is only tried out, by `sinew test`.
    pub(crate) fn of_trial() -> Resources {
        Resources { is_trial: true, ..Resources::default() }
    }

    /// Whether the graph is only tried out: nothing outside the process is to be changed for good.
    pub fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// What all who ask for this type by this name have; made by the first.
    ///
    /// # Errors
    /// What `make` says.
    pub fn try_share<T: Any + Send + Sync, E>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        // Nothing is left half done under it.
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

    /// The same for what can always be made.
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
