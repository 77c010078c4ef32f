//! `cache`: answers with a reply that was made before.

use std::sync::Arc;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};

use super::entries::{Act, Asked, Outcome, count};
use super::state::{EXPIRE_NS_MAX, expire_ms, read, write};
use super::store::{self, Store};
use crate::path::lines::Lines;
use crate::script::key::Key;
use crate::script::{refused_for_now, taken};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "cache",
    doc: "Answers with the reply that the store has for a key. If it has none, the packet passes \
          on, and the reply is kept. Packets with the same key that come meanwhile wait for that \
          one reply.",
    ports: &[input("in", "The packet."), error(), output("out", "The packet, if nothing is kept.")],
    parameters: &[
        Parameter::new("store", ParameterType::Text)
            .doc("The name of a node of the kind 'store'; 'full: evict' is right for a cache."),
        Parameter::new("key", ParameterType::Yaml)
            .doc("What the reply depends on, as an expression (CEL): a text or a whole number."),
        Parameter::new("expire", ParameterType::Duration { min_ns: 0, max_ns: EXPIRE_NS_MAX })
            .or("1m")
            .doc("How long a reply is kept; 0s: until the store needs the room."),
    ],
    ..FLOW
};

const OUT: usize = 2;

/// Most packets of one cache that may wait for replies that other packets make; one more fails with
/// 503.
const WAITING_MAX: usize = 10_000;

struct Cache {
    store_name: String,
    store: Option<Arc<Store>>,
    key: Key,
    expire_ms: Option<u64>,
    lines: Arc<Lines>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let store_name = store::named(parameters).map_err(|refusal| vec![refusal]);
    let store_name = taken(store_name, &mut refusals);
    let key = taken(Key::of(parameters.yaml("key")), &mut refusals);
    let (store_name, key) = store_name.zip(key).ok_or(refusals)?;
    let expire_ms = expire_ms(parameters);
    Ok(Box::new(Cache { store_name, store: None, key, expire_ms, lines: Arc::default() }))
}

impl FlowNode for Cache {
    fn attach(&mut self, site: &NodeContext) {
        self.store = site.resource(&self.store_name);
        self.lines = site.share(Lines::default);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move {
            let looked = async {
                let key = self.key.find(at.flow(), &packet)?;
                Ok::<_, Error>((self.look(at, &key).await?, key))
            };
            match looked.await {
                Ok((Some(reply), _)) => Step::Reply(Some(reply)),
                Ok((None, key)) => Step::wait(self.make(at, (*key).into(), packet)),
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Cache {
    fn store(&self) -> &Store {
        self.store.as_deref().expect("its name was looked up as the node was made")
    }

    async fn look(&self, at: At<'_>, key: &str) -> Result<Option<Value>, Error> {
        let (key, store) = (key.into(), self.store());
        let asked = Asked { key, act: Act::Get, expire_ms: None };
        let Outcome::Is(bytes) = store.carry_out(at.pool(), asked).await? else { return Ok(None) };
        count(&store.counts.hits);
        read(at.flow(), &bytes).map(Some)
    }

    /// Makes the reply, or waits for another packet that makes it.
    async fn make<'a>(&'a self, at: At<'a>, key: Box<str>, packet: Value) -> Step<'a> {
        let Some(mut place) = self.lines.enter(&key, 1, WAITING_MAX) else {
            let what =
                format!("{WAITING_MAX} packets already wait for the replies to other packets");
            return Step::Fail(refused_for_now(503, what, 1));
        };
        place.wait().await;
        // The packet before may have made the reply.
        match self.look(at, &key).await {
            Ok(None) => {}
            Ok(kept) => return Step::Reply(kept),
            Err(error) => return Step::Fail(error),
        }
        count(&self.store().counts.misses);
        let reply = at.call(OUT, packet).await;
        if let Ok(Some(value)) = &reply
            && self.keep(at, key, value).await.is_err()
        {
            count(&self.store().counts.unkept);
        }
        Step::answer(reply)
    }

    async fn keep(&self, at: At<'_>, key: Box<str>, reply: &Value) -> Result<(), Error> {
        let store = self.store();
        let value = write(at.flow(), &at.flow().resolve(reply)?, store.value_max())?;
        let asked = Asked { key, act: Act::Set(value), expire_ms: self.expire_ms };
        store.carry_out(at.pool(), asked).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
