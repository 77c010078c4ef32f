//! `text`: a template that makes a text. Without expressions it is made once.

use sinew_runtime::Made;
use sinew_runtime::flow::{Error, Flow, Value};
use sinew_spec::Item;

use super::{Limits, Script, code};
use crate::script::template::Template;

pub(super) fn compile(item: &Item, _limits: &Limits) -> Made<dyn Script> {
    let template = Template::text(code(item)?, &|offset| item.span_at(offset))?;
    Ok(Box::new(template))
}

impl Script for Template {
    fn constant(&self) -> Option<&Value> {
        Template::constant(self)
    }

    fn run(&self, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        self.render(flow, packet)
    }
}
