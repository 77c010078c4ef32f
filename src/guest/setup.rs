//! The part of a graph that is needed to start its guest alone.

use std::path::PathBuf;

use sinew_agent::{BoardRow, GuestBells, GuestSession, GuestSetup, Keeper};
use sinew_carve_out::{CarveOut, NodeRow, RegionRow};
use sinew_core::sys::Region;
use sinew_spec::guest::{node_rows, rows};
use sinew_spec::suggest;

use crate::load::Loaded;

/// A guest of a graph, before it starts.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) domain: String,
    pub(super) image: PathBuf,
    pub(super) board: &'static BoardRow,
    pub(super) memory_bytes: usize,
    pub(super) nodes: Vec<NodeRow>,
    pub(super) rows: Vec<RegionRow>,
}

impl Bench {
    /// The guest of this name, or the first one.
    pub(super) fn new(loaded: &Loaded, domain: Option<&str>) -> Result<Bench, String> {
        let (plan, file) = (&loaded.plan, &loaded.spec.file);
        let guests = plan.domains.iter().enumerate();
        let guests = guests.filter_map(|(at, it)| Some((at, it.name.as_str(), it.guest()?)));
        let found = { guests.clone() }.find(|(_, name, _)| domain.is_none_or(|it| it == *name));
        let (at, name, guest) = found.ok_or_else(|| match domain {
            Some(wanted) => {
                let instead = suggest(wanted, guests.map(|(_, name, _)| name));
                format!("{file}: no guest '{wanted}'; {instead}")
            }
            None => format!("{file}: the graph has no guest domain; see docs/guest_agent.md"),
        })?;
        let board = BoardRow::of(guest.board);
        if let Some(missing) = (board.missing)() {
            return Err(missing);
        }
        Ok(Bench {
            domain: name.to_owned(),
            image: loaded.spec.base.join(&guest.image),
            board,
            memory_bytes: guest.memory_bytes as usize,
            nodes: node_rows(plan, at),
            rows: rows(plan, at).into_iter().map(|(_, row)| row).collect(),
        })
    }

    /// Makes the memory, with its links, and starts the guest.
    pub(super) fn start(&self) -> Result<GuestSession, String> {
        let cannot = |error| format!("cannot make the memory that both see: {error}");
        let memory = Region::shared("sinew-carve-out", self.memory_bytes).map_err(cannot)?;
        CarveOut::create(memory.clone()).map_err(|error| error.to_string())?;
        for row in &self.rows {
            let made = row.create(memory.clone());
            made.map_err(|error| format!("link '{}': {error}", row.name))?;
        }
        let keeper = Keeper::start(GuestSetup {
            image: &self.image,
            board: self.board,
            carve_out: memory,
            nodes: &self.nodes,
            rows: &self.rows,
            bells: GuestBells::of(&self.rows).map_err(cannot)?,
        });
        let keeper = keeper.map_err(|error| format!("cannot start the guest: {error}"))?;
        Ok(GuestSession::new(keeper))
    }
}
