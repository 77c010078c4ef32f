//! `subscribe`: answers with the messages of a topic, as a stream.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{LocalBoxStream, StreamExt, try_unfold};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, WORK_DEFAULT, error,
    input, output,
};

use super::pour::Pour;
use super::topic::{NamedTopic, Subscription, TopicMessage};
use crate::framing::write::Outgoing;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "subscribe",
    doc: "Answers with a stream of the messages that come to a topic from now on. It ends when its \
          reader goes away, the domain stops, or the graph is edited.",
    ports: &[
        input("in", "Any packet; nothing of it is used."),
        output("out", "The stream."),
        error(),
    ],
    parameters: &[
        Parameter::new("topic", ParameterType::Text).doc("The name of a node of the kind 'topic'."),
        Parameter::new("as", ParameterType::Choice(&["lines", "ndjson", "csv", "sse", "bytes"]))
            .or("ndjson")
            .doc(
                "How messages follow each other; 'sse': as events, for a listener to answer with.",
            ),
        Parameter::new(
            "heartbeat",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 3_600_000_000_000 },
        )
        .or("15s")
        .doc("With 'as: sse': after this long without an event a comment is sent."),
    ],
    ..FLOW
};

const OUT: usize = 1;

struct Subscribe {
    topic: NamedTopic,
    pour: Pour,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let topic = NamedTopic::of(parameters, "topic").map_err(|refusal| vec![refusal])?;
    let pour = Pour {
        outgoing: Outgoing::of(parameters, "as"),
        heartbeat: parameters.duration("heartbeat"),
        is_endless: true,
    };
    Ok(Box::new(Subscribe { topic, pour }))
}

impl FlowNode for Subscribe {
    fn attach(&mut self, site: &NodeContext) {
        self.topic.attach(site);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, _packet: Value) -> Step<'a> {
        let begun = self.topic.get().subscribe().and_then(|subscription| {
            let outgoing = self.pour.outgoing;
            self.pour.begin(at, WORK_DEFAULT, move |at| messages(at, subscription, outgoing))
        });
        Step::pass(OUT, begun)
    }
}

/// The messages as they are written.
fn messages(
    at: At<'_>,
    subscription: Subscription,
    outgoing: Outgoing,
) -> LocalBoxStream<'_, Result<Bytes, Error>> {
    let messages = try_unfold(subscription, move |mut subscription| async move {
        let Some(message) = subscription.next().await else { return Ok(None) };
        if let Some((lost, all)) = subscription.news() {
            at.say(format_args!(
                "a subscriber is slower than the topic and has lost {lost} messages; all together \
                 have lost {all}"
            ));
        }
        at.flow().allow(WORK_DEFAULT);
        Ok(Some((write(at, &message, outgoing).await?, subscription)))
    });
    messages.boxed_local()
}

async fn write(
    at: At<'_>,
    message: &Arc<TopicMessage>,
    outgoing: Outgoing,
) -> Result<Bytes, Error> {
    if outgoing == Outgoing::Ndjson {
        // The JSON was written when the message was published.
        return Ok([&message.json, &b"\n"[..]].concat().into());
    }
    outgoing.write(at.flow(), &message.value).await.map(Bytes::from)
}
