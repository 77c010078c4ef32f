//! What only a guest that runs shows: that no doorbell is lost, that caches are kept in step, that
//! its code has the barriers that a real second core needs, and what its kinds do.

mod barriers;
mod bells;
mod in_step;
mod life;
mod player;
// The other side of the kind `ring`: the same file.
#[path = "../../../../guest/trials/src/ring.rs"]
mod ring;
