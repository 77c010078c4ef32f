//! The addresses of a name, asked of the system on the domain's threads for what blocks.

use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::vec;

use hyper_util::client::legacy::connect::dns::Name;
use sinew_flow::{Error, Pool};
use tower_service::Service;

/// Who looks up names. Made before its node has a worker, and so without threads at first.
#[derive(Clone, Default)]
pub(super) struct Names(Arc<OnceLock<Pool>>);

/// Addresses on their way.
type Found = Pin<Box<dyn Future<Output = Result<vec::IntoIter<SocketAddr>, Error>> + Send>>;

impl Names {
    /// From now on it asks on these threads.
    pub(super) fn attach(&self, pool: Pool) {
        // A node is attached once; the threads of all workers are the same.
        let _ = self.0.set(pool);
    }
}

impl Service<Name> for Names {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Error;
    type Future = Found;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Found {
        let pool = self.0.get().cloned().expect("a node is attached before its first packet");
        // The port is not known here; whoever asks puts it in.
        let ask = move || (name.as_str(), 0).to_socket_addrs();
        Box::pin(async move { pool.run_slow(ask).await?.map_err(Error::new) })
    }
}
