//! Where a spec describes a node, a domain or a link, found by their names.

use sinew_plan::{Data, Item};

use super::PathStep;
use crate::diagnostic::Report;
use crate::keys::BLOCK_KIND;
use crate::yaml;

/// The places of a spec.
#[derive(Debug)]
pub struct Places {
    root: Item,
}

impl Places {
    /// Reads a text; `None` if it is not YAML.
    pub fn of(text: &str) -> Option<Places> {
        let root =
            (text.len() <= yaml::TEXT_LEN_MAX).then(|| yaml::parse(text, 0, &Report::default()));
        Some(Places { root: root.flatten()? })
    }

    /// The mapping of a node or block by its name in the plan: `auth/check` is in the block `auth`.
    pub fn node(&self, name: &str) -> Option<Vec<PathStep>> {
        Some(self.find_node(name)?.0)
    }

    /// The mapping of a domain; a bare list of nodes has none.
    pub fn domain(&self, name: &str) -> Option<Vec<PathStep>> {
        self.root.get("domains")?.get(name)?;
        Some(vec![key("domains"), key(name)])
    }

    /// The mapping with the options of a link, by the nodes at its ends and their ports as the spec
    /// names them. For a link to or from a block, give the block and its port.
    pub fn link(&self, from: (&str, &str), to: (&str, &str)) -> Option<Vec<PathStep>> {
        let inside = |name: &'_ str| name.rfind('/').map_or(0, |slash| slash + 1);
        let (scope, reader) = to.0.split_at(inside(to.0));
        if scope != &from.0[..inside(from.0)] {
            return None;
        }
        let (mut steps, node) = self.find_node(from.0)?;
        let leads = |item: &Item| {
            let is = |key, value| item.get(key).and_then(Item::text) == Some(value);
            is("name", reader) && is("port", to.1)
        };
        let at = list(node.get("ports")?.get(from.1)?).iter().position(leads)?;
        steps.extend([key("ports"), key(from.1), PathStep::Index(at)]);
        Some(steps)
    }

    fn find_node(&self, name: &str) -> Option<(Vec<PathStep>, &Item)> {
        let (mut steps, mut holder) = (Vec::new(), &self.root);
        for (depth, part) in name.split('/').enumerate() {
            if depth > 0 && text(holder, "kind") != Some(BLOCK_KIND) {
                return None;
            }
            let nodes = match &holder.data {
                Data::List(_) => holder,
                _ => {
                    steps.push(key("nodes"));
                    holder.get("nodes")?
                }
            };
            let name = |node| text(node, "name").or_else(|| text(node, "kind"));
            let at = list(nodes).iter().position(|node| name(node) == Some(part))?;
            steps.push(PathStep::Index(at));
            holder = &list(nodes)[at];
        }
        Some((steps, holder))
    }
}

fn key(name: &str) -> PathStep {
    PathStep::Key(name.to_owned())
}

fn text<'a>(item: &'a Item, key: &str) -> Option<&'a str> {
    item.get(key).and_then(Item::text)
}

fn list(item: &Item) -> &[Item] {
    if let Data::List(items) = &item.data { items } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::tests::steps;

    #[test]
    fn places_are_found_by_name() {
        let text = "name: g
domains: {control: {}, 'plant': {}}
nodes:
- kind: a
- kind: b
  name: c
  ports:
    out: [{name: a, port: in}, {name: d, port: in}]
    'out[1]':
    - {name: d, port: 'in[0]'}
- kind: block
  name: d
  ports: {out: [{name: a, port: in}]}
  nodes:
  - kind: e
    ports: {x: [{name: f, port: y}]}
  - {kind: e, name: f}
";
        let places = Places::of(text).unwrap();
        let found = |path: &str| Some(steps(path));
        assert_eq!(places.domain("plant"), found("domains.plant"));
        assert_eq!(places.domain("none"), None);
        assert_eq!(places.node("a"), found("nodes.0"));
        assert_eq!(places.node("c"), found("nodes.1"));
        assert_eq!(places.node("b"), None);
        assert_eq!(places.node("d/f"), found("nodes.2.nodes.1"));
        assert_eq!(places.node("c/f"), None);
        assert_eq!(places.link(("c", "out"), ("d", "in")), found("nodes.1.ports.out.1"));
        assert_eq!(places.link(("c", "out[1]"), ("d", "in[0]")), found("nodes.1.ports.out[1].0"));
        assert_eq!(places.link(("c", "out"), ("d", "none")), None);
        assert_eq!(places.link(("d", "out"), ("a", "in")), found("nodes.2.ports.out.0"));
        assert_eq!(places.link(("d/e", "x"), ("d/f", "y")), found("nodes.2.nodes.0.ports.x.0"));
        assert_eq!(places.link(("d/e", "x"), ("f", "y")), None);
        let list =
            Places::of("- kind: a\n- kind: b\n  ports: {out: [{name: a, port: in}]}\n").unwrap();
        assert_eq!(list.node("b"), found("1"));
        assert_eq!(list.domain("services"), None);
        assert_eq!(list.link(("b", "out"), ("a", "in")), found("1.ports.out.0"));
        assert!(Places::of("a: [").is_none());
    }
}
