//! `publish`: hands a message to all subscribers of a topic.

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};

use super::topic::{NamedTopic, TopicMessage};
use crate::json;
use crate::script::taken;
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "publish",
    doc: "Sends a message to all present subscribers of a topic, and passes the packet on. If the \
          topic says 'when_full: wait', it waits until the slowest subscriber has room.",
    ports: &[input("in", "The packet."), output("out", "The packet."), error()],
    parameters: &[
        Parameter::new("topic", ParameterType::Text).doc("The name of a node of the kind 'topic'."),
        Parameter::new("value", ParameterType::Yaml)
            .or("'{{ packet }}'")
            .doc("The message, a template."),
    ],
    ..FLOW
};

const OUT: usize = 1;

struct Publish {
    topic: NamedTopic,
    value: Template,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let topic = NamedTopic::of(parameters, "topic").map_err(|refusal| vec![refusal]);
    let topic = taken(topic, &mut refusals);
    let value = taken(Template::compile(parameters.yaml("value")), &mut refusals);
    let (topic, value) = topic.zip(value).ok_or(refusals)?;
    Ok(Box::new(Publish { topic, value }))
}

impl FlowNode for Publish {
    fn attach(&mut self, site: &NodeContext) {
        self.topic.attach(site);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            let published = self.publish(at, &packet).await;
            Step::pass(OUT, published.map(|()| packet))
        })
    }
}

impl Publish {
    async fn publish(&self, at: At<'_>, packet: &Value) -> Result<(), Error> {
        let value = self.value.render(at.flow(), packet).await?;
        if let Value::Stream(_) = value {
            return Err(Error::new("a message is a value, this is a stream").with_status(422));
        }
        let value = at.flow().resolve(&value)?;
        let json = json::write(at.flow(), &value).await?.into();
        self.topic.get().publish(TopicMessage { value, json }).await
    }
}
