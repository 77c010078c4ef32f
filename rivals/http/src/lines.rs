//! Lines of JSON in, lines of JSON out, through three stages written by hand: all in one loop, or
//! each stage spawned separately with a bounded queue before it.

use std::io;

use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::routing::post;
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use tokio::sync::mpsc;

/// Elements that may wait before a stage.
const QUEUE: usize = 64;

/// The routes: `/lines`, and `/lines/tasks` with three tasks.
pub fn router() -> Router {
    Router::new()
        .route("/lines", post(async |body: Body| written(elements(body))))
        .route("/lines/tasks", post(async |body: Body| written(staged(elements(body)))))
}

/// The elements; those of one part of the body come together.
fn elements(body: Body) -> impl Stream<Item = io::Result<Vec<Value>>> + Send + 'static {
    let begin = (body.into_data_stream(), Vec::<u8>::new());
    stream::try_unfold(begin, async |(mut parts, mut rest): (BodyDataStream, Vec<u8>)| {
        let Some(part) = parts.next().await else { return Ok(None) };
        rest.extend_from_slice(&part.map_err(io::Error::other)?);
        let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = rest[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let values = lines.map(serde_json::from_slice).collect::<Result<Vec<_>, _>>()?;
        rest.drain(..end);
        Ok(Some((values, (parts, rest))))
    })
}

/// The same elements after three tasks that pass each element on.
fn staged(
    elements: impl Stream<Item = io::Result<Vec<Value>>> + Send + 'static,
) -> impl Stream<Item = io::Result<Vec<Value>>> + Send + 'static {
    let (sender, mut receiver) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let mut elements = std::pin::pin!(elements);
        while let Some(values) = elements.next().await {
            let values: Vec<io::Result<Value>> = match values {
                Ok(values) => values.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            for value in values {
                if sender.send(value).await.is_err() {
                    return;
                }
            }
        }
    });
    for _ in 0..2 {
        let (sender, next) = mpsc::channel(QUEUE);
        let mut before = std::mem::replace(&mut receiver, next);
        tokio::spawn(async move {
            while let Some(value) = before.recv().await {
                if sender.send(value).await.is_err() {
                    return;
                }
            }
        });
    }
    stream::unfold(receiver, async |mut receiver| {
        let mut values = Vec::new();
        (receiver.recv_many(&mut values, QUEUE).await > 0).then(|| {
            let values = values.into_iter().collect::<io::Result<Vec<Value>>>();
            (values, receiver)
        })
    })
}

fn written(elements: impl Stream<Item = io::Result<Vec<Value>>> + Send + 'static) -> Body {
    Body::from_stream(elements.map(|values| {
        let mut text = Vec::new();
        for value in values? {
            serde_json::to_writer(&mut text, &value)?;
            text.push(b'\n');
        }
        io::Result::Ok(Bytes::from(text))
    }))
}
