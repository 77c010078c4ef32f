//! Transforms that never change: all in one message, which nodes that come later get, too.

use ros2_client::qos::{Durability, History, QosProfile};
use sinew_core::{Fault, Refusal};
use sinew_spec::{Data, Item};

use crate::messages::{Header, Quaternion, TFMessage, Transform, TransformStamped, Vector3};
use crate::session::{Session, TopicWriter};
use crate::topics::normalise;
use crate::topics::outward::now;

/// Keys of a transform.
const KEYS: [&str; 4] = ["frame_id", "child_frame_id", "translation", "rotation"];

/// What the spec writes: `[{frame_id: map, child_frame_id: base, translation: [0, 0, 1]}]`.
///
/// # Errors
/// All that is wrong, each with its place.
pub(crate) fn transforms(item: &Item) -> Result<Vec<TransformStamped>, Vec<Refusal>> {
    let Data::List(items) = &item.data else {
        let help = "write a list such as [{frame_id: map, child_frame_id: base}]";
        let message = format!("'static_transforms' is {}", item.sort());
        return Err(vec![Refusal::new(item.span, message, help)]);
    };
    let (mut all, mut wrong) = (Vec::<TransformStamped>::new(), Vec::new());
    for item in items {
        match one(item) {
            Ok(one) if all.iter().any(|it| it.child_frame_id == one.child_frame_id) => {
                let message = format!("two transforms lead to '{}'", one.child_frame_id);
                wrong.push(Refusal::new(item.span, message, "a frame has one parent"));
            }
            Ok(one) => all.push(one),
            Err(message) => wrong.push(Refusal::new(
                item.span,
                message,
                "write {frame_id: map, child_frame_id: base, translation: [0, 0, 1], rotation: \
                 [0, 0, 0, 1]}",
            )),
        }
    }
    if wrong.is_empty() { Ok(all) } else { Err(wrong) }
}

fn one(item: &Item) -> Result<TransformStamped, String> {
    let Data::Map(entries) = &item.data else {
        return Err(format!("a transform is {}", item.sort()));
    };
    if let Some(entry) = entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str())) {
        return Err(format!("a transform has no key '{}'", entry.key));
    }
    let frame = |key| {
        let text = item.get(key).and_then(Item::text).filter(|text| !text.is_empty());
        text.filter(|text| !text.starts_with('/')).map(str::to_owned)
    };
    let frame_id = frame("frame_id").ok_or("a transform begins in no frame")?;
    let child_frame_id = frame("child_frame_id").ok_or("a transform leads to no frame")?;
    let [x, y, z] = numbers(item.get("translation"), [0.0; 3])
        .ok_or("a translation is three numbers, x, y and z in m")?;
    let translation = Vector3 { x, y, z };
    let mut turned = numbers(item.get("rotation"), [0.0, 0.0, 0.0, 1.0])
        .ok_or("a rotation is four numbers, x, y, z and w")?;
    if !normalise(&mut turned) {
        return Err("the rotation is not as long as 1".into());
    }
    let [x, y, z, w] = turned;
    let rotation = Quaternion { x, y, z, w };
    let header = Header { frame_id, ..Header::default() };
    let transform = Transform { translation, rotation };
    Ok(TransformStamped { header, child_frame_id, transform })
}

fn numbers<const N: usize>(item: Option<&Item>, default: [f64; N]) -> Option<[f64; N]> {
    let Some(item) = item else { return Some(default) };
    let Data::List(items) = &item.data else { return None };
    let number = |item: &Item| item.text()?.parse().ok().filter(|number: &f64| number.is_finite());
    let numbers: Option<Vec<f64>> = items.iter().map(number).collect();
    numbers?.try_into().ok()
}

/// Publishes the transforms. They stay published as long as the returned writer exists.
///
/// # Errors
/// The network refuses it.
pub(crate) fn publish(
    session: &Session,
    transforms: &[TransformStamped],
) -> Result<TopicWriter<TFMessage>, Fault> {
    let qos = QosProfile::publisher_default()
        .durability(Durability::TransientLocal)
        .history(History::KeepLast { depth: 1 });
    let publisher = session.publish::<TFMessage>("/tf_static", &qos)?;
    let mut transforms = transforms.to_vec();
    transforms.iter_mut().for_each(|it| it.header.stamp = now());
    let message = TFMessage { transforms };
    // There is room: the writer keeps one message, and this is the only one.
    publisher.publish(message)?;
    Ok(publisher)
}
