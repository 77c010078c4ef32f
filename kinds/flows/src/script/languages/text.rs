//! `text`: a template that makes a text. Without expressions it is made once.

use sinew_core::Made;
use sinew_flow::{Flow, Step, Value};
use sinew_spec::Item;
use sinew_spec::plan::SpecText;

use super::{Limits, Script, code, made};
use crate::script::template::{Rendered, Template};

pub(super) fn compile(item: &Item, _: &Limits, _: Option<&SpecText>) -> Made<dyn Script> {
    let template = Template::text(code(item)?, &|offset| item.span_at(offset))?;
    Ok(Box::new(template))
}

impl Script for Template {
    fn run<'a>(&'a self, flow: &'a Flow, packet: Value) -> Step<'a> {
        match self.begin(flow, &packet) {
            Err(error) => made(Err(error)),
            Ok(Rendered::All(value)) => made(Ok(value)),
            Ok(Rendered::Values(values)) => {
                Step::compute(async move { made(self.go_on(flow, &packet, values).await) })
            }
        }
    }
}
