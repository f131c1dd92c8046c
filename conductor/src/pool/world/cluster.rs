//! Nodes, and a scheduler that puts parts of servers on them one by one, as kube-scheduler does.

/// The nodes with what is free on them.
#[derive(Clone, Debug)]
pub(super) struct FreeNodes {
    pub(super) free: Vec<u32>,
    /// Whether of the nodes that have room a part gets the fullest (MostAllocated) and not the emptiest (LeastAllocated).
    packs: bool,
}

impl FreeNodes {
    pub(super) fn new(nodes: &[u32], packs: bool) -> Self {
        Self { free: nodes.to_vec(), packs }
    }

    /// Puts the parts that have no node yet on nodes, each on another one; `whole`: all of them or none.
    pub(super) fn place(&mut self, parts: &mut [Option<usize>], gpus: u32, whole: bool) {
        let (before, free) = (parts.to_vec(), self.free.clone());
        for at in 0..parts.len() {
            if parts[at].is_some() {
                continue;
            }
            match self.node_for(parts, gpus) {
                Some(node) => {
                    self.free[node] -= gpus;
                    parts[at] = Some(node);
                }
                None if whole => {
                    parts.copy_from_slice(&before);
                    self.free = free;
                    return;
                }
                None => return,
            }
        }
    }

    fn node_for(&self, parts: &[Option<usize>], gpus: u32) -> Option<usize> {
        let has_room = |node: &usize| self.free[*node] >= gpus && !parts.contains(&Some(*node));
        let nodes = (0..self.free.len()).filter(has_room);
        if self.packs {
            nodes.min_by_key(|node| (self.free[*node], *node))
        } else {
            nodes.max_by_key(|node| (self.free[*node], std::cmp::Reverse(*node)))
        }
    }

    /// Gives back what these parts held.
    pub(super) fn release(&mut self, parts: &[Option<usize>], gpus: u32) {
        for node in parts.iter().flatten() {
            self.free[*node] += gpus;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(cluster: &mut FreeNodes, parts: usize, gpus: u32, whole: bool) -> Vec<Option<usize>> {
        let mut nodes = vec![None; parts];
        cluster.place(&mut nodes, gpus, whole);
        nodes
    }

    #[test]
    fn parts_go_to_different_nodes_the_emptiest_or_the_fullest_first() {
        let mut cluster = FreeNodes::new(&[8, 8, 8], false);
        assert_eq!(placed(&mut cluster, 1, 2, false), [Some(0)]);
        assert_eq!(placed(&mut cluster, 1, 2, false), [Some(1)]);
        let mut packing = FreeNodes { packs: true, ..cluster.clone() };
        assert_eq!(placed(&mut packing, 1, 2, false), [Some(0)]);
        // Two nodes are not empty: a bare scheduler lets a server hold the third.
        assert_eq!(placed(&mut cluster.clone(), 2, 8, true), [None, None]);
        let held = placed(&mut cluster, 2, 8, false);
        assert_eq!(held, [Some(2), None]);
        cluster.release(&held, 8);
        assert_eq!(cluster.free, [6, 6, 8]);
    }
}
