//! The entries of a store in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sinew_flow::Error;

use super::entries::{Entry, Table, Totals};

/// Entries by key, by last use, and by expiry. For one entry this takes less than `ENTRY_BYTES`
/// beside its key and value.
#[derive(Default)]
pub(super) struct Memory {
    entries: HashMap<Arc<str>, Held>,
    by_turn: BTreeMap<u64, Arc<str>>,
    by_time: BTreeSet<(u64, Arc<str>)>,
    /// The number of the next use.
    turn: u64,
    totals: Totals,
}

struct Held {
    entry: Entry,
    turn: u64,
}

impl Memory {
    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }
}

impl Table for Memory {
    fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        Ok(self.entries.get(key).map(|held| held.entry.clone()))
    }

    fn touch(&mut self, key: &str) {
        let turn = self.next_turn();
        let Some(held) = self.entries.get_mut(key) else { return };
        if let Some(key) = self.by_turn.remove(&held.turn) {
            self.by_turn.insert(turn, key);
        }
        held.turn = turn;
    }

    fn put(&mut self, key: &str, entry: Entry) -> Result<(), Error> {
        self.remove(key)?;
        let (turn, key) = (self.next_turn(), Arc::from(key));
        self.totals.add(Totals::of(&key, &entry.value));
        self.by_turn.insert(turn, Arc::clone(&key));
        if entry.until_ms < u64::MAX {
            self.by_time.insert((entry.until_ms, Arc::clone(&key)));
        }
        self.entries.insert(key, Held { entry, turn });
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<(), Error> {
        let Some((key, Held { entry, turn })) = self.entries.remove_entry(key) else {
            return Ok(());
        };
        self.totals.take(Totals::of(&key, &entry.value));
        self.by_turn.remove(&turn);
        self.by_time.remove(&(entry.until_ms, key));
        Ok(())
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn next_to_expire(&self) -> Result<Option<(u64, Box<str>)>, Error> {
        Ok(self.by_time.first().map(|(until_ms, key)| (*until_ms, (**key).into())))
    }

    fn oldest(&self) -> Result<Option<Box<str>>, Error> {
        Ok(self.by_turn.first_key_value().map(|(_, key)| (**key).into()))
    }
}
