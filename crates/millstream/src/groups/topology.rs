//! The topology of a streams group as a tree.

use std::collections::BTreeSet;

use client::admin::groups::{Node, StreamsGroup, Subtopology};

use crate::output::Output;

/// Subtopologies with what they read, write and keep; below, their processors where the clients have described them.
pub fn show(streams: &StreamsGroup, out: &mut Output) {
    if streams.subtopologies.is_empty() {
        return;
    }
    out.line("");
    let epoch = streams.topology_epoch.map(|epoch| format!(" (epoch {epoch})")).unwrap_or_default();
    out.heading(&format!("Topology{epoch}"));
    let mut branches: Vec<Branch> = streams.subtopologies.iter().map(subtopology).collect();
    for store in &streams.global_stores {
        branches.push(Branch { label: "global store".to_owned(), inner: chains(store) });
    }
    render(&branches, "", out);
}

struct Branch {
    label: String,
    inner: Vec<Branch>,
}

impl Branch {
    fn leaf(label: String) -> Branch {
        Branch { label, inner: Vec::new() }
    }
}

fn subtopology(subtopology: &Subtopology) -> Branch {
    let mut inner = Vec::new();
    for (what, topics) in [
        ("reads", &subtopology.source_topics),
        ("reads back", &subtopology.repartition_source_topics),
        ("repartitions to", &subtopology.repartition_sink_topics),
        ("keeps state in", &subtopology.changelog_topics),
    ] {
        if !topics.is_empty() {
            inner.push(Branch::leaf(format!("{what} {}", topics.join(", "))));
        }
    }
    inner.extend(chains(&subtopology.nodes));
    Branch { label: format!("subtopology {}", subtopology.id), inner }
}

/// The processing graph from its sources on. A node that several lead to is drawn once and named where it comes again.
fn chains(nodes: &[Node]) -> Vec<Branch> {
    let reached: BTreeSet<&str> = nodes.iter().flat_map(|node| &node.successors).map(String::as_str).collect();
    let roots = nodes.iter().filter(|node| !reached.contains(node.name.as_str()));
    let mut drawn = BTreeSet::new();
    roots.map(|root| branch(root, nodes, &mut drawn)).collect()
}

fn branch<'a>(node: &'a Node, nodes: &'a [Node], drawn: &mut BTreeSet<&'a str>) -> Branch {
    if !drawn.insert(&node.name) {
        return Branch::leaf(format!("{} (as above)", node.name));
    }
    let mut label = node.name.clone();
    match node.kind {
        "source" if !node.topics.is_empty() => label.push_str(&format!(" <- {}", node.topics.join(", "))),
        "sink" if !node.topics.is_empty() => label.push_str(&format!(" -> {}", node.topics.join(", "))),
        _ => {}
    }
    if !node.stores.is_empty() {
        label.push_str(&format!(" [{}]", node.stores.join(", ")));
    }
    let next = node.successors.iter().filter_map(|name| nodes.iter().find(|node| node.name == *name));
    Branch { label, inner: next.map(|next| branch(next, nodes, drawn)).collect() }
}

fn render(branches: &[Branch], indent: &str, out: &mut Output) {
    for (number, branch) in branches.iter().enumerate() {
        let is_last = number + 1 == branches.len();
        let (fork, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        out.line(format!("{indent}{fork}{}", branch.label));
        render(&branch.inner, &format!("{indent}{below}"), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, kind: &'static str, topics: &[&str], stores: &[&str], successors: &[&str]) -> Node {
        let texts = |list: &[&str]| list.iter().map(|text| text.to_string()).collect();
        Node {
            name: name.to_owned(),
            kind,
            topics: texts(topics),
            stores: texts(stores),
            successors: texts(successors),
        }
    }

    #[test]
    fn a_diamond_is_drawn_once_and_a_graph_without_a_beginning_not_at_all() {
        let streams = StreamsGroup {
            topology_epoch: Some(2),
            subtopologies: vec![Subtopology {
                id: "0".to_owned(),
                source_topics: vec!["in".to_owned()],
                repartition_source_topics: vec![],
                repartition_sink_topics: vec!["app-by-word-repartition".to_owned()],
                changelog_topics: vec!["app-counts-changelog".to_owned()],
                nodes: vec![
                    node("SOURCE", "source", &["in"], &[], &["LEFT", "RIGHT"]),
                    node("LEFT", "processor", &[], &["counts"], &["SINK"]),
                    node("RIGHT", "processor", &[], &[], &["SINK", "GONE"]),
                    node("SINK", "sink", &["out"], &[], &[]),
                ],
            }],
            global_stores: vec![],
        };
        let mut out = Output::new(false);
        show(&streams, &mut out);
        let expected = "
Topology (epoch 2)
└─ subtopology 0
   ├─ reads in
   ├─ repartitions to app-by-word-repartition
   ├─ keeps state in app-counts-changelog
   └─ SOURCE <- in
      ├─ LEFT [counts]
      │  └─ SINK -> out
      └─ RIGHT
         └─ SINK (as above)
";
        assert_eq!(out.text(), expected);
        let circle = [node("A", "processor", &[], &[], &["B"]), node("B", "processor", &[], &[], &["A"])];
        assert!(chains(&circle).is_empty());
    }
}
