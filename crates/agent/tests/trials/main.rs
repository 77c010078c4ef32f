//! Tests that need a running guest: no doorbell is lost, caches are kept in step, the code has the
//! barriers that a real second core needs, and its kinds work.

mod barriers;
mod bells;
mod in_step;
mod life;
mod player;
// The other side of the kind `ring`, compiled from the same file.
#[path = "../../../../guest/trials/src/ring.rs"]
mod ring;
