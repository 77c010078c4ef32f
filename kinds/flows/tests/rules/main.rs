//! The rules of replies and errors, tested by a table of small graphs, and by random graphs against
//! a simple interpreter. Also a test that nothing of a flow stays.

mod begin;
mod graph;
mod leaks;
mod random;
mod reference;
mod table;
