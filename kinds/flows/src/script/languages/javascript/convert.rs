//! Values of flows as values of JavaScript, and back.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use rquickjs::object::{Filter, Property};
use rquickjs::{
    Array, Coerced, Ctx, Error as JsError, Exception, Function, Object, Result, String as JsString,
    Type, TypedArray, Value as JsValue,
};
use sinew_flow::{Map, Value};

use super::budget::ScriptBudget;
use crate::script::template::RENDERED_MAX;

/// Deepest object that becomes a value; one that holds itself has no end.
const DEPTH_MAX: usize = 64;
/// Most bytes of text in one value. A text that an object holds several times counts each time.
const BYTES_MAX: usize = RENDERED_MAX;
/// What it takes to make a value, in instructions.
const VALUE: u64 = 8;
/// What a value takes with its name, in bytes.
const VALUE_LEN: usize = 64;
/// Bytes of text that count as one instruction.
const BYTES_PER_INSTRUCTION: usize = 16;
/// Not all larger whole numbers are numbers of JavaScript, so they become a BigInt.
const SAFE_MAX: u64 = (1 << 53) - 1;

/// What is left for a value that is made.
struct Room {
    memory: Cell<usize>,
    text: Cell<usize>,
}

/// What both directions need.
#[derive(Clone)]
pub(super) struct JsConverter(pub(super) Rc<ScriptBudget>);

impl JsConverter {
    fn spend(&self, ctx: &Ctx<'_>, instructions: usize) -> Result<()> {
        match self.0.spend(instructions as u64) {
            true => Ok(()),
            false => Err(stopped(ctx)),
        }
    }

    /// A value of flows as a value of JavaScript.
    pub(super) fn to_js<'js>(&self, ctx: &Ctx<'js>, value: &Value) -> Result<JsValue<'js>> {
        self.spend(ctx, VALUE as usize)?;
        Ok(match value {
            Value::Null => JsValue::new_null(ctx.clone()),
            Value::Bool(value) => JsValue::new_bool(ctx.clone(), *value),
            Value::Integer(value) if value.unsigned_abs() > SAFE_MAX => {
                JsValue::new_big_int(ctx.clone(), *value)?
            }
            Value::Integer(value) => JsValue::new_number(ctx.clone(), *value as f64),
            Value::Number(value) => JsValue::new_number(ctx.clone(), *value),
            Value::Text(text) => {
                self.spend(ctx, text.len() / BYTES_PER_INSTRUCTION)?;
                JsString::from_str(ctx.clone(), text)?.into_value()
            }
            Value::Bytes(bytes) => {
                self.spend(ctx, bytes.len() / BYTES_PER_INSTRUCTION)?;
                TypedArray::<u8>::new_copy(ctx.clone(), bytes)?.into_value()
            }
            Value::List(items) => {
                let list = Array::new(ctx.clone())?;
                for (at, item) in items.iter().enumerate() {
                    list.set(at, self.to_js(ctx, item)?)?;
                }
                list.into_value()
            }
            Value::Map(map) => {
                let object = Object::new(ctx.clone())?;
                for (key, value) in map.iter() {
                    let value = self.to_js(ctx, value)?;
                    // Defined, not set, so that `__proto__` is a name like any other.
                    let own = Property::from(value).writable().enumerable().configurable();
                    object.prop(&**key, own)?;
                }
                object.into_value()
            }
            Value::Document(_) => {
                if !self.0.spend_work(value.price()) {
                    return Err(stopped(ctx));
                }
                let whole = value.resolve().map_err(|error| throw(ctx, error.text()))?;
                self.to_js(ctx, &whole)?
            }
            Value::Stream(_) => {
                return Err(throw(ctx, "a stream cannot be read here"));
            }
        })
    }

    /// A value of JavaScript as a value of flows. It takes `memory` at most, as the code does.
    /// `latin` gives bytes as a text.
    pub(super) fn value<'js>(
        &self,
        ctx: &Ctx<'js>,
        latin: &Function<'js>,
        value: &JsValue<'js>,
    ) -> Result<Value> {
        let memory = Cell::new(self.0.limits.memory_bytes);
        let room = Room { memory, text: Cell::new(BYTES_MAX) };
        Made { it: self, ctx, latin, room }.value(value, 0)
    }
}

/// A value that is being made.
struct Made<'a, 'js> {
    it: &'a JsConverter,
    ctx: &'a Ctx<'js>,
    latin: &'a Function<'js>,
    room: Room,
}

impl<'js> Made<'_, 'js> {
    fn take(&self, len: usize) -> Result<()> {
        let left = self.room.memory.get().checked_sub(len);
        self.room.memory.set(left.ok_or(JsError::Allocation)?);
        Ok(())
    }

    fn text(&self, text: &JsString<'js>) -> Result<String> {
        let half =
            |_: JsError| throw(self.ctx, "a text with half of a surrogate pair is not valid");
        let text = text.to_string().map_err(half)?;
        let left = self.room.text.get().checked_sub(text.len());
        let too_long = || throw(self.ctx, &format!("more than {BYTES_MAX} bytes in one value"));
        self.room.text.set(left.ok_or_else(too_long)?);
        self.it.spend(self.ctx, text.len() / BYTES_PER_INSTRUCTION)?;
        self.take(text.len())?;
        Ok(text)
    }

    fn value(&self, value: &JsValue<'js>, depth: usize) -> Result<Value> {
        self.it.spend(self.ctx, VALUE as usize)?;
        self.take(VALUE_LEN)?;
        let refuse = |what: &str| Err(throw(self.ctx, &format!("{what} is not a value of a flow")));
        if depth > DEPTH_MAX {
            let text = format!("an object nested deeper than {DEPTH_MAX} levels");
            return Err(throw(self.ctx, &text));
        }
        match value.type_of() {
            Type::Undefined | Type::Null => Ok(Value::Null),
            Type::Bool => Ok(Value::Bool(value.as_bool().unwrap_or_default())),
            Type::Int | Type::Float => Ok(number(value.as_number().unwrap_or_default())),
            // As a number it would be cut to 64 bits.
            Type::BigInt => match value.get::<Coerced<String>>()?.0.parse() {
                Ok(whole) => Ok(Value::Integer(whole)),
                Err(_) => refuse("a whole number of more than 64 bits"),
            },
            Type::String => match value.as_string() {
                Some(text) => self.text(text).map(Value::text),
                None => refuse("this text"),
            },
            Type::Array => match value.as_array() {
                Some(list) => self.list(list, depth),
                None => refuse("this list"),
            },
            Type::Object => match value.as_object() {
                Some(object) => self.object(object, depth),
                None => refuse("this object"),
            },
            Type::Exception => refuse("an Error"),
            Type::Function | Type::Constructor => refuse("a function"),
            Type::Symbol => refuse("a symbol"),
            Type::Promise => refuse("a promise"),
            _ => refuse("this"),
        }
    }

    fn list(&self, list: &Array<'js>, depth: usize) -> Result<Value> {
        let mut items = Vec::new();
        for at in 0..list.len() {
            items.push(self.value(&list.get::<JsValue<'js>>(at)?, depth + 1)?);
        }
        Ok(Value::list(items))
    }

    /// A plain object, which is not an instance of anything, or bytes.
    fn object(&self, object: &Object<'js>, depth: usize) -> Result<Value> {
        if object.is_typed_array::<u8>() {
            let text: JsString<'js> = self.latin.call((object.clone(),))?;
            let bytes: Vec<u8> = self.text(&text)?.chars().map(|sign| sign as u8).collect();
            return Ok(Value::Bytes(Bytes::from(bytes)));
        }
        let above = object.get_prototype().and_then(|proto| proto.get_prototype());
        if above.is_some() {
            let class = object.get::<_, Object<'js>>("constructor");
            let name = class.and_then(|class| class.get::<_, String>("name"));
            let name = name.unwrap_or_else(|_| "a class".to_owned());
            let text = format!("an instance of {name} is not a value of a flow; return {{...it}}");
            return Err(throw(self.ctx, &text));
        }
        let mut map = Map::new();
        let filter = Filter::new().string().enum_only();
        for entry in object.own_props::<JsString<'js>, JsValue<'js>>(filter) {
            let (key, value) = entry?;
            map.insert(self.text(&key)?.into(), self.value(&value, depth + 1)?);
        }
        Ok(Value::Map(map.into()))
    }
}

/// A number of JavaScript; a whole number becomes an integer, however JavaScript holds it.
fn number(value: f64) -> Value {
    match value.fract() == 0.0 && value.abs() <= SAFE_MAX as f64 {
        true => Value::Integer(value as i64),
        false => Value::Number(value),
    }
}

/// What a function of ours throws.
pub(super) fn throw(ctx: &Ctx<'_>, text: &str) -> JsError {
    Exception::throw_message(ctx, text)
}

/// The same when a limit was met. The engine stops at its next look, even if the script catches
/// this.
pub(super) fn stopped(ctx: &Ctx<'_>) -> JsError {
    throw(ctx, "the code is stopped at a limit")
}
