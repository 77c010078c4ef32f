//! The values that nodes of a flow set for later ones.

use std::cell::RefCell;
use std::rc::Rc;

use bytestring::ByteString;

use crate::Value;

/// Values of a flow, and behind them those of its parent. Clones share the values.
#[derive(Clone)]
pub struct FlowValues(Rc<Values>);

struct Values {
    own: RefCell<Vec<(ByteString, Value)>>,
    parent: Option<FlowValues>,
}

impl FlowValues {
    pub(crate) fn below(parent: Option<FlowValues>) -> FlowValues {
        FlowValues(Rc::new(Values { own: RefCell::default(), parent }))
    }

    /// The value of this name, of the flow or of the nearest parent that has one.
    pub fn get(&self, name: &str) -> Option<Value> {
        let own = self.0.own.borrow();
        let found = own.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        found.or_else(|| self.0.parent.as_ref()?.get(name))
    }

    /// How many values there are, those of parents included: a search goes through all of them.
    pub fn count(&self) -> usize {
        self.0.own.borrow().len() + self.0.parent.as_ref().map_or(0, FlowValues::count)
    }

    /// Sets a value of the flow.
    pub fn set(&self, name: ByteString, value: Value) {
        let mut own = self.0.own.borrow_mut();
        match own.iter_mut().find(|(own, _)| *own == name) {
            Some((_, place)) => *place = value,
            None => own.push((name, value)),
        }
    }
}
