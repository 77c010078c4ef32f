//! Which field of a message of the graph stands for which part of a message of ROS. The spec says
//! it, or the names of the fields do; it is settled once, before anything runs.

use sinew_core::Refusal;
use sinew_spec::catalogue::{Field, MessageType, Scalar};
use sinew_spec::{Data, Item, Span};

/// A part of a message of ROS that is made of numbers.
pub(crate) struct Slot {
    /// What ROS calls it.
    pub(crate) name: &'static str,
    /// How many numbers.
    pub(crate) width: Width,
    /// Fields that stand for it if the spec names none.
    pub(crate) usual: &'static [&'static str],
}

/// How many numbers a part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// One.
    One,
    /// x, y and z.
    Xyz,
    /// x, y, z and w, which are a rotation.
    Xyzw,
    /// One for each joint.
    Joints,
    /// One for each joint, at each point of a trajectory.
    JointPoints,
    /// One for each point of a trajectory.
    Points,
}

/// Where a number stands in a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    scalar: Scalar,
    offset: usize,
    /// ROS's number is the message's number times this.
    scale: f64,
}

/// For each slot the places of its numbers. The list is empty if no field stands for the slot. If
/// only parts of a slot are mapped, the other parts are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mapping {
    /// By slot.
    pub(crate) slots: Vec<Vec<Option<Place>>>,
    /// Points of a trajectory that the message has room for.
    pub(crate) points: usize,
}

impl Place {
    /// The number at this place, in ROS's unit.
    pub(crate) fn read(&self, message: &[u8]) -> f64 {
        let number = self.scalar.number(&message[self.offset..]);
        number.expect("a place lies within its message") * self.scale
    }

    /// Puts a number of ROS at this place. Returns false, and writes nothing, if the number is not
    /// finite there: it may be too great for the unit, or for 32 bits. A field of whole numbers
    /// takes the nearest number that it can hold.
    pub(crate) fn write(&self, message: &mut [u8], number: f64) -> bool {
        let number = number / self.scale;
        let is_short = self.scalar == Scalar::F32;
        if !number.is_finite() || (is_short && !(number as f32).is_finite()) {
            return false;
        }
        self.scalar.put(number, &mut message[self.offset..]);
        true
    }
}

/// The places of all numbers of a field.
pub(crate) fn places(field: &Field) -> impl Iterator<Item = Place> + '_ {
    let at = |i: u32| (field.offset + i * field.scalar.bytes()) as usize;
    (0..field.count).map(move |i| Place { scalar: field.scalar, offset: at(i), scale: 1.0 })
}

/// Settles a mapping. `fields` is what the spec says; if it is empty, the usual names decide.
///
/// # Errors
/// All that is wrong, each with its place.
pub(crate) fn map(
    slots: &[Slot],
    fields: &Item,
    message: &MessageType,
    joints: usize,
) -> Result<Mapping, Vec<Refusal>> {
    let binder = Binder { slots, message, joints, mapping: Mapping::default(), wrong: Vec::new() };
    binder.map(fields)
}

struct Binder<'a> {
    slots: &'a [Slot],
    message: &'a MessageType,
    joints: usize,
    mapping: Mapping,
    wrong: Vec<Refusal>,
}

impl Binder<'_> {
    fn map(mut self, fields: &Item) -> Result<Mapping, Vec<Refusal>> {
        self.mapping.slots = self.slots.iter().map(|_| Vec::new()).collect();
        match &fields.data {
            Data::Map(entries) if entries.is_empty() => self.usual(fields.span),
            Data::Map(entries) => {
                for entry in entries {
                    if let Err(refusal) = self.entry(&entry.key, entry.span, &entry.value) {
                        self.wrong.push(refusal);
                    }
                }
            }
            _ => self.wrong.push(Refusal::new(
                fields.span,
                format!("'fields' is {}", fields.sort()),
                "write a mapping such as {position: position_m}: a part of ROS's message, and the \
                 field that stands for it",
            )),
        }
        let rotations = self.slots.iter().zip(&self.mapping.slots);
        for (slot, places) in rotations.filter(|(slot, _)| slot.width == Width::Xyzw) {
            if places.iter().any(Option::is_none) {
                let message = format!("of '{}' only a part is mapped", slot.name);
                let help = "a rotation has x, y, z and w; name a field of four numbers";
                self.wrong.push(Refusal::new(fields.span, message, help));
            }
        }
        if self.wrong.is_empty() { Ok(self.mapping) } else { Err(self.wrong) }
    }

    /// Maps the slots by the usual names of fields.
    fn usual(&mut self, span: Span) {
        for at in 0..self.slots.len() {
            let slot = &self.slots[at];
            let usual = |field: &&Field| slot.usual.contains(&field.name);
            let found: Vec<_> = self.message.fields.iter().filter(usual).collect();
            if let [field] = found[..]
                && self.points_of(slot.width, field.count as usize).is_some()
            {
                let places = places(field).map(Some).collect();
                if let Err(refusal) = self.put(at, places, span) {
                    self.wrong.push(refusal);
                }
            }
        }
        if self.wrong.is_empty() && self.mapping.slots.iter().all(Vec::is_empty) {
            let slots: Vec<_> = self.slots.iter().map(|slot| slot.name).collect();
            let message = format!("no field of {} has a usual name", self.describe());
            let help = format!("write 'fields' with one or more of: {}", slots.join(", "));
            self.wrong.push(Refusal::new(span, message, help));
        }
    }

    /// The points for which a slot of this width has `count` numbers. `None`: it cannot have so
    /// many.
    fn points_of(&self, width: Width, count: usize) -> Option<usize> {
        match width {
            Width::One => (count == 1).then_some(0),
            Width::Xyz => (count == 3).then_some(0),
            Width::Xyzw => (count == 4).then_some(0),
            Width::Joints => (count == self.joints).then_some(0),
            Width::JointPoints => {
                let is_whole = self.joints > 0 && count.is_multiple_of(self.joints);
                is_whole.then(|| count / self.joints).filter(|points| *points > 0)
            }
            Width::Points => (count > 0).then_some(count),
        }
    }

    fn entry(&mut self, key: &str, span: Span, value: &Item) -> Result<(), Refusal> {
        let (name, part) = key.split_once('.').map_or((key, None), |(a, b)| (a, Some(b)));
        let Some(at) = self.slots.iter().position(|slot| slot.name == name) else {
            let slots: Vec<_> = self.slots.iter().map(|slot| slot.name).collect();
            let message = format!("this type of ROS has no part '{name}' made of numbers");
            return Err(Refusal::new(span, message, format!("it has: {}", slots.join(", "))));
        };
        let width = self.slots[at].width;
        let Some(part) = part else {
            let places = self.value(value)?.into_iter().map(Some).collect();
            return self.put(at, places, value.span);
        };
        let letters = match width {
            Width::Xyz => "xyz",
            Width::Xyzw => "xyzw",
            _ => "",
        };
        let Some(letter) = letters.find(part).filter(|_| part.len() == 1) else {
            let message = format!("'{name}' has no part '{part}'");
            return Err(Refusal::new(span, message, format!("name '{name}' alone")));
        };
        let [place] = self.value(value)?[..] else {
            let help = "name one number, such as speed_m_per_s or velocity_m_per_s[0]";
            return Err(Refusal::new(value.span, format!("'{key}' is one number"), help));
        };
        let places = &mut self.mapping.slots[at];
        places.resize(letters.len(), None);
        places[letter] = Some(place);
        Ok(())
    }

    /// Takes the places of a slot, if their number is the one that the slot wants.
    fn put(&mut self, at: usize, places: Vec<Option<Place>>, span: Span) -> Result<(), Refusal> {
        let Slot { name, width, .. } = self.slots[at];
        let found = places.len();
        let Some(points) = self.points_of(width, found) else {
            let joints = self.joints;
            let expected = match width {
                Width::One => "1".to_owned(),
                Width::Xyz => "3 (x, y, z)".to_owned(),
                Width::Xyzw => "4 (x, y, z, w)".to_owned(),
                Width::Joints => format!("{joints}, one for each of 'names'"),
                _ => format!("{joints} (one for each of 'names') for each point"),
            };
            let message = format!("'{name}' is {expected}; found {found} numbers");
            let help = "name a field of that many numbers, or a list of fields";
            return Err(Refusal::new(span, message, help));
        };
        let mapping = &mut self.mapping;
        if points > 0 && mapping.points > 0 && points != mapping.points {
            let others = mapping.points;
            let message = format!("'{name}' has room for {points} points, others for {others}");
            return Err(Refusal::new(span, message, "all need room for as many points"));
        }
        mapping.points = mapping.points.max(points);
        mapping.slots[at] = places;
        Ok(())
    }

    /// The places of the numbers that a value names: a field, one number of a field, a list of
    /// those, or `{field:, scale:}`.
    fn value(&self, value: &Item) -> Result<Vec<Place>, Refusal> {
        match &value.data {
            Data::Scalar { text, .. } => self.named(text, value.span),
            Data::List(items) => {
                let lists = items.iter().map(|item| self.value(item));
                Ok(lists.collect::<Result<Vec<_>, _>>()?.concat())
            }
            Data::Map(entries) => {
                let help = "write {field: place_mm, scale: 0.001}";
                let wrong = |what: &str| Refusal::new(value.span, what, help);
                let known = ["field", "scale"];
                if let Some(entry) = entries.iter().find(|it| !known.contains(&it.key.as_str())) {
                    return Err(wrong(&format!("it has no key '{}'", entry.key)));
                }
                let field = value.get("field").ok_or_else(|| wrong("it names no 'field'"))?;
                let scale = value.get("scale").and_then(Item::text);
                let scale = scale.and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
                if !scale.is_finite() || scale == 0.0 {
                    return Err(wrong("'scale' is not a number, or 0"));
                }
                let places = self.value(field)?.into_iter();
                Ok(places.map(|place| Place { scale: place.scale * scale, ..place }).collect())
            }
        }
    }

    /// The numbers of `field`, or the one of `field[2]`.
    fn named(&self, text: &str, span: Span) -> Result<Vec<Place>, Refusal> {
        let split = text.strip_suffix(']').and_then(|text| text.split_once('['));
        let (name, index) = split.map_or((text, None), |(name, index)| (name, Some(index)));
        let Some(field) = self.message.fields.iter().find(|field| field.name == name) else {
            let message = format!("{} has no field '{name}'", self.describe());
            let names: Vec<_> = self.message.fields.iter().map(|field| field.name).collect();
            return Err(Refusal::new(span, message, format!("it has: {}", names.join(", "))));
        };
        let Some(index) = index else { return Ok(places(field).collect()) };
        let place = index.parse().ok().and_then(|at| places(field).nth(at));
        place.map(|place| vec![place]).ok_or_else(|| {
            let message = format!("'{name}' has no number '{index}'");
            Refusal::new(span, message, format!("it has 0 to {}", field.count.saturating_sub(1)))
        })
    }

    fn describe(&self) -> String {
        format!("message {}", self.message.name)
    }
}

#[cfg(test)]
mod tests;
