//! Where a checkpoint is kept: in a file of its own, or in an entry of a store.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytestring::ByteString;
use sinew_core::{Parameters, Refusal};
use sinew_flow::{At, Error, NodeContext, Value};
use sinew_spec::Data;

use super::checkpoint::{Saved, unreadable};
use crate::data::store::{Store, named_at};
use crate::script::key::Key;

/// Where checkpoints are kept, as the spec says it.
pub(super) enum Keeper {
    File(PathBuf),
    Entry { store: String, key: Key, open: Option<Arc<Store>> },
}

/// The place of one checkpoint.
#[derive(Clone)]
pub(super) enum KeptAt {
    File(PathBuf),
    Entry(Arc<Store>, ByteString),
}

impl Keeper {
    /// The keeper that the parameter `checkpoint` names; `None` if it is empty.
    pub(super) fn of(parameters: &Parameters<'_>) -> Result<Option<Keeper>, Vec<Refusal>> {
        let item = parameters.yaml("checkpoint");
        if let Data::Map(entries) = &item.data
            && entries.len() == 2
            && let (Some(store), Some(key)) = (item.get("store"), item.get("key"))
            && let Some(name) = store.text()
        {
            let store = named_at(parameters, name, store.span).map_err(|refusal| vec![refusal])?;
            return Ok(Some(Keeper::Entry { store, key: Key::of(key)?, open: None }));
        }
        match item.text() {
            Some("") => Ok(None),
            Some(path) => Ok(Some(Keeper::File(parameters.base.join(path)))),
            None => {
                let text = "a checkpoint is a file, or an entry of a store";
                let help = "write orders.checkpoint, or {store: NAME, key: packet.file}";
                Err(vec![Refusal::new(item.span, text, help)])
            }
        }
    }

    pub(super) fn attach(&mut self, site: &NodeContext) {
        if let Keeper::Entry { store, open, .. } = self {
            *open = site.resource(store);
        }
    }

    /// The place of this packet's checkpoint.
    pub(super) fn find(&self, at: At<'_>, packet: &Value) -> Result<KeptAt, Error> {
        match self {
            Keeper::File(path) => Ok(KeptAt::File(path.clone())),
            Keeper::Entry { key, open, .. } => {
                let store = open.as_ref().expect("its name was looked up as the node was made");
                Ok(KeptAt::Entry(Arc::clone(store), key.find(at.flow(), packet)?))
            }
        }
    }
}

impl KeptAt {
    /// The checkpoint that was written there; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or is not a checkpoint.
    pub(super) async fn read(&self, at: At<'_>) -> Result<Option<Saved>, Error> {
        match self {
            KeptAt::File(path) => {
                let path = path.clone();
                at.pool().run_slow(move || Saved::read(&path)).await?
            }
            KeptAt::Entry(store, key) => {
                let Some(value) = store.get(at, key).await? else { return Ok(None) };
                let text = value.as_text().ok_or_else(|| unreadable(self, &"it is not text"))?;
                Saved::parse(text.as_bytes(), self).map(Some)
            }
        }
    }

    /// Writes it there, replacing an earlier one.
    ///
    /// # Errors
    /// For example the disk is full, the folder does not exist, or the store has no room.
    pub(super) async fn write(&self, at: At<'_>, saved: Saved) -> Result<(), Error> {
        match self {
            KeptAt::File(path) => {
                let path = path.clone();
                at.pool().run_slow(move || saved.write(&path)).await?
            }
            KeptAt::Entry(store, key) => {
                let text = serde_json::to_string(&saved).map_err(Error::new)?;
                store.set(at, key, &Value::text(text)).await
            }
        }
    }
}

impl fmt::Display for KeptAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeptAt::File(path) => write!(f, "{}", path.display()),
            KeptAt::Entry(_, key) => write!(f, "{key} (in its store)"),
        }
    }
}
