//! `html`: a template that makes a page. The values of its expressions are shown as text.

use sinew_core::Made;
use sinew_flow::{Flow, Step, Value};
use sinew_spec::Item;
use sinew_spec::plan::SpecText;

use super::{Limits, Script, code, made};
use crate::script::template::Template;

struct Page(Template);

pub(super) fn compile(item: &Item, _: &Limits, _: Option<&SpecText>) -> Made<dyn Script> {
    let template = Template::html(code(item)?, &|offset| item.span_at(offset))?;
    Ok(Box::new(Page(template)))
}

impl Script for Page {
    fn run<'a>(&'a self, flow: &'a Flow, packet: Value) -> Step<'a> {
        Step::compute(async move {
            let text = self.0.render(flow, &packet).await;
            made(text.map(|text| {
                let content_type = Value::text("text/html; charset=utf-8");
                let header = Value::map([("content-type", content_type)]);
                Value::map([("header", header), ("body", text)])
            }))
        })
    }
}
