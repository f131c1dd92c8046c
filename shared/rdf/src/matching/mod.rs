//! Compares two graphs up to the names of their blank nodes: which of their triples are the same under the best mapping of one
//! graph's blank nodes to the other's.
//!
//! Finding the best mapping is hard in general, and easy for the graphs that people write. So connected parts that are the same
//! in both graphs are found first, by colours: a node's colour tells of everything that can be reached from it. What is left, if
//! it is little, is searched through; otherwise nodes are mapped by likeness, and mappings are exchanged as long as that helps.
//! The result is never above the best one, and [`GraphMatch::is_exact`] says whether it is the best. All steps are counted, and
//! each is a tick of the clock of [`TimeBudget`](crate::TimeBudget).
//!
//! Everything is decided by terms and their relations and by no label, so that graphs that differ in labels compare alike.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use oxrdf::{NamedOrBlankNode, Term};

use crate::graph::Graph;
use crate::literal::value_text;
use crate::query::tick;

/// Most steps of one comparison.
pub const MATCHING_STEPS_MAX: u64 = 1 << 20;

/// Most blank nodes, left over by equal parts, whose mappings are all tried.
const TRIED_NODES_MAX: usize = 10;

/// What counts as the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchRule<'a> {
    /// Whether `2.50` and `2.5` differ.
    pub exact_literals: bool,
    /// Whether any blank node is the same as any other, whatever is said of it.
    pub blank_equal: bool,
    /// Properties whose triples are left out.
    pub ignored: &'a [String],
}

/// How much two graphs have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphMatch {
    /// Triples that stand in both.
    pub common: usize,
    /// Triples of the graph that was found, without those left out.
    pub found: usize,
    /// Triples of the expected graph, likewise.
    pub expected: usize,
    /// Whether no mapping of blank nodes gives more.
    pub is_exact: bool,
}

/// Compares two graphs.
pub fn compare(found: &Graph, expected: &Graph, rule: &MatchRule<'_>) -> GraphMatch {
    let ranks = ranks([found, expected], rule);
    let (found, expected) =
        (MatchedSide::read(found, &ranks, rule), MatchedSide::read(expected, &ranks, rule));
    let ground = found.ground.intersection(&expected.ground).count();
    let mut search = MatchingSearch { found: &found, expected: &expected, steps: 0 };
    let (blank, is_exact) = search.best();
    GraphMatch {
        common: ground + blank,
        found: found.ground.len() + found.triples.len(),
        expected: expected.ground.len() + expected.triples.len(),
        is_exact,
    }
}

/// A place in a triple: a term that has a name in both graphs, or a blank node of its own graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum TriplePlace {
    Ground(u64),
    Blank(usize),
}

type PlacedTriple = (TriplePlace, u64, TriplePlace);

fn text_of(term: &Term, rule: &MatchRule<'_>) -> Option<String> {
    match term {
        Term::NamedNode(node) => Some(format!("<{}>", node.as_str())),
        Term::BlankNode(_) => rule.blank_equal.then(|| "_:".to_owned()),
        Term::Literal(literal) => {
            let datatype = literal.datatype();
            if let Some(language) = literal.language() {
                return Some(format!("\"{}\"@{}", literal.value(), language.to_ascii_lowercase()));
            }
            let by_value = (!rule.exact_literals).then(|| value_text(literal.value(), datatype.as_str()));
            Some(match by_value.flatten() {
                Some(value) => format!("={value}"),
                None => format!("\"{}\"^^{}", literal.value(), datatype.as_str()),
            })
        }
    }
}

/// The terms of both graphs by their texts, numbered in the order of the texts, so that numbers do not depend on the order of
/// triples.
fn ranks(graphs: [&Graph; 2], rule: &MatchRule<'_>) -> BTreeMap<String, u64> {
    let mut texts = BTreeMap::new();
    for triple in graphs.into_iter().flatten() {
        tick();
        let terms =
            [Term::from(triple.subject.clone()), Term::from(triple.predicate.clone()), triple.object.clone()];
        for text in terms.iter().filter_map(|term| text_of(term, rule)) {
            texts.insert(text, 0);
        }
    }
    for (number, rank) in texts.values_mut().enumerate() {
        *rank = number as u64;
    }
    texts
}

/// One of the two graphs.
struct MatchedSide {
    /// Triples without blank nodes.
    ground: BTreeSet<PlacedTriple>,
    /// Triples with them.
    triples: Vec<PlacedTriple>,
    known: HashSet<PlacedTriple>,
    /// The triples of each blank node.
    of_node: Vec<Vec<usize>>,
}

impl MatchedSide {
    fn read(graph: &Graph, ranks: &BTreeMap<String, u64>, rule: &MatchRule<'_>) -> Self {
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut place = |term: &Term| match (text_of(term, rule), term) {
            (Some(text), _) => TriplePlace::Ground(ranks.get(&text).copied().unwrap_or(u64::MAX)),
            (None, term) => {
                let next = names.len();
                TriplePlace::Blank(*names.entry(term.to_string()).or_insert(next))
            }
        };
        let mut lines = BTreeSet::new();
        for triple in graph {
            if rule.ignored.iter().any(|ignored| ignored == triple.predicate.as_str()) {
                continue;
            }
            let subject = match &triple.subject {
                NamedOrBlankNode::NamedNode(node) => Term::from(node.clone()),
                NamedOrBlankNode::BlankNode(node) => Term::from(node.clone()),
            };
            let TriplePlace::Ground(predicate) = place(&Term::from(triple.predicate.clone())) else {
                continue;
            };
            lines.insert((place(&subject), predicate, place(&triple.object)));
        }
        let is_blank = |place: &TriplePlace| matches!(place, TriplePlace::Blank(_));
        let (triples, ground): (Vec<PlacedTriple>, Vec<PlacedTriple>) =
            lines.into_iter().partition(|(subject, _, object)| is_blank(subject) || is_blank(object));
        let mut of_node = vec![Vec::new(); names.len()];
        for (number, (subject, _, object)) in triples.iter().enumerate() {
            if let TriplePlace::Blank(node) = subject {
                of_node[*node].push(number);
            }
            if let TriplePlace::Blank(node) = object
                && subject != object
            {
                of_node[*node].push(number);
            }
        }
        Self {
            ground: ground.into_iter().collect(),
            known: triples.iter().copied().collect(),
            triples,
            of_node,
        }
    }

    fn nodes(&self) -> usize {
        self.of_node.len()
    }

    /// The connected parts: blank nodes that triples join.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.nodes()];
        let mut parts = Vec::new();
        for start in 0..self.nodes() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut part = vec![start];
            let mut next = 0;
            while let Some(node) = part.get(next).copied() {
                next += 1;
                for number in &self.of_node[node] {
                    let (subject, _, object) = self.triples[*number];
                    for place in [subject, object] {
                        if let TriplePlace::Blank(other) = place
                            && !std::mem::replace(&mut seen[other], true)
                        {
                            part.push(other);
                        }
                    }
                }
            }
            parts.push(part);
        }
        parts
    }

    /// The number of triples of a part.
    fn triples_of(&self, part: &[usize]) -> usize {
        let numbers: HashSet<usize> =
            part.iter().flat_map(|node| self.of_node[*node].iter().copied()).collect();
        numbers.len()
    }

    /// The colours of the nodes of a part, refined by those of their neighbours one more time.
    fn refined(&self, part: &[usize], colours: &[u64], steps: &mut u64) -> Vec<(usize, u64)> {
        let colour = |place: TriplePlace, own: usize| match place {
            TriplePlace::Ground(rank) => mix(1, rank),
            TriplePlace::Blank(node) if node == own => 2,
            TriplePlace::Blank(node) => mix(3, colours[node]),
        };
        let refine = |node: &usize| {
            let mut around: Vec<u64> = self.of_node[*node]
                .iter()
                .map(|number| {
                    *steps += 1;
                    tick();
                    let (subject, predicate, object) = self.triples[*number];
                    mix(mix(colour(subject, *node), predicate), colour(object, *node))
                })
                .collect();
            around.sort_unstable();
            (*node, around.into_iter().fold(mix(4, colours[*node]), mix))
        };
        part.iter().map(refine).collect()
    }

    /// Refines the colours of a part until no round tells more nodes apart.
    fn settle(&self, part: &[usize], colours: &mut [u64], steps: &mut u64) {
        let distinct = |colours: &[u64]| part.iter().map(|node| colours[*node]).collect::<HashSet<_>>().len();
        let mut before = distinct(colours);
        // Two rounds at least: with the first, every node knows its own triples.
        for round in 0..part.len() + 2 {
            for (node, colour) in self.refined(part, colours, steps) {
                colours[node] = colour;
            }
            let now = distinct(colours);
            if *steps > MATCHING_STEPS_MAX || (round > 0 && now == before) {
                return;
            }
            before = now;
        }
    }
}

/// Mixes a number into a hash, as SplitMix64 does.
fn mix(hash: u64, value: u64) -> u64 {
    let mut z = hash.rotate_left(23).wrapping_add(value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct MatchingSearch<'a> {
    found: &'a MatchedSide,
    expected: &'a MatchedSide,
    steps: u64,
}

impl MatchingSearch<'_> {
    /// The triples with blank nodes that both graphs have, and whether there cannot be more.
    fn best(&mut self) -> (usize, bool) {
        if self.found.triples.is_empty() || self.expected.triples.is_empty() {
            return (0, true);
        }
        let (equal, left, right) = self.equal_parts();
        if left.is_empty() || right.is_empty() {
            return (equal, true);
        }
        let (rest, is_exact) = self.rest(&left, &right);
        (equal + rest, is_exact)
    }

    /// The triples of the parts that both graphs have, and the nodes of all other parts.
    ///
    /// Mapping equal parts to each other never costs anything: if the best mapping does otherwise, exchanging the two images
    /// loses no triple.
    fn equal_parts(&mut self) -> (usize, Vec<usize>, Vec<usize>) {
        let coloured = |side: &MatchedSide, steps: &mut u64| {
            let mut colours = vec![0; side.nodes()];
            let mut parts = Vec::new();
            for part in side.parts() {
                side.settle(&part, &mut colours, steps);
                let mut own: Vec<u64> = part.iter().map(|node| colours[*node]).collect();
                own.sort_unstable();
                parts.push((own, part));
            }
            parts.sort();
            (colours, parts)
        };
        let (mut left_colours, left) = coloured(self.found, &mut self.steps);
        let (mut right_colours, right) = coloured(self.expected, &mut self.steps);
        let mut by_colours: BTreeMap<Vec<u64>, Vec<Vec<usize>>> = BTreeMap::new();
        for (own, part) in right {
            by_colours.entry(own).or_default().push(part);
        }
        let (mut equal, mut unmatched) = (0, Vec::new());
        for (own, part) in left {
            let twin = by_colours.get_mut(&own).and_then(|parts| {
                let twin = parts.last()?;
                let same = self.is_same(&part, twin, &mut left_colours, &mut right_colours);
                if same { parts.pop() } else { None }
            });
            match twin {
                Some(_) => equal += self.found.triples_of(&part),
                None => unmatched.extend(part),
            }
        }
        let mut rest: Vec<usize> = by_colours.into_values().flatten().flatten().collect();
        // Few nodes are told apart by their colours; their numbers come last.
        unmatched.sort_by_key(|node| (left_colours[*node], *node));
        rest.sort_by_key(|node| (right_colours[*node], *node));
        (equal, unmatched, rest)
    }

    /// Whether two parts with the same colours are the same. One of several nodes of a colour is given a colour of its own in both
    /// parts, until all differ; then the one mapping that is left is tried.
    fn is_same(
        &mut self,
        left: &[usize],
        right: &[usize],
        of_left: &mut [u64],
        of_right: &mut [u64],
    ) -> bool {
        if self.found.triples_of(left) != self.expected.triples_of(right) {
            return false;
        }
        for turn in 0..=left.len() as u64 {
            if self.steps > MATCHING_STEPS_MAX {
                return false;
            }
            let (a, b) = (classes(left, of_left), classes(right, of_right));
            if a.len() != b.len() || a.iter().zip(&b).any(|(a, b)| a.0 != b.0 || a.1.len() != b.1.len()) {
                return false;
            }
            let several = a.iter().zip(&b).filter(|(a, _)| a.1.len() > 1).min_by_key(|(a, _)| a.1.len());
            let Some(((_, ours), (_, theirs))) = several else {
                let mapping: HashMap<usize, usize> =
                    a.values().zip(b.values()).map(|(a, b)| (a[0], b[0])).collect();
                return self.holds(left, &mapping);
            };
            of_left[ours[0]] = mix(5, turn);
            of_right[theirs[0]] = mix(5, turn);
            self.found.settle(left, of_left, &mut self.steps);
            self.expected.settle(right, of_right, &mut self.steps);
        }
        false
    }

    /// Whether a mapping makes expected triples of all triples of a part.
    fn holds(&self, part: &[usize], mapping: &HashMap<usize, usize>) -> bool {
        let mapped = |place| match place {
            TriplePlace::Ground(_) => Some(place),
            TriplePlace::Blank(node) => mapping.get(&node).copied().map(TriplePlace::Blank),
        };
        part.iter().flat_map(|node| &self.found.of_node[*node]).all(|number| {
            let (subject, predicate, object) = self.found.triples[*number];
            let line = mapped(subject).zip(mapped(object));
            line.is_some_and(|(subject, object)| self.expected.known.contains(&(subject, predicate, object)))
        })
    }

    /// The triples that nodes outside of equal parts have in common.
    fn rest(&mut self, left: &[usize], right: &[usize]) -> (usize, bool) {
        let mut mapping = NodeMapping::default();
        self.by_likeness(left, right, &mut mapping);
        self.exchange(left, right, &mut mapping);
        let numbers: BTreeSet<usize> =
            left.iter().flat_map(|node| self.found.of_node[*node].iter().copied()).collect();
        let by_exchange = numbers.iter().filter(|number| self.is_common(**number, &mapping)).count();
        if left.len().max(right.len()) > TRIED_NODES_MAX {
            return (by_exchange, false);
        }
        let mut order = left.to_vec();
        order.sort_by_key(|node| Reverse(self.found.of_node[*node].len()));
        // A triple is decided with the last of its nodes.
        let rank = |place| match place {
            TriplePlace::Blank(node) => order.iter().position(|other| *other == node),
            TriplePlace::Ground(_) => None,
        };
        let mut closing = vec![Vec::new(); order.len()];
        for number in numbers {
            let (subject, _, object) = self.found.triples[number];
            if let Some(last) = rank(subject).max(rank(object)) {
                closing[last].push(number);
            }
        }
        let mut tried = TriedMappings { order, right, closing, best: by_exchange };
        mapping = NodeMapping::default();
        let complete = self.try_all(0, 0, &mut tried, &mut mapping);
        (tried.best, complete)
    }

    fn is_common(&mut self, number: usize, mapping: &NodeMapping) -> bool {
        self.steps += 1;
        tick();
        let (subject, predicate, object) = self.found.triples[number];
        let line = mapping.place(subject).zip(mapping.place(object));
        line.is_some_and(|(subject, object)| self.expected.known.contains(&(subject, predicate, object)))
    }

    /// Tries all mappings of the nodes from `depth` on that can beat the best one; whether the steps sufficed.
    fn try_all(
        &mut self,
        depth: usize,
        common: usize,
        tried: &mut TriedMappings<'_>,
        mapping: &mut NodeMapping,
    ) -> bool {
        tried.best = tried.best.max(common);
        let possible: usize = tried.closing[depth..].iter().map(Vec::len).sum();
        if common + possible <= tried.best {
            return true;
        }
        let node = tried.order[depth];
        let choices: Vec<Option<usize>> = tried.right.iter().copied().map(Some).chain([None]).collect();
        for choice in choices {
            if self.steps > MATCHING_STEPS_MAX {
                return false;
            }
            if choice.is_some_and(|other| mapping.taken.contains_key(&other)) {
                continue;
            }
            mapping.set(node, choice);
            let numbers = std::mem::take(&mut tried.closing[depth]);
            let more = numbers.iter().filter(|number| self.is_common(**number, mapping)).count();
            tried.closing[depth] = numbers;
            let complete = self.try_all(depth + 1, common + more, tried, mapping);
            mapping.set(node, None);
            if !complete {
                return false;
            }
        }
        true
    }

    /// Maps the nodes that have most in common, whatever other blank nodes are mapped to.
    fn by_likeness(&mut self, left: &[usize], right: &[usize], mapping: &mut NodeMapping) {
        let mut having: HashMap<SaidOfNode, Vec<(usize, u64)>> = HashMap::new();
        for (at, node) in right.iter().enumerate() {
            for (said, count) in said_of(self.expected, *node) {
                having.entry(said).or_default().push((at, count));
            }
        }
        let mut pairs = Vec::new();
        for (at, node) in left.iter().enumerate() {
            let mut common: BTreeMap<usize, u64> = BTreeMap::new();
            for (said, count) in said_of(self.found, *node) {
                for (other, of_other) in having.get(&said).into_iter().flatten() {
                    if self.steps > MATCHING_STEPS_MAX {
                        break;
                    }
                    self.steps += 1;
                    tick();
                    *common.entry(*other).or_default() += count.min(*of_other);
                }
            }
            pairs.extend(common.into_iter().map(|(other, common)| (Reverse(common), at, other)));
        }
        pairs.sort_unstable();
        for (_, at, other) in pairs {
            let (node, other) = (left[at], right[other]);
            if !mapping.of_left.contains_key(&node) && !mapping.taken.contains_key(&other) {
                mapping.set(node, Some(other));
            }
        }
    }

    /// Exchanges the images of two nodes, or gives a node a free one, as long as that brings more triples.
    fn exchange(&mut self, left: &[usize], right: &[usize], mapping: &mut NodeMapping) {
        loop {
            let mut improved = false;
            for node in left {
                for other in right {
                    if mapping.of_left.get(node) == Some(other) {
                        continue;
                    }
                    if self.steps > MATCHING_STEPS_MAX {
                        return;
                    }
                    self.steps += 1;
                    let holder = mapping.taken.get(other).copied();
                    let touched = self.touched(*node, holder);
                    let before = touched.iter().filter(|number| self.is_common(**number, mapping)).count();
                    let own = mapping.of_left.get(node).copied();
                    mapping.swap(*node, own, holder, *other);
                    let after = touched.iter().filter(|number| self.is_common(**number, mapping)).count();
                    if after > before {
                        improved = true;
                    } else {
                        mapping.swap(*node, Some(*other), holder, own.unwrap_or(usize::MAX));
                    }
                }
            }
            if !improved {
                return;
            }
        }
    }

    fn touched(&self, node: usize, other: Option<usize>) -> BTreeSet<usize> {
        let nodes = [Some(node), other].into_iter().flatten();
        nodes.flat_map(|node| self.found.of_node[node].iter().copied()).collect()
    }
}

/// What a triple says of a blank node: the property, whether the node is its subject, and the other end if that has a name.
type SaidOfNode = (u64, bool, Option<u64>);

/// What is said of a node, and how often.
fn said_of(side: &MatchedSide, node: usize) -> BTreeMap<SaidOfNode, u64> {
    let ground = |place| match place {
        TriplePlace::Ground(rank) => Some(rank),
        TriplePlace::Blank(_) => None,
    };
    let mut said = BTreeMap::new();
    for number in &side.of_node[node] {
        let (subject, predicate, object) = side.triples[*number];
        let out = subject == TriplePlace::Blank(node);
        *said.entry((predicate, out, ground(if out { object } else { subject }))).or_default() += 1;
    }
    said
}

/// The nodes of a part by their colours.
fn classes(part: &[usize], colours: &[u64]) -> BTreeMap<u64, Vec<usize>> {
    let mut classes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for node in part {
        classes.entry(colours[*node]).or_default().push(*node);
    }
    classes
}

struct TriedMappings<'a> {
    order: Vec<usize>,
    right: &'a [usize],
    /// The triples that are decided with each node of the order.
    closing: Vec<Vec<usize>>,
    best: usize,
}

/// Which blank node of the expected graph each blank node stands for.
#[derive(Default)]
struct NodeMapping {
    of_left: HashMap<usize, usize>,
    /// Who has each image.
    taken: HashMap<usize, usize>,
}

impl NodeMapping {
    fn place(&self, place: TriplePlace) -> Option<TriplePlace> {
        match place {
            TriplePlace::Ground(_) => Some(place),
            TriplePlace::Blank(node) => self.of_left.get(&node).copied().map(TriplePlace::Blank),
        }
    }

    fn set(&mut self, node: usize, image: Option<usize>) {
        let before = match image {
            Some(image) => {
                self.taken.insert(image, node);
                self.of_left.insert(node, image)
            }
            None => self.of_left.remove(&node),
        };
        if let Some(before) = before.filter(|before| Some(*before) != image) {
            self.taken.remove(&before);
        }
    }

    /// Gives `node`, which has the image `own`, the image `other`, and its own one to `holder`. `usize::MAX` is no image.
    fn swap(&mut self, node: usize, own: Option<usize>, holder: Option<usize>, other: usize) {
        let real = |image: usize| Some(image).filter(|image| *image != usize::MAX);
        self.set(node, None);
        if let Some(holder) = holder {
            self.set(holder, None);
            self.set(holder, own.and_then(real));
        }
        self.set(node, real(other));
    }
}

#[cfg(test)]
mod tests;
