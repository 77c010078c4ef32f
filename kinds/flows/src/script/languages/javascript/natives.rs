//! The functions of ours that scripts call.

use std::rc::Rc;

use rquickjs::convert::List;
use rquickjs::{Array, Ctx, Function, Object, Result, Value as JsValue};
use sinew_control::outside;

use super::convert::{JsConverter, stopped, throw};
use super::{Current, eval};
use crate::script::library::{Argument, LIBRARY};

/// Values of a flow that a search passes in the time of one instruction.
const VALUES_PER_INSTRUCTION: usize = 4;

/// Puts the library into a context; gives the object that calls a script.
pub(super) fn install<'js>(
    ctx: &Ctx<'js>,
    converter: &JsConverter,
    current: &Rc<Current>,
) -> Result<Object<'js>> {
    let natives = Object::new(ctx.clone())?;
    natives.set("library", library(ctx)?)?;
    let it = converter.clone();
    let call =
        move |ctx: Ctx<'js>, at: usize, given: Vec<JsValue<'js>>| call(&ctx, &it, at, &given);
    natives.set("call", Function::new(ctx.clone(), call)?)?;
    let it = converter.clone();
    let spend = move |ctx: Ctx<'js>, count: f64| match it.0.spend(count as u64) {
        true => Ok(()),
        false => Err(stopped(&ctx)),
    };
    natives.set("spend", Function::new(ctx.clone(), spend)?)?;
    let env = move |ctx: Ctx<'js>, name: String| {
        outside::variable(&name).map_err(|why| throw(&ctx, &format!("env.{name}: {why}")))
    };
    natives.set("env", Function::new(ctx.clone(), env)?)?;
    let (it, flow) = (converter.clone(), Rc::clone(current));
    let field = move |ctx: Ctx<'js>, name: String| field(&ctx, &it, &flow, &name);
    natives.set("field", Function::new(ctx.clone(), field)?)?;
    let (it, flow) = (converter.clone(), Rc::clone(current));
    let value = move |ctx: Ctx<'js>, name: String| {
        let found = flow.values.borrow().as_ref().map(|values| (values.count(), values.get(&name)));
        let (count, value) = found.unwrap_or_default();
        match it.0.spend((count / VALUES_PER_INSTRUCTION) as u64) {
            true => value.map(|value| it.to_js(&ctx, &value)).transpose(),
            false => Err(stopped(&ctx)),
        }
    };
    natives.set("value", Function::new(ctx.clone(), value)?)?;
    let made = eval::<Function<'js>>(ctx, "library", include_str!("library.js"))?;
    let (it, flow) = (converter.clone(), Rc::clone(current));
    let set = move |ctx: Ctx<'js>, name: String, value: JsValue<'js>, latin: Function<'js>| {
        let value = it.value(&ctx, &latin, &value)?;
        if let Some(values) = &*flow.values.borrow() {
            values.set(name.into(), value);
        }
        Ok::<_, rquickjs::Error>(())
    };
    natives.set("set", Function::new(ctx.clone(), set)?)?;
    made.call((natives,))
}

fn call<'js>(
    ctx: &Ctx<'js>,
    it: &JsConverter,
    at: usize,
    given: &[JsValue<'js>],
) -> Result<JsValue<'js>> {
    let Some(row) = LIBRARY.get(at) else { return Err(throw(ctx, "there is no such function")) };
    let mut given = given;
    // Arguments at the end that are undefined were left out.
    while let [rest @ .., last] = given
        && last.is_undefined()
    {
        given = rest;
    }
    let text = |value: &JsValue<'js>| match value.as_string().map(|text| text.to_string()) {
        Some(Ok(text)) => Some(text),
        _ => None,
    };
    let texts: Vec<Option<String>> = given.iter().map(text).collect();
    let mut arguments = Vec::with_capacity(given.len());
    for (value, text) in given.iter().zip(&texts) {
        arguments.push(match (text, value.as_int(), value.as_number()) {
            (Some(text), ..) => Argument::Text(text),
            (None, Some(whole), _) => Argument::Integer(whole.into()),
            (None, None, Some(number)) => Argument::Number(number),
            (None, None, None) => Argument::Other,
        });
    }
    if !it.0.spend_work(row.work + row.price(&arguments)) {
        return Err(stopped(ctx));
    }
    let value = row.call(&arguments);
    let value = value.map_err(|text| throw(ctx, &format!("{}: {text}", row.called())))?;
    it.to_js(ctx, &value)
}

/// A field of the request that is under way.
fn field<'js>(
    ctx: &Ctx<'js>,
    it: &JsConverter,
    flow: &Current,
    name: &str,
) -> Result<Option<JsValue<'js>>> {
    let Some(request) = flow.request.borrow().clone() else { return Ok(None) };
    if !it.0.spend_work(request.price(name)) {
        return Err(stopped(ctx));
    }
    match request.field(name) {
        Ok(value) => it.to_js(ctx, &value).map(Some),
        Err(error) => {
            let thrown = throw(ctx, error.text());
            *flow.failed.borrow_mut() = Some(error);
            Err(thrown)
        }
    }
}

/// Namespace, name and place in the table of each function that expressions have too.
fn library<'js>(ctx: &Ctx<'js>) -> Result<Array<'js>> {
    let rows = Array::new(ctx.clone())?;
    for (at, row) in LIBRARY.iter().enumerate() {
        rows.set(at, List((row.namespace, row.name, at)))?;
    }
    Ok(rows)
}
