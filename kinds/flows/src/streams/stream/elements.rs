//! The elements of a stream, one by one or in windows; they are read when they are asked for.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt, try_unfold};
use sinew_flow::{BytesToCome, Error, Value};
use tokio::time::{Instant, timeout_at};

use super::Settings;
use crate::framing::{Element, ElementFormat, Framer, NextElement};

/// Bytes of elements after which a window is full.
const WINDOW_BYTES_MAX: usize = 8 << 20;
/// Elements of a window without a given number.
const WINDOW_COUNT: usize = 1000;

/// Which elements go together into a window.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    count: usize,
    /// Longest time from its first element; `None` if it waits until it is full.
    time: Option<Duration>,
}

impl Windows {
    /// Windows of `count` elements, for `time` at most; zero means no such bound.
    pub(super) fn of(count: usize, time: Duration) -> Option<Windows> {
        let time = (!time.is_zero()).then_some(time);
        match count {
            0 => time.map(|time| Windows { count: WINDOW_COUNT, time: Some(time) }),
            count => Some(Windows { count, time }),
        }
    }
}

/// An element, or several that go together.
pub(super) struct ArrivedElement {
    /// The line in which it begins, from 1.
    pub(super) number: u64,
    /// The bytes as they came.
    pub(super) raw: Bytes,
    /// The cost of decoding it.
    pub(super) price: u64,
    /// Its value.
    pub(super) value: Result<Value, Error>,
}

/// Reads the elements of a stream. Boxed, because it is moved with each element.
pub(super) struct ElementReader(Box<Reader>);

struct Reader {
    source: BytesToCome,
    framer: Framer,
    format: ElementFormat,
    windows: Option<Windows>,
    /// The element that came after the last window, or the error that ended it.
    held: Option<Result<ArrivedElement, Error>>,
}

impl ElementReader {
    /// The reader of a stream.
    pub(super) fn new(settings: Settings, source: BytesToCome) -> ElementReader {
        let Settings { format, size_max, windows, .. } = settings;
        let framer = Framer::new("the stream, ".to_owned(), format, size_max);
        ElementReader(Box::new(Reader { source, framer, format, windows, held: None }))
    }

    /// The next element or window.
    ///
    /// # Errors
    /// An element is too long, or the stream breaks off.
    pub(super) async fn next(&mut self) -> Result<Option<ArrivedElement>, Error> {
        match self.0.windows {
            None => self.0.next().await,
            // Boxed, because a single element needs less room.
            Some(windows) => Box::pin(self.0.window(windows)).await,
        }
    }

    /// All elements or windows.
    pub(super) fn all(self) -> impl Stream<Item = Result<ArrivedElement, Error>> {
        try_unfold(self, async |mut reader| {
            Ok(reader.next().await?.map(|arrived| (arrived, reader)))
        })
    }
}

impl Reader {
    /// The next element. If the future is dropped before its end, nothing is lost.
    async fn next(&mut self) -> Result<Option<ArrivedElement>, Error> {
        if let Some(held) = self.held.take() {
            return held.map(Some);
        }
        loop {
            match self.framer.next()? {
                NextElement::Element(Element { number, raw, value, .. }) => {
                    let price = self.format.price(raw.len());
                    return Ok(Some(ArrivedElement { number, raw, price, value }));
                }
                NextElement::End => return Ok(None),
                NextElement::More => match self.source.next().await {
                    Some(bytes) => self.framer.give(&bytes?),
                    None => self.framer.end(),
                },
            }
        }
    }

    /// The next window. A malformed element goes by itself.
    async fn window(&mut self, windows: Windows) -> Result<Option<ArrivedElement>, Error> {
        let Some(first) = self.next().await? else { return Ok(None) };
        let ArrivedElement { number, raw, mut price, value: Ok(value) } = first else {
            return Ok(Some(first));
        };
        let until = windows.time.map(|time| Instant::now() + time);
        let (mut values, mut bytes) = (vec![value], raw.len());
        while values.len() < windows.count && bytes < WINDOW_BYTES_MAX {
            let next = match until {
                None => self.next().await,
                Some(until) => match timeout_at(until, self.next()).await {
                    Ok(next) => next,
                    Err(_) => break,
                },
            };
            match next {
                Ok(None) => break,
                Ok(Some(ArrivedElement { raw, price: more, value: Ok(value), .. })) => {
                    bytes += raw.len();
                    price += more;
                    values.push(value);
                }
                // The elements before it come first.
                Ok(Some(malformed)) => {
                    self.held = Some(Ok(malformed));
                    break;
                }
                Err(error) => {
                    self.held = Some(Err(error));
                    break;
                }
            }
        }
        Ok(Some(ArrivedElement {
            number,
            raw: Bytes::new(),
            price,
            value: Ok(Value::list(values)),
        }))
    }
}
