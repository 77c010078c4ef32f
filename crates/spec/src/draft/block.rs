//! Blocks as the user wrote them: nodes behind ports of their own. Links into and out of a block
//! are joined later; the plan has no blocks.

use indexmap::IndexMap;
use sinew_plan::{Entry, Span};

use super::node::Link;
use crate::diagnostic::Report;
use crate::fields::{Fields, Named, check_name, list};
use crate::keys;
use crate::nearest::suggest;

/// A node of kind `block`.
pub(crate) struct Block<'a> {
    /// Its name, within its scope.
    pub(crate) name: Named<'a>,
    /// The scope of the names in its links, as for a node.
    pub(crate) scope: usize,
    pub(crate) inputs: Gates<'a>,
    pub(crate) outputs: Gates<'a>,
    /// The links of its outputs.
    pub(crate) links: Vec<Link<'a>>,
    /// Whether all its links and gates could be read.
    pub(crate) complete: bool,
    /// Where the block begins.
    pub(crate) span: Span,
}

/// The ports of a block on one side by name, in the order of the text. There may be as many as
/// there are links.
pub(crate) type Gates<'a> = IndexMap<&'a str, Gate<'a>>;

/// A port of a block.
pub(crate) struct Gate<'a> {
    pub(crate) name: Named<'a>,
    /// The inner ports that it stands for.
    pub(crate) inner: Vec<Inner<'a>>,
}

/// A port of a node or block inside the block.
#[derive(Clone, Copy)]
pub(crate) struct Inner<'a> {
    pub(crate) node: Named<'a>,
    pub(crate) port: Named<'a>,
}

/// The ports of a block on one side, and whether all of them could be read.
pub(super) fn gates<'a>(side: &str, fields: &Fields<'a>) -> (Gates<'a>, bool) {
    let mut complete = true;
    let mut gates = Gates::new();
    for Entry { key, span, value } in fields.map(side) {
        let name = Named { text: key, span: *span };
        check_name(name, "a port of a block", fields.report);
        let items = list(value, key, fields.report);
        if value.is_empty_list() {
            let message = format!("nothing stands behind port '{key}' of the block");
            let help = "add '{name: NODE, port: PORT}' of a node inside";
            fields.report.error(value.span, message, help);
        }
        let mut inner = Vec::with_capacity(items.len());
        for item in items {
            let fields = Fields::of(item, &keys::INNER, fields.report);
            let (node, port) = (fields.text("name"), fields.text("port"));
            inner.extend(node.zip(port).map(|(node, port)| Inner { node, port }));
        }
        complete &= inner.len() == items.len() && !items.is_empty();
        gates.insert(name.text, Gate { name, inner });
    }
    (gates, complete)
}

/// The output of a block with this name.
pub(super) fn output(
    outputs: &Gates<'_>,
    block: &str,
    port: Named<'_>,
    report: &Report,
) -> Option<usize> {
    let found = outputs.get_index_of(port.text);
    if found.is_none() {
        report.error_with(port.span, || {
            let message = format!("'{block}' (block) has no port '{}'", port.text);
            let help = match outputs.len() {
                0 => {
                    "name it under 'outputs:', with the inner ports that send through it".to_owned()
                }
                _ => suggest(port.text, outputs.keys().copied()),
            };
            (message, help)
        });
    }
    found
}
