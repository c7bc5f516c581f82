//! A sorted map from addresses to values whose copies share all that they have in common.
//!
//! A copy costs one reference count. A change copies the nodes between the root and one leaf if
//! another copy of the tree shares them, and no node otherwise.

use crate::search::last_up_to;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::slice;

/// Maximum number of children of a node.
const MOST: usize = 32;
/// Minimum number of children of a node that is not the root.
const LEAST: usize = MOST / 4;

/// A sorted map with keys of 64 bits.
#[derive(Clone, Debug)]
pub(super) struct Tree<T> {
    root: Arc<Node<T>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Node<T> {
    /// The least key below each child, ascending.
    keys: Vec<u64>,
    children: Children<T>,
}

#[derive(Clone, Debug)]
enum Children<T> {
    Values(Vec<T>),
    Nodes(Vec<Arc<Node<T>>>),
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        let children = Children::Values(Vec::new());
        Self { root: Arc::new(Node { keys: Vec::new(), children }), len: 0 }
    }
}

impl<T> Tree<T> {
    /// Returns the number of values.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the value with the greatest key up to `key`.
    #[inline]
    pub(super) fn last_up_to(&self, key: u64) -> Option<&T> {
        let mut node = &*self.root;
        loop {
            let at = last_up_to(&node.keys, |&least| least <= key)?;
            match &node.children {
                Children::Values(values) => return values.get(at),
                Children::Nodes(nodes) => node = nodes.get(at)?,
            }
        }
    }

    /// Returns the values, ascending by key.
    pub(super) fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter { open: Vec::new(), values: [].iter() };
        iter.open(&self.root);
        iter
    }
}

impl<T: Clone> Tree<T> {
    /// Adds a value, and returns the one that had the same key.
    pub(super) fn insert(&mut self, key: u64, value: T) -> Option<T> {
        let (old, right) = Arc::make_mut(&mut self.root).insert(key, value);
        if let Some(right) = right {
            let nodes = alloc::vec![self.root.clone(), right];
            let keys = nodes.iter().map(|node| node.least()).collect();
            self.root = Arc::new(Node { keys, children: Children::Nodes(nodes) });
        }
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes and returns the value with the key `key`.
    pub(super) fn remove(&mut self, key: u64) -> Option<T> {
        // A key that is not there must copy nothing.
        if !self.root.contains(key) {
            return None;
        }
        let old = Arc::make_mut(&mut self.root).remove(key)?;
        self.len -= 1;
        while let Some(only) = self.root.only_node() {
            self.root = only;
        }
        Some(old)
    }
}

impl<T> Node<T> {
    /// Returns the least key; 0 for the root of an empty tree.
    fn least(&self) -> u64 {
        self.keys.first().copied().unwrap_or_default()
    }

    /// Returns the index of the child that has `key` or would have it.
    fn child_of(&self, key: u64) -> usize {
        self.keys.partition_point(|&least| least <= key).saturating_sub(1)
    }

    fn contains(&self, key: u64) -> bool {
        let at = self.child_of(key);
        match &self.children {
            Children::Values(_) => self.keys.get(at) == Some(&key),
            Children::Nodes(nodes) => nodes.get(at).is_some_and(|node| node.contains(key)),
        }
    }

    /// Returns the child if there is only one and it is a node.
    fn only_node(&self) -> Option<Arc<Self>> {
        match &self.children {
            Children::Nodes(nodes) if nodes.len() == 1 => nodes.first().cloned(),
            _ => None,
        }
    }
}

impl<T: Clone> Node<T> {
    /// Adds a value. Returns the one that had the same key, and the right half of the node if it
    /// had to be split.
    fn insert(&mut self, key: u64, value: T) -> (Option<T>, Option<Arc<Self>>) {
        let at = self.child_of(key);
        match &mut self.children {
            Children::Values(values) => {
                if self.keys.get(at) == Some(&key) {
                    let old = values.get_mut(at).map(|old| core::mem::replace(old, value));
                    return (old, None);
                }
                let after = at + usize::from(self.keys.get(at).is_some_and(|&least| least < key));
                self.keys.insert(after, key);
                values.insert(after, value);
            }
            Children::Nodes(nodes) => {
                let Some(child) = nodes.get_mut(at) else { return (None, None) };
                let (old, right) = Arc::make_mut(child).insert(key, value);
                if let Some(least) = self.keys.get_mut(at) {
                    *least = child.least();
                }
                if let Some(right) = right {
                    self.keys.insert(at + 1, right.least());
                    nodes.insert(at + 1, right);
                }
                return (old, self.split());
            }
        }
        (None, self.split())
    }

    /// Removes the right half and returns it if there are more than [`MOST`] children.
    fn split(&mut self) -> Option<Arc<Self>> {
        (self.keys.len() > MOST).then(|| Arc::new(self.split_off(self.keys.len() / 2)))
    }

    fn split_off(&mut self, at: usize) -> Self {
        let children = match &mut self.children {
            Children::Values(values) => Children::Values(values.split_off(at)),
            Children::Nodes(nodes) => Children::Nodes(nodes.split_off(at)),
        };
        Self { keys: self.keys.split_off(at), children }
    }

    /// Removes and returns the value with the key `key`.
    fn remove(&mut self, key: u64) -> Option<T> {
        let at = self.child_of(key);
        match &mut self.children {
            Children::Values(values) => {
                self.keys.remove(at);
                Some(values.remove(at))
            }
            Children::Nodes(nodes) => {
                let child = nodes.get_mut(at)?;
                let old = Arc::make_mut(child).remove(key);
                if let Some(least) = self.keys.get_mut(at) {
                    *least = child.least();
                }
                if child.keys.len() < LEAST {
                    self.fill(at);
                }
                old
            }
        }
    }

    /// Joins the child at `at`, which has too few children, with a neighbour.
    fn fill(&mut self, at: usize) {
        let Children::Nodes(nodes) = &mut self.children else { return };
        let left = at.saturating_sub(1);
        if nodes.len() < 2 {
            return;
        }
        let mut right = nodes.remove(left + 1);
        self.keys.remove(left + 1);
        let Some(joined) = nodes.get_mut(left).map(Arc::make_mut) else { return };
        joined.append(Arc::make_mut(&mut right));
        let half = joined.split();
        if let Some(least) = self.keys.get_mut(left) {
            *least = joined.least();
        }
        if let Some(half) = half {
            self.keys.insert(left + 1, half.least());
            nodes.insert(left + 1, half);
        }
    }

    /// Moves the children of `right` to the end.
    fn append(&mut self, right: &mut Self) {
        match (&mut self.children, &mut right.children) {
            (Children::Values(values), Children::Values(more)) => values.append(more),
            (Children::Nodes(nodes), Children::Nodes(more)) => nodes.append(more),
            // Children of one node have the same height.
            _ => return,
        }
        self.keys.append(&mut right.keys);
    }
}

/// An iterator over the values of a tree, ascending by key.
#[derive(Clone, Debug)]
pub(super) struct Iter<'t, T> {
    /// The nodes to the right of the way to `values`, the root's first.
    open: Vec<slice::Iter<'t, Arc<Node<T>>>>,
    values: slice::Iter<'t, T>,
}

impl<'t, T> Iter<'t, T> {
    fn open(&mut self, node: &'t Node<T>) {
        match &node.children {
            Children::Values(values) => self.values = values.iter(),
            Children::Nodes(nodes) => self.open.push(nodes.iter()),
        }
    }
}

impl<'t, T> Iterator for Iter<'t, T> {
    type Item = &'t T;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(value) = self.values.next() {
                return Some(value);
            }
            match self.open.last_mut()?.next() {
                Some(node) => self.open(node),
                None => drop(self.open.pop()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Returns numbers that look random, the same ones each time.
    fn numbers() -> impl Iterator<Item = u64> {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        core::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
    }

    /// Returns the height of the node, after a check of its keys and number of children.
    fn check<T>(node: &Node<T>, is_root: bool) -> usize {
        assert!(node.keys.is_sorted_by(|a, b| a < b), "{:?}", node.keys);
        assert!(node.keys.len() <= MOST);
        assert!(is_root || node.keys.len() >= LEAST, "{} children", node.keys.len());
        match &node.children {
            Children::Values(values) => {
                assert_eq!(values.len(), node.keys.len());
                0
            }
            Children::Nodes(nodes) => {
                assert!(nodes.len() > 1, "an inner node has at least two children");
                assert_eq!(node.keys, nodes.iter().map(|it| it.least()).collect::<Vec<_>>());
                let heights: Vec<_> = nodes.iter().map(|node| check(node, false)).collect();
                assert!(heights.iter().all(|height| *height == heights[0]));
                heights[0] + 1
            }
        }
    }

    fn assert_same(tree: &Tree<u64>, expected: &BTreeMap<u64, u64>) {
        let height = check(&tree.root, true);
        assert!(height <= 5, "{height}");
        assert_eq!(tree.len(), expected.len());
        assert!(tree.iter().eq(expected.values()));
    }

    #[test]
    fn a_tree_is_a_sorted_map_and_its_copies_do_not_change() {
        let (mut tree, mut expected) = (Tree::default(), BTreeMap::new());
        let mut copies = Vec::new();
        let mut numbers = numbers();
        let mut draw = || numbers.next().unwrap();
        for turn in 0..20_000 {
            // The tree grows, shrinks to nothing, and grows again.
            let grows = turn / 5_000 % 2 == 0;
            let (key, value) = (draw() % 4_096, draw());
            if draw() % 8 < if grows { 6 } else { 1 } {
                assert_eq!(tree.insert(key, value), expected.insert(key, value));
            } else {
                assert_eq!(tree.remove(key), expected.remove(&key));
            }
            let key = draw() % 4_200;
            assert_eq!(tree.last_up_to(key), expected.range(..=key).next_back().map(|it| it.1));
            if turn % 997 == 0 {
                assert_same(&tree, &expected);
                copies.push((tree.clone(), expected.clone()));
            }
        }
        for key in 0..4_096 {
            assert_eq!(tree.remove(key), expected.remove(&key));
        }
        assert_same(&tree, &expected);
        assert_eq!(tree.last_up_to(u64::MAX), None);
        for (copy, expected) in &copies {
            assert_same(copy, expected);
        }
    }

    #[test]
    fn nodes_are_split_beyond_most_children_and_joined_below_least() {
        fn leaves(tree: &Tree<u64>) -> Vec<usize> {
            check(&tree.root, true);
            match &tree.root.children {
                Children::Values(values) => alloc::vec![values.len()],
                Children::Nodes(nodes) => nodes.iter().map(|node| node.keys.len()).collect(),
            }
        }
        let mut tree = Tree::default();
        for key in 0..MOST as u64 {
            tree.insert(key, key);
        }
        assert_eq!(leaves(&tree), [MOST]);
        tree.insert(MOST as u64, 0);
        assert_eq!(leaves(&tree), [MOST / 2, MOST / 2 + 1]);
        let whole = tree.clone();
        // The right leaf gets full, too.
        for key in MOST as u64 + 1..MOST as u64 * 3 / 2 {
            tree.insert(key, key);
        }
        for mut tree in [whole, tree] {
            let right = leaves(&tree)[1];
            for key in 0..(MOST / 2 - LEAST) as u64 {
                tree.remove(key);
            }
            assert_eq!(leaves(&tree), [LEAST, right]);
            tree.remove((MOST / 2 - LEAST) as u64);
            let joined = LEAST - 1 + right;
            if joined <= MOST {
                assert_eq!(leaves(&tree), [joined]);
            } else {
                assert_eq!(leaves(&tree), [joined / 2, joined - joined / 2]);
            }
        }
    }

    #[test]
    fn a_change_copies_no_more_than_the_way_to_one_leaf() {
        fn nodes<T>(node: &Arc<Node<T>>, found: &mut Vec<*const Node<T>>) {
            found.push(Arc::as_ptr(node));
            if let Children::Nodes(children) = &node.children {
                for child in children {
                    nodes(child, found);
                }
            }
        }
        let mut tree = Tree::default();
        for key in 0..100_000_u64 {
            tree.insert(key * 0x40, key);
        }
        let height = check(&tree.root, true);
        let before = tree.clone();
        let mut shared = Vec::new();
        nodes(&before.root, &mut shared);
        shared.sort_unstable();
        for adds in [true, false] {
            let mut changed = before.clone();
            if adds {
                changed.insert(0x12345, 7)
            } else {
                changed.remove(0x40)
            };
            let mut after = Vec::new();
            nodes(&changed.root, &mut after);
            after.retain(|node| shared.binary_search(node).is_err());
            // A split or a join makes one more node on each level.
            assert!(after.len() <= 2 * (height + 1), "{} nodes", after.len());
        }
        let mut unchanged = before.clone();
        assert_eq!(unchanged.remove(0x41), None);
        assert!(Arc::ptr_eq(&unchanged.root, &before.root));
    }
}
