//! What only a guest that runs shows: that no doorbell is lost, that caches are kept in step, and
//! that its code has the barriers that a real second core needs.

mod barriers;
mod bells;
mod in_step;
mod life;
// The other side of the kind `ring`: the same file.
#[path = "../../../../guest/trials/src/ring.rs"]
mod ring;
