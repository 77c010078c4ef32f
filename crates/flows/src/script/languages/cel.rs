//! `cel`: the value of an expression.

use sinew_runtime::Made;
use sinew_runtime::flow::{Error, Flow, Value};
use sinew_spec::Item;

use super::{Limits, Script};
use crate::script::expression::Expression;

pub(super) fn compile(item: &Item, _limits: &Limits) -> Made<dyn Script> {
    let expression = Expression::of(item, &[]).map_err(|refusal| vec![refusal])?;
    Ok(Box::new(expression))
}

impl Script for Expression {
    fn constant(&self) -> Option<&Value> {
        Expression::constant(self)
    }

    fn run(&self, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        self.evaluate(flow, packet)
    }
}
