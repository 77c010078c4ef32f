//! `stream`: sends on the elements of a stream, one packet each, while the stream comes.

mod elements;
#[cfg(test)]
mod tests;

use std::future::ready;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::poll;
use futures_util::stream::{self, LocalBoxStream, StreamExt, try_unfold};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, BytesToCome, Error, FLOW, Flow, FlowEntry, FlowNode, Make, Step, Value, error, input,
    output,
};
use tokio::time::timeout;

use self::elements::{ArrivedElement, ElementReader, Windows};
use super::pour::Pour;
use crate::framing::write::Outgoing;
use crate::framing::{self, ElementFormat};
use crate::path::for_each::ELEMENT_WORK;
use crate::script::expression::Expression;
use crate::work::WORK_MAX;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "stream",
    doc: "Sends each element of a stream to 'out' while it comes. The replies, in the order of the \
          elements and without those that are nothing, are a new stream: it goes to 'done'; \
          without a link it is the reply. An element is read when the results of the one before \
          have been read.",
    ports: &[
        input("in", "The packet, in which the stream is."),
        error(),
        output("out", "An element, or a list of them."),
        output("done", "The new stream; with 'as: counts' {read, done, rejected}."),
        output(
            "rejected",
            "{line, number, error, status} of an element that has failed: its text, the line where \
             it begins, why. Without a link, such an element ends the whole stream.",
        ),
    ],
    parameters: PARAMETERS,
    ..FLOW
};

const SECOND_NS: u64 = 1_000_000_000;
/// Longest line. A line is decoded in one piece, which takes about twenty milliseconds at most.
const LINE_SIZE_MAX: u64 = 1 << 20;

static PARAMETERS: &[Parameter] = &[
    Parameter::new("of", ParameterType::Text).or(PACKET).doc(
        "The stream, as an expression (CEL) over 'packet', such as packet.body; a text or bytes \
         are one too, and nothing is an empty one.",
    ),
    Parameter::new(
        "framing",
        ParameterType::Choice(&["lines", "ndjson", "csv", "sse", "bytes"]),
    )
    .or("lines")
    .doc(
        "What an element is: a line, a JSON text in a line, a row, an event, or what comes at a \
         time.",
    ),
    Parameter::new(
        "as",
        ParameterType::Choice(&["lines", "ndjson", "csv", "sse", "bytes", "counts"]),
    )
    .or("ndjson")
    .doc(
        "Form of the new stream: lines, JSON texts in lines, rows, events, or bytes as they are. \
         'counts' makes no stream: it reads all elements and drops the replies.",
    ),
    Parameter::new("header", ParameterType::Bool).or("true").doc(
        "Whether CSV begins with the names of its columns: a row is a mapping then, else a list.",
    ),
    Parameter::new("separator", ParameterType::Text)
        .or("','")
        .doc("What stands between two fields of CSV that comes: one character of ASCII."),
    Parameter::new("concurrency", ParameterType::Integer { min: 1, max: 1024 })
        .or("1")
        .doc("Most elements that are under way at once."),
    Parameter::new(
        "line_size_max",
        ParameterType::Size { min_bytes: 16, max_bytes: LINE_SIZE_MAX },
    )
    .or("64KiB")
    .doc("Longest line, row or event. A longer one ends the whole."),
    Parameter::new("window_count", ParameterType::Integer { min: 0, max: 100_000 }).or("0").doc(
        "Number of elements that go to 'out' together, as a list; 0: each by itself, or 1000 with \
         'window_time'.",
    ),
    Parameter::new(
        "window_time",
        ParameterType::Duration { min_ns: 0, max_ns: 86_400 * SECOND_NS },
    )
    .or("0s")
    .doc("A list goes to 'out' this long after its first element at the latest; 0s: when full."),
    Parameter::new(
        "deadline",
        ParameterType::Duration { min_ns: 1_000_000, max_ns: 86_400 * SECOND_NS },
    )
    .or("30s")
    .doc("Longest that an element may take."),
    WORK_MAX,
    Parameter::new(
        "heartbeat",
        ParameterType::Duration { min_ns: 1_000_000, max_ns: 3600 * SECOND_NS },
    )
    .or("15s")
    .doc("With 'as: sse': after this long without an event a comment is sent."),
];

/// The expression that needs no evaluation.
const PACKET: &str = "packet";

const OUT: usize = 2;
const DONE: usize = 3;
const REJECTED: usize = 4;

struct Streaming {
    /// `None` for the packet itself.
    of: Option<Expression>,
    settings: Settings,
    work_max: u64,
    /// `None` if the replies are dropped.
    pour: Option<Pour>,
}

/// Settings for all elements.
#[derive(Clone, Copy)]
struct Settings {
    format: ElementFormat,
    size_max: usize,
    windows: Option<Windows>,
    concurrency: usize,
    patience: Duration,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let of = match parameters.text("of") {
        PACKET => None,
        text => Some(Expression::compile(text, parameters.span("of"))?),
    };
    let separator = framing::separator(parameters).map_err(|refusal| vec![refusal])?;
    let format = match parameters.text("framing") {
        "ndjson" => ElementFormat::Ndjson,
        "csv" => ElementFormat::Csv { has_header: parameters.bool("header"), separator },
        "sse" => ElementFormat::Sse,
        "bytes" => ElementFormat::Bytes,
        _ => ElementFormat::Lines,
    };
    let pour = Pour {
        outgoing: Outgoing::of(parameters, "as"),
        heartbeat: parameters.duration("heartbeat"),
        is_endless: false,
    };
    let settings = Settings {
        format,
        size_max: parameters.size("line_size_max") as usize,
        windows: Windows::of(
            parameters.integer("window_count") as usize,
            parameters.duration("window_time"),
        ),
        concurrency: parameters.integer("concurrency") as usize,
        patience: parameters.duration("deadline"),
    };
    Ok(Box::new(Streaming {
        of,
        settings,
        work_max: parameters.integer(WORK_MAX.name).unsigned_abs(),
        pour: (parameters.text("as") != "counts").then_some(pour),
    }))
}

impl FlowNode for Streaming {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let source = match self.source(at.flow(), packet) {
            Ok(source) => source,
            Err(error) => return Step::Fail(error),
        };
        let (settings, work) = (self.settings, self.work_max);
        match self.pour {
            Some(pour) => {
                let outgoing = pour.outgoing;
                let made =
                    pour.begin(at, work, move |at| settings.replies(at, source, (outgoing, work)));
                Step::pass(DONE, made)
            }
            None => Step::wait(async move { Step::pass(DONE, settings.count(at, source).await) }),
        }
    }
}

impl Streaming {
    fn source(&self, flow: &Flow, packet: Value) -> Result<BytesToCome, Error> {
        let value = match &self.of {
            Some(expression) => expression.evaluate((flow, &packet))?,
            None => packet,
        };
        let bytes = match value {
            Value::Stream(stream) => {
                let gone = "the stream was read before; it passes once";
                return stream.take().ok_or_else(|| Error::new(gone));
            }
            Value::Text(text) => text.into_bytes(),
            Value::Bytes(bytes) => bytes,
            Value::Null => Bytes::new(),
            other => {
                return Err(Error::new(format_args!(
                    "expected a stream, a text or bytes, got {}; say where it is, such as of: \
                     packet.body, and let what makes it say 'stream: true'",
                    other.sort()
                )));
            }
        };
        Ok(Box::pin(stream::iter((!bytes.is_empty()).then_some(Ok(bytes)))))
    }
}

/// What became of an element.
enum Fate<T> {
    Done(T),
    Rejected,
}

impl Settings {
    /// The replies as they are written, one after the other; each element may do `work` units of
    /// work.
    fn replies(
        self,
        at: At<'_>,
        source: BytesToCome,
        (outgoing, work): (Outgoing, u64),
    ) -> LocalBoxStream<'_, Result<Bytes, Error>> {
        let written = async move |reply: Option<Value>| match reply {
            None | Some(Value::Null) => Ok(None),
            Some(value) => outgoing.write(at.flow(), &value).await.map(|it| Some(it.into())),
        };
        let replied = async move |arrived: ArrivedElement| {
            at.flow().allow(work);
            match self.element(at, arrived, written).await? {
                Fate::Done(bytes) => Ok::<Option<Bytes>, Error>(bytes),
                Fate::Rejected => Ok(None),
            }
        };
        let reader = ElementReader::new(self, source);
        if self.concurrency == 1 {
            // With one element at a time, no list of elements under way and no future for each is
            // needed.
            return try_unfold(reader, move |mut reader| async move {
                while let Some(arrived) = reader.next().await? {
                    if let Some(bytes) = replied(arrived).await? {
                        return Ok(Some((bytes, reader)));
                    }
                }
                Ok(None)
            })
            .boxed_local();
        }
        let replies = reader.all().map(move |arrived| async move { replied(arrived?).await });
        replies
            .buffered(self.concurrency)
            .filter_map(|reply| ready(reply.transpose()))
            .boxed_local()
    }

    /// Reads all elements within the flow, and counts them.
    async fn count(self, at: At<'_>, source: BytesToCome) -> Result<Value, Error> {
        let (mut done, mut rejected) = (0, 0);
        let mut add = |fate| match fate {
            Fate::Done(()) => done += 1,
            Fate::Rejected => rejected += 1,
        };
        let pass = async |arrived| self.element(at, arrived, async |_| Ok(())).await;
        let mut reader = ElementReader::new(self, source);
        if self.concurrency == 1 {
            while let Some(arrived) = reader.next().await? {
                add(pass(arrived).await?);
            }
        } else {
            let fates = reader.all().map(async |arrived| pass(arrived?).await);
            let mut fates = pin!(fates.buffered(self.concurrency));
            while let Some(fate) = fates.next().await {
                add(fate?);
            }
        }
        let counts = [("read", done + rejected), ("done", done), ("rejected", rejected)];
        Ok(Value::map(counts.map(|(name, count)| (name, Value::Integer(count)))))
    }

    /// Sends an element on, and lets `make` make something of its reply.
    async fn element<T>(
        self,
        at: At<'_>,
        arrived: ArrivedElement,
        make: impl AsyncFnOnce(Option<Value>) -> Result<T, Error>,
    ) -> Result<Fate<T>, Error> {
        let ArrivedElement { number, raw, price, value } = arrived;
        at.flow().spend(ELEMENT_WORK + price)?;
        let made = {
            let mut made = pin!(async { make(at.call(OUT, value?).await?).await });
            // Most elements have ended at once, and need no timer. The rarely needed timer is
            // boxed, because this future is copied for each element.
            match poll!(made.as_mut()) {
                Poll::Ready(made) => made,
                Poll::Pending => {
                    Box::pin(timeout(self.patience, made)).await.unwrap_or_else(|_| {
                        let text = format_args!(
                            "it has not ended within {:?}; raise 'deadline'",
                            self.patience
                        );
                        Err(Error::new(text).with_status(504))
                    })
                }
            }
        };
        let error = match made {
            Ok(made) => return Ok(Fate::Done(made)),
            Err(error) => error,
        };
        // If the flow has no work left, all further elements would fail too.
        if !at.is_linked(REJECTED) || at.flow().work_left() == 0 {
            let text = format!("the stream, line {number}: {error}");
            return Err(Error::new(text).with_status(error.status()));
        }
        Box::pin(at.call(REJECTED, Value::map(framing::rejected(number, &raw, &error)))).await?;
        Ok(Fate::Rejected)
    }
}
