//! The rules of replies and errors: as a table of small graphs, and as random graphs against a
//! simple interpreter; and that nothing stays of flows.

mod begin;
mod graph;
mod leaks;
mod random;
mod reference;
mod table;
