//! `cel`: the value of an expression.

use sinew_core::Made;
use sinew_flow::{Flow, Step, Value};
use sinew_spec::Item;
use sinew_spec::plan::SpecText;

use super::{Limits, Script, made};
use crate::script::expression::Expression;

pub(super) fn compile(item: &Item, _: &Limits, _: Option<&SpecText>) -> Made<dyn Script> {
    Ok(Box::new(Expression::of(item, &[])?))
}

impl Script for Expression {
    fn run<'a>(&'a self, flow: &'a Flow, packet: Value) -> Step<'a> {
        made(self.evaluate((flow, &packet)))
    }
}
